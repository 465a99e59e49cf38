"""The clock of this machine, for stores that have none of their own."""

import time

_newest_ms = 0


def host_now_ms() -> int:
    """Return milliseconds since the epoch; never less than an earlier answer in this process."""
    global _newest_ms
    _newest_ms = max(_newest_ms, time.time_ns() // 1_000_000)
    return _newest_ms
