"""The log over HTTP: its events after an offset, and a blocking query for new ones."""

import time
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coord.sdk.log_reader import logged_events
from coord.stores.contract import Entry
from coord.transports.hub.api.endpoint import Asking, Endpoint, reading
from coord.transports.hub.api.fields import NUMBER_MAX, PublicBody

LIMIT_MAX = 1000


class EventsQuery(PublicBody, frozen=True, kw_only=True):
    """The events after an offset; `wait`: how long the answer may wait for the first one."""

    after: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] = 0
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX, description="how many entries of the log")] = 100
    wait: Annotated[str, Meta(pattern="^([12]?[0-9]|30)s?$", description="seconds, at most 30: 5 or 5s")] = (
        "0"
    )


class EventInfo(msgspec.Struct, frozen=True):
    """An event, the offset of its entry, and its time."""

    offset: int
    at_ms: int
    event: str
    details: dict[str, Any]


class EventsReply(msgspec.Struct, frozen=True):
    """Events in the order of the log; `after` asks for the next ones."""

    events: list[EventInfo]
    after: int


async def read_events(asking: Asking) -> Any:
    """Return the events after an offset; with `wait`, as soon as there is one."""
    query: EventsQuery = asking.values
    log = asking.store.log(asking.tenant)
    until, after = time.monotonic() + int(query.wait.removesuffix("s")), query.after
    while True:
        entries: list[Entry] = await asking.hub.stores.run(log.tail, after, query.limit)
        after = entries[-1].offset if entries else after
        shown = [
            EventInfo(each.offset, each.at_ms, each.event, each.details)
            for each in logged_events(entries)
            if is_visible(asking, each.details)
        ]
        left_s = until - time.monotonic()
        watcher = asking.hub.watcher(asking.store, asking.tenant)
        # Entries without a visible event are no news: wait for what comes after them.
        if shown or left_s <= 0 or not (entries or await watcher.wait(after, left_s)):
            return EventsReply(shown, after)


def is_visible(asking: Asking, details: dict[str, Any]) -> bool:
    """Whether a token may see an event: one of a project sees the events that state it, as in streams."""
    token = asking.identity.token
    return token is None or not token.project or details.get("project") == token.project


def endpoints() -> list[Endpoint]:
    """Return the route."""
    return [reading("/v1/events", "readEvents", read_events, EventsReply, tag="events", query=EventsQuery)]
