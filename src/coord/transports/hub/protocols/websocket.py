"""WebSocket on a connection: uvicorn's protocol with limits on fragments and unread answers."""

import asyncio

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from coord.transports.hub.protocols.peer import peer_of

MESSAGE_BYTES_MAX = 64 * 1024
FRAGMENTS_MAX = 64
UNREAD_BYTES_MAX = 1024 * 1024
"""How much a peer may leave unread while it goes on sending, for example pings."""


class HubWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket of the hub."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._peer = peer_of(transport)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:  # the application starts with the next turn of the loop
            self.scope["coord.peer"] = self._peer  # type: ignore[typeddict-unknown-key]

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self.transport.abort()
            return
        super().data_received(data)

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= FRAGMENTS_MAX:
            self.conn.fail(1009, "too many fragments")
            self.handle_parser_exception()
            return
        super().handle_cont(event)
