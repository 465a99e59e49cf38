"""Commits that follow each other without a pause. A snapshot is in their way, so it waits a while for one."""

import math

from coord.stores.server_clock import uptime_ms

PAUSE_MS = 100
PATIENCE = 3


class Burst:
    """When the last commit was."""

    def __init__(self) -> None:
        self._last_ms = -math.inf

    def patience(self) -> int:
        """Note a commit; return how many times over a snapshot has to be due now: once after a pause."""
        before, self._last_ms = self._last_ms, uptime_ms()
        return PATIENCE if self._last_ms - before < PAUSE_MS else 1
