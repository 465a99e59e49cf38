"""Our commits that follow each other without a pause.

A snapshot is in their way, so it waits a while for one. It waits for bytes, not for entries: a few large ones
are read fast when the store is opened, many are not.

While nobody else comes between them, a hasty load takes what we know for the newest: our last commit, a
moment ago, was right behind it. But now and then it looks: whoever is far away gets in only while we do.
"""

import math

from coord.stores.server.clock import uptime_ms

PAUSE_MS = 100
PATIENCE = 3
HASTY_MOST = 3


class Burst:
    """When our last commit was, and whether the one before it was ours, too."""

    def __init__(self) -> None:
        self._last_ms = -math.inf
        self._newest = -1
        self._alone = False
        self._since_look = 0
        self.patience = 1
        """How many bytes of the log count as one: after a pause each counts."""

    def commit(self, offset: int) -> None:
        """Note a commit of ours."""
        before, self._last_ms = self._last_ms, uptime_ms()
        self.patience = PATIENCE if self._last_ms - before < PAUSE_MS else 1
        self._alone, self._newest = offset == self._newest + 1, offset

    def goes_on(self, offset: int) -> bool:
        """Whether the last two up to this offset were ours, and not long ago; no, after a few in a row."""
        ours = self._alone and offset == self._newest and uptime_ms() - self._last_ms < PAUSE_MS
        self._since_look = self._since_look + 1 if ours and self._since_look < HASTY_MOST else 0
        return self._since_look > 0
