"""The clock of this machine, for stores without a server."""

import time

_newest_ms = 0


def host_now_ms() -> int:
    """Return milliseconds since 1970; never less than an earlier result in this process."""
    global _newest_ms
    _newest_ms = max(_newest_ms, time.time_ns() // 1_000_000)
    return _newest_ms
