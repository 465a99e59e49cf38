"""The clock of a server without asking it: how far it is ahead of our uptime, corrected by each answer."""

import threading
import time


def uptime_ms() -> float:
    """Return time that only moves on; what the machine slept through counts too where that is known."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) * 1000


class ServerClock:
    """Milliseconds since the epoch by the server's clock; never less than an earlier answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead: float | None = None
        self._newest = 0

    def told(self, server_ms: int, asked: float) -> None:
        """Note that the server's clock was at `server_ms` at some time since the uptime `asked`."""
        most, least = server_ms - asked, server_ms - uptime_ms()
        with self._lock:
            self._ahead = least if self._ahead is None else min(max(self._ahead, least), most)

    def now(self) -> int:
        with self._lock:
            self._newest = max(self._newest, int(uptime_ms() + (self._ahead or 0)))
            return self._newest
