"""Keep states of the page as the log grows, so that the past is known after a trim and a restart.

A state is made from the one before and the entries in between, which are read again for that; so nothing is
remembered here, and an event costs nothing.
"""

import os

from coord.followers.follower import LocalFollower, LogSource
from coord.sdk.log_reader import newest_offset
from coord.sdk.page.kept_states import kept_states
from coord.sdk.page.past import EVERY, PastStates

PAUSE_MS = 1000
"""Between two states, if many are missing: others need the processor, too."""


class PastStatesFollower(LocalFollower):
    """Keeps a state every `EVERY` entries beside the pin of the store."""

    name = "page"
    about = "states of the page for the time after a trim"

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self._past = PastStates(source.log, kept_states(source.location, source.tenant))
        self._next = 0

    @classmethod
    def wanted(cls, source: LogSource) -> bool:
        return bool(source.location.store_id) and os.path.isdir(source.location.folder)

    def resume(self) -> int:
        return newest_offset(self.source.log)

    def act(self, now: int) -> int:
        """Keep one state, if the newest is far behind the end of the log."""
        if self.offset < self._next:
            return 0
        self._next = self._past.keep_next(self.offset) + EVERY
        return now + PAUSE_MS if self.offset >= self._next else 0
