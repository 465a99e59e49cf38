"""Commits that follow each other without a pause. A snapshot is in their way, so it waits a while for one.

It waits for bytes, not for entries: a few large ones are read fast when the store is opened, many are not.
"""

import math

from coord.stores.server_clock import uptime_ms

PAUSE_MS = 100
PATIENCE = 3


class Burst:
    """When the last commit was."""

    def __init__(self) -> None:
        self._last_ms = -math.inf

    def patience(self) -> int:
        """Note a commit; return how many bytes of the log count as one: after a pause each counts."""
        before, self._last_ms = self._last_ms, uptime_ms()
        return PATIENCE if self._last_ms - before < PAUSE_MS else 1
