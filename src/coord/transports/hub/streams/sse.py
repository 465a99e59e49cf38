"""`GET /v1/stream`: the log as Server-Sent Events; the id of a message is the offset of its entry."""

from collections.abc import AsyncGenerator

from coord.core.tokens.schema import Role
from coord.transports.hub.hub import Hub
from coord.transports.hub.request import Request, Response, encode_json
from coord.transports.hub.streams.entries import Filter, as_sse
from coord.transports.hub.streams.subscription import Delivery, Kind, Wanted
from coord.transports.hub.streams.target import Target, parse_wanted, target_of

PATH = "/v1/stream"
EVENT_STREAM = "text/event-stream"
RETRY_MS = 2000
"""How long a browser waits before it connects again."""


async def stream(hub: Hub, request: Request) -> Response:
    """Answer with the entries after an offset, for as long as the client reads them."""
    request.identity.require(Role.VIEW)
    query = request.query
    given = request.headers.get("last-event-id") or query.get("after")
    kinds = [name for name in query.get("types", "").split(",") if name]
    wanted = parse_wanted(request.identity, given, kinds, query.get("project", ""))
    target = await target_of(hub, request)
    headers = {"X-Accel-Buffering": "no", "Connection": "close"}
    return Response(200, b"", EVENT_STREAM, headers, stream=_messages(target, wanted))


async def _messages(target: Target, wanted: Wanted) -> AsyncGenerator[bytes, None]:
    with target.counted():
        async with target.subscribed(wanted) as deliveries:
            async for delivery in deliveries:
                if message := _message(delivery, wanted.which):
                    yield message


def _message(delivery: Delivery, which: Filter) -> bytes:
    """Return a delivery as messages; a heartbeat moves the id of the client, and shows it nothing."""
    offset = delivery.offset
    match delivery.kind:
        case Kind.ENTRIES:
            found = b"".join(entry.encoded(as_sse, which) for entry in delivery.entries)
            return found or b"id: %d\n\n" % offset
        case Kind.HEARTBEAT:
            return b": heartbeat\nid: %d\n\n" % offset
        case Kind.BEGIN:
            data = encode_json({"offset": offset})
            return b"retry: %d\nevent: begin\ndata: %s\nid: %d\n\n" % (RETRY_MS, data, offset)
    data = encode_json({"offset": offset, "reason": delivery.reason})
    return b"event: %s\ndata: %s\n\n" % (delivery.kind.value.encode(), data)
