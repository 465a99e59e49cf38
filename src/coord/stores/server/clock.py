"""The clock of a server, estimated as an offset to our uptime and corrected by every answer."""

import threading

from coord.stores.local.clock import uptime_ms


class ServerClock:
    """Milliseconds since 1970 by the server's clock; never less than an earlier result."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead: float | None = None
        self._newest = 0

    def observe(self, server_ms: int, asked: float) -> None:
        """Correct the estimate: the server's clock was at `server_ms` at some time since uptime `asked`."""
        upper, lower = server_ms - asked, server_ms - uptime_ms()
        with self._lock:
            self._ahead = lower if self._ahead is None else min(max(self._ahead, lower), upper)

    def now(self) -> int:
        """Return the estimated time of the server."""
        with self._lock:
            self._newest = max(self._newest, int(uptime_ms() + (self._ahead or 0)))
            return self._newest
