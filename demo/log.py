"""Reads the events of the store's log directly, so that the proof need not trust any worker."""

import json
from typing import Any, NamedTuple

import coord
from demo.plan import TENANT

PAGE = 500


class Event(NamedTuple):
    """One event of the log, with the offset and the time of its entry."""

    offset: int
    at: int
    name: str
    fields: dict[str, Any]


class Log:
    """Follows the log from its beginning, with a separate connection to the store."""

    def __init__(self, url: str) -> None:
        self._database = coord.open_store(url)
        self._store = self._database.log(TENANT)
        self.offsets: list[int] = []

    def news(self) -> list[Event]:
        """Return the events since the last call."""
        events = []
        while entries := self._store.tail(self.offsets[-1] if self.offsets else 0, PAGE):
            for entry in entries:
                self.offsets.append(entry.offset)
                for raw in entry.events:
                    fields = json.loads(raw)
                    events.append(Event(entry.offset, entry.at, fields.pop("event"), fields))
        return events

    def close(self) -> None:
        self._database.close()


def read_log(url: str) -> tuple[list[int], list[Event]]:
    """Return all offsets and all events of the log."""
    log = Log(url)
    try:
        events = log.news()
        return log.offsets, events
    finally:
        log.close()
