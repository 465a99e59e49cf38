"""HTTP/1.1 on a connection: uvicorn's parser with limits on the head, the time and the peer."""

import asyncio
import http
import resource
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coord.transports.hub.protocols.peer import peer_of

HEAD_BYTES_MAX = 64 * 1024
"""What may come beside the body: the head, trailers, and sizes of chunks beyond the size of the body."""
HEADERS_MAX = 100
PIPELINED_MAX = 64
REQUEST_S = 20.0
"""A request has to arrive within this time: the first byte of its head to the last of its body."""
ALIVE_S = 0.05
"""A client that asks for a sign of life gets it after this time; most answers come before."""
FILES_RESERVED = 64
"""File descriptors that connections leave for stores and for processes of this machine."""
FILES_MAX = 65_536


def raise_file_limit() -> int:
    """Let this process open as many files as it may; return how many TCP connections that leaves."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(most - 2 * FILES_RESERVED, 16)


class HubProtocol(HttpToolsProtocol):
    """One connection to the hub."""

    tcp_max = FILES_MAX
    """How many connections there may be before a further one over TCP is refused."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.access_log = False  # a line of it would show the query
        self._peer = peer_of(transport)
        self._received = 0
        self._body_bytes = 0
        self._running: Any = None
        self._deadline: asyncio.TimerHandle | None = None
        most = self.tcp_max + (FILES_RESERVED if self._peer.unix else 0)
        if len(self.connections) > most:
            self._refuse(503, "the hub has too many connections", "retry-after: 5\r\n")
            return
        # Without a first byte a connection ends as an idle one does.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_S, self._give_up)
        self._received += len(data)
        super().data_received(data)
        if self._received - 2 * self._body_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            self._refuse(431, "the head of the request is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value.strip())
        if name.lower() == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise ValueError("the length of the body is in doubt")
        if len(self.headers) > HEADERS_MAX:
            raise ValueError("too many headers")

    def on_headers_complete(self) -> None:
        self.scope["coord.peer"] = self._peer  # type: ignore[typeddict-unknown-key]
        self._received = self._body_bytes = 0
        super().on_headers_complete()
        if len(self.pipeline) > PIPELINED_MAX:
            raise ValueError("too many requests at once")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._end_deadline()
        self._received = self._body_bytes = 0
        super().on_message_complete()
        cycle = self.cycle
        if cycle is not None and cycle.waiting_for_100_continue:  # its body came without being asked for
            cycle.waiting_for_100_continue = False
            self.loop.call_later(ALIVE_S, self._say_alive, cycle)

    def _say_alive(self, cycle: Any) -> None:
        """Send the line for which the client asked, if there is no answer yet."""
        if self._running is cycle and not cycle.response_started and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def handle_websocket_upgrade(self) -> None:
        self._end_deadline()
        self._unset_keepalive_if_required()
        super().handle_websocket_upgrade()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        for cycle in (self._running, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _refuse(self, status: int, message: str, headers: str = "") -> None:
        """Answer what is no request, and end the connection."""
        self._end_deadline()
        self._unset_keepalive_if_required()
        if self._running is not None and not self._running.response_complete:
            self.transport.abort()  # an answer would land in the middle of another one
            return
        phrase = http.HTTPStatus(status).phrase
        self.transport.write(
            f"HTTP/1.1 {status} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n{headers}"
            f"content-length: {len(message)}\r\nconnection: close\r\n\r\n{message}".encode("ascii")
        )
        self.transport.close()

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """Drop a connection that sends its request too slowly."""
        self._deadline = None
        if not self.transport.is_closing():
            self._refuse(408, "the request did not arrive in time")
