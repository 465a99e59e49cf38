"""The clock of this machine, for stores without a server."""

import time

_newest_ms = 0


def uptime_ms() -> float:
    """Return a time that never goes back; it includes suspended time if the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) * 1000


def host_now_ms() -> int:
    """Return milliseconds since 1970; never less than an earlier result in this process."""
    global _newest_ms
    _newest_ms = max(_newest_ms, time.time_ns() // 1_000_000)
    return _newest_ms
