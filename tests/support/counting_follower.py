"""The simplest follower: it counts the events of a log by name."""

import msgspec

from coord.followers.follower import Follower, LogSource
from coord.sdk.log_reader import LoggedEvent

TARGET = f"{__name__}:Counts"


class Counts(Follower):
    """Counts the events by name."""

    name = "counts"
    about = "the number of events"

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self.counts: dict[str, int] = {}

    def apply(self, logged: LoggedEvent) -> None:
        self.counts[logged.event] = self.counts.get(logged.event, 0) + 1

    def dump(self) -> bytes:
        return msgspec.json.encode(self.counts, order="sorted")

    def load(self, data: bytes) -> None:
        self.counts = msgspec.json.decode(data, type=dict[str, int])
