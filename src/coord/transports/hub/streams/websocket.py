"""`/v1/ws`: the log over a WebSocket, an entry a message; the client may subscribe again, and ping."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

import msgspec

from coord.core.errors import CoordError, Invalid
from coord.core.tokens.schema import Role
from coord.transports.exit_codes import failure
from coord.transports.hub.hub import Hub
from coord.transports.hub.problems import HttpError
from coord.transports.hub.rates import TokenBucket
from coord.transports.hub.request import Request, Response, encode_json
from coord.transports.hub.streams.entries import as_message
from coord.transports.hub.streams.subscription import Delivery, Kind, Wanted
from coord.transports.hub.streams.target import Target, parse_wanted, target_of

PATH = "/v1/ws"
MESSAGES_PER_S, MESSAGES_MAX = 20.0, 100.0
"""How many messages a client may send."""
REASON_CHARS_MAX = 120
UNSUBSCRIBED_S = 60.0
"""How long a socket stays open without a subscription, which is what notices that its token ended."""
GOING_AWAY, POLICY, TRY_LATER = 1001, 1008, 1013
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class ClientMessage(msgspec.Struct, forbid_unknown_fields=True):
    """What a client may send."""

    type: Literal["subscribe", "unsubscribe", "ping"]
    after: int | None = None
    types: list[str] = []
    project: str = ""
    id: int | str | None = None


_DECODER = msgspec.json.Decoder(ClientMessage)


async def explain(hub: Hub, request: Request) -> Response:
    """Refuse a plain request: this path is for a WebSocket."""
    raise HttpError(
        426,
        "upgrade_required",
        f"{PATH} is a WebSocket",
        hint="GET /v1/stream is plain HTTP",
        headers={"Upgrade": "websocket"},
    )


async def serve(hub: Hub, request: Request, receive: Receive, send: Send) -> None:
    """Serve a WebSocket whose sender is known; raises before it is accepted if it is refused."""
    request.identity.require(Role.VIEW)
    query = request.query
    kinds = [name for name in query.get("types", "").split(",") if name]
    wanted = parse_wanted(request.identity, query.get("after"), kinds, query.get("project", ""))
    target = await target_of(hub, request)
    with target.counted():
        await send({"type": "websocket.accept"})
        await _Socket(target, receive, send).run(wanted)


class _Socket:
    """One open WebSocket: a reader of messages, and at most one subscription."""

    def __init__(self, target: Target, receive: Receive, send: Send) -> None:
        self._target = target
        self._receive = receive
        self._send = send
        self._writing = asyncio.Lock()
        self._messages = TokenBucket(MESSAGES_PER_S, MESSAGES_MAX)
        self._wanted: Wanted | None = None
        self._task: asyncio.Task[None] | None = None
        """What sends the entries, or closes a socket that wants none."""
        self._ended = False
        self._offset = 0

    async def run(self, wanted: Wanted) -> None:
        await self._change(wanted)
        try:
            while not self._ended:
                message = await self._receive()
                if message["type"] == "websocket.disconnect":
                    return
                await self._answer(message.get("text"))
        finally:
            self._ended = True
            await self._stop()

    async def _answer(self, text: str | None) -> None:
        """Carry out a message of the client."""
        if not self._messages.take(time.monotonic()):
            await self._close(POLICY, "too many messages")
            return
        try:
            asked = _read(text)
            if asked.type == "ping":
                await self._write({"type": "pong", "offset": self._offset, "id": asked.id})
                return
            wanted = parse_wanted(self._target.request.identity, asked.after, asked.types, asked.project)
            await self._change(wanted if asked.type == "subscribe" else None)
        except CoordError as error:
            found = failure(error)
            await self._write(
                {"type": "error", "code": found.code, "message": found.message, "hint": found.hint}
            )

    async def _change(self, wanted: Wanted | None) -> None:
        """Replace the subscription; without one the time in which there has to be another goes on."""
        if self._task is not None and wanted is None and self._wanted is None:
            return
        await self._stop()
        self._wanted = wanted
        self._task = asyncio.ensure_future(self._idle() if wanted is None else self._follow(wanted))

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _idle(self) -> None:
        stopping = self._target.hub.stopping
        with suppress(TimeoutError):
            async with asyncio.timeout(UNSUBSCRIBED_S):
                await stopping.wait()
        with suppress(OSError):  # the client is gone
            await self._close(GOING_AWAY, "nothing is subscribed")

    async def _follow(self, wanted: Wanted) -> None:
        with suppress(OSError):  # the client is gone
            try:
                async with self._target.subscribed(wanted) as deliveries:
                    async for delivery in deliveries:
                        self._offset = max(self._offset, delivery.offset)
                        await self._deliver(delivery, wanted)
            except CoordError as error:
                await self._close(TRY_LATER, error.message)

    async def _deliver(self, delivery: Delivery, wanted: Wanted) -> None:
        if delivery.kind is Kind.ENTRIES:
            for entry in delivery.entries:
                if message := entry.encoded(as_message, wanted.which):
                    await self._write_text(message)
            return
        fields = {"type": delivery.kind.value, "offset": delivery.offset}
        await self._write({**fields, "reason": delivery.reason} if delivery.reason else fields)
        if delivery.kind is Kind.RESYNC:
            await self._close(TRY_LATER, f"resync at {delivery.offset}")
        elif delivery.kind is Kind.END:
            await self._close(GOING_AWAY, delivery.reason)

    async def _write(self, value: dict[str, Any]) -> None:
        await self._write_text(encode_json(value))

    async def _write_text(self, data: bytes) -> None:
        async with self._writing:
            if not self._ended:
                await self._send({"type": "websocket.send", "text": data.decode()})

    async def _close(self, code: int, reason: str) -> None:
        async with self._writing:
            if not self._ended:
                self._ended = True
                short = reason.encode("ascii", "replace").decode()[:REASON_CHARS_MAX]
                await self._send({"type": "websocket.close", "code": code, "reason": short})


def _read(text: str | None) -> ClientMessage:
    if text is None:
        raise Invalid("a message is text", hint='send {"type": "ping"}')
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            f"the message cannot be read: {str(error)[:200]}", hint='send {"type": "ping"}'
        ) from error
