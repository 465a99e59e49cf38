"""Check alerts every minute while something happens or an agent runs.

The alerts are records, which the rules of the core write. So this follower keeps no state: it says when to
look, and looks at the processes of silent sessions on its machine. If nothing runs, it waits for an event.
"""

from coord.core.alerts.commands import CheckAlerts, CheckReply, ListWatched, WatchedProcess
from coord.core.alerts.stuck import INTERVAL_MS
from coord.followers.follower import Follower, LogSource
from coord.host.runtime.process_activity import take_samples
from coord.sdk.log_reader import LoggedEvent


class AlertsFollower(Follower):
    """Runs `CheckAlerts`, at most once in an interval."""

    name = "alerts"
    about = "raises and closes alerts, every minute"

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self._news = True
        self._checked_ms = 0
        self._due_ms = 0

    def apply(self, logged: LoggedEvent) -> None:
        """Note that something happened, unless a check itself did."""
        self._news = self._news or not logged.event.startswith("alert.")

    def apply_entry(self, events: list[LoggedEvent]) -> None:
        """Look at events until one says that something happened."""
        if not self._news:
            super().apply_entry(events)

    def dump(self) -> bytes:
        """Return no state."""
        return b""

    def load(self, data: bytes) -> None:
        """Take over nothing."""

    def act(self, now: int) -> int:
        """Check if it is time; return when it is time again (0: after an event)."""
        due_ms = self._checked_ms + INTERVAL_MS if self._news else self._due_ms
        if not due_ms or now < due_ms:
            return due_ms
        engine = self.source.engine
        watched: list[WatchedProcess] = engine.call(ListWatched())
        reply: CheckReply = engine.call(CheckAlerts(take_samples(watched)))
        self._news, self._checked_ms, self._due_ms = False, now, reply.next_ms
        return self._due_ms
