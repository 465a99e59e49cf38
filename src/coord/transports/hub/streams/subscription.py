"""One subscriber of a log: every entry after its position in order, or "resync", or the end."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from enum import StrEnum
from typing import NamedTuple

from coord.core.errors import CoordError, Trimmed
from coord.core.tokens.commands import TokenInfo
from coord.transports.hub.hub import Hub
from coord.transports.hub.streams.entries import EVERYTHING, Filter, LogEntry
from coord.transports.hub.streams.feed import Feed, Window

HEARTBEAT_S = 15.0
CHUNK_BYTES = 128 * 1024
"""How much one write holds, if its first entry is not larger."""


class Kind(StrEnum):
    """What a subscriber gets."""

    BEGIN = "begin"
    ENTRIES = "entries"
    HEARTBEAT = "heartbeat"
    RESYNC = "resync"
    """Entries are missing from here on: read the state again, and subscribe after its offset."""
    END = "end"


class Delivery(NamedTuple):
    """Something for a subscriber; `offset` is the position that it has with it."""

    kind: Kind
    offset: int
    entries: list[LogEntry] = []
    reason: str = ""


class Wanted(NamedTuple):
    """What a subscriber asks for. Without `after` it gets what happens from now on."""

    after: int | None = None
    which: Filter = EVERYTHING


def now_ms() -> int:
    """Return the time of this machine, as tokens are checked by."""
    return round(time.time() * 1000)


class Subscription:
    """Follows a feed for one subscriber."""

    def __init__(
        self,
        hub: Hub,
        feed: Feed,
        wanted: Wanted,
        *,
        token: TokenInfo | None = None,
        is_valid: Callable[[], Awaitable[bool]],
    ) -> None:
        """`is_valid`: looks up whether the token counts after the subscription has its place in the log."""
        self._hub = hub
        self._feed = feed
        self._wanted = wanted
        self._token = token
        self._is_valid = is_valid
        self._ends_ms = token.expires_ms if token is not None else 0
        self._live = False
        """Whether it has once had everything; from then on it has to keep up."""

    async def deliveries(self) -> AsyncGenerator[Delivery, None]:
        """Yield what the subscriber gets; resync and end are the last."""
        feed = self._feed
        try:
            window = await feed.join()
            if not await self._is_valid():
                yield Delivery(Kind.END, 0, reason="the token is not valid any more")
                return
            after = window.last if self._wanted.after is None else self._wanted.after
            if after > window.last:
                yield Delivery(Kind.RESYNC, window.last, reason=f"the log ends at {window.last}")
                return
            yield Delivery(Kind.BEGIN, after)
            while True:
                delivery = await self._next(window, after)
                yield delivery
                if delivery.kind in (Kind.RESYNC, Kind.END):
                    return
                after = delivery.offset
        finally:
            feed.leave()

    async def _next(self, window: Window, after: int) -> Delivery:
        """Return the next delivery; waits for it at most until the next heartbeat."""
        while True:
            if self._is_expired():
                return Delivery(Kind.END, after, reason="the token has expired")
            found = window.after(after, CHUNK_BYTES)
            if found is None:
                return await self._behind(window, after)
            if found:
                return self._admitted(after, found)
            self._live = True
            if self._hub.stopping.is_set():
                return Delivery(Kind.END, after, reason="the hub is stopping")
            if self._feed.failure is not None:
                return Delivery(Kind.END, after, reason=self._feed.failure.message)
            if not await self._feed.wait(self._patience_s()) and not self._is_expired():
                return Delivery(Kind.HEARTBEAT, after)

    async def _behind(self, window: Window, after: int) -> Delivery:
        """Read on from the log itself; only a subscriber that has not had everything yet may be behind."""
        if self._live:
            return Delivery(Kind.RESYNC, window.last, reason="entries are missing")
        if self._hub.stopping.is_set():
            return Delivery(Kind.END, after, reason="the hub is stopping")
        try:
            page = await self._feed.page(after)
        except Trimmed as error:
            return Delivery(Kind.RESYNC, window.last, reason=error.message)
        except CoordError as error:
            return Delivery(Kind.END, after, reason=error.message)
        found = [entry for number, entry in enumerate(page, after + 1) if entry.offset == number]
        if not found:
            return Delivery(Kind.RESYNC, window.last, reason="the log has no such entry")
        return self._admitted(after, found)

    def _admitted(self, after: int, found: list[LogEntry]) -> Delivery:
        """Return entries up to the one that ended the subscriber's token."""
        if self._token is None:
            return Delivery(Kind.ENTRIES, found[-1].offset, found)
        for number, entry in enumerate(found):
            for event in entry.events:
                if event.ended_token != self._token.id:
                    continue
                if event.ends_ms > now_ms():  # replaced, and both count for a while
                    self._ends_ms = min(self._ends_ms or event.ends_ms, event.ends_ms)
                    continue
                if number:
                    return Delivery(Kind.ENTRIES, found[number - 1].offset, found[:number])
                return Delivery(Kind.END, after, reason="the token has been revoked")
        return Delivery(Kind.ENTRIES, found[-1].offset, found)

    def _is_expired(self) -> bool:
        return bool(self._ends_ms) and now_ms() >= self._ends_ms

    def _patience_s(self) -> float:
        if not self._ends_ms:
            return HEARTBEAT_S
        return min(HEARTBEAT_S, max(0.0, (self._ends_ms - now_ms()) / 1000))
