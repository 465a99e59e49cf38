"""Detects that this process is the only writer of a log.

While it is, (1) a load may skip the round trip that asks for the newest entry, because we wrote it, and (2)
snapshots are postponed until the writes pause. Every fourth load still asks the server: otherwise a slow
remote writer would rarely get a commit in (decision 0036).

Snapshots wait for bytes, not for entries: a few large entries are read fast when the store is opened, many
small ones are not.
"""

import math

from coord.stores.local.clock import uptime_ms

RECENT_MS = 100
SNAPSHOT_DELAY = 3
STALE_READS_MAX = 3


class SoleWriter:
    """The time of our last commit, and whether the commit before it was ours too."""

    def __init__(self) -> None:
        self._last_ms = -math.inf
        self._newest = -1
        self._adjacent = False
        self._stale_reads = 0
        self.snapshot_delay = 1
        """The bytes of the log are divided by this before a snapshot is due; 1 after a pause."""

    def commit(self, offset: int) -> None:
        """Record one of our commits."""
        before, self._last_ms = self._last_ms, uptime_ms()
        self.snapshot_delay = SNAPSHOT_DELAY if self._last_ms - before < RECENT_MS else 1
        self._adjacent, self._newest = offset == self._newest + 1, offset

    def allows_stale_read(self, offset: int) -> bool:
        """Return whether the two newest commits are ours and recent; at most three times in a row."""
        ours = self._adjacent and offset == self._newest and uptime_ms() - self._last_ms < RECENT_MS
        self._stale_reads = self._stale_reads + 1 if ours and self._stale_reads < STALE_READS_MAX else 0
        return self._stale_reads > 0
