"""HTTP/1.1 on a connection: uvicorn's parser with limits on the head, the time and the peer."""

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coord.transports.hub.request import Peer

HEAD_BYTES_MAX = 64 * 1024
HEADERS_MAX = 100
REQUEST_S = 20.0
"""A request has to arrive within this time: the first byte of its head to the last of its body."""
_CREDENTIALS = struct.Struct("3i")


class HubProtocol(HttpToolsProtocol):
    """One connection to the hub."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = _peer_of(transport)
        self._head_bytes = 0
        self._reading = False
        self._deadline: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_S, self._give_up)
        if self.scope is None or not self._reading:
            self._head_bytes += len(data)
        super().data_received(data)
        if not self._reading and self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response("the head of the request is too long")

    def on_message_begin(self) -> None:
        self._reading = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value.strip())
        if len(self.headers) > HEADERS_MAX:
            raise ValueError("too many headers")

    def on_headers_complete(self) -> None:
        self._reading = True
        self._head_bytes = 0
        self.scope["coord.peer"] = self._peer  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._end_deadline()
        self._reading = False
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        super().connection_lost(exc)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """Close a connection that sends its request too slowly."""
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()


def _peer_of(transport: asyncio.BaseTransport) -> Peer:
    found: Any = transport.get_extra_info("socket")
    if found is None or found.family != socket.AF_UNIX:
        address = transport.get_extra_info("peername")
        return Peer(address=str(address[0]) if address else "")
    pid, uid, _ = _CREDENTIALS.unpack(
        found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return Peer(unix=True, pid=pid, uid=uid)
