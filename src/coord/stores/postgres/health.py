"""The checks of `coord doctor` on a Postgres server."""

import time
from collections.abc import Callable
from typing import Any

from coord.stores.health import Check, clock_check

SETTINGS = """
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, current_setting('server_version'),
    current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),
    current_setting('max_connections')::int, (SELECT sum(numbackends)::int FROM pg_stat_database),
    pg_is_in_recovery(), current_setting('transaction_read_only')
"""


def check_server(ask: Callable[[str], list[tuple[Any, ...]]]) -> list[Check]:
    """Check version, access, durability, connections and clock."""
    asked = time.time_ns() // 1_000_000
    row = ask(SETTINGS)[0]
    answered = time.time_ns() // 1_000_000
    server_ms, version, fsync, synchronous, full_pages, limit, used, standby, read_only = row
    settings = {"fsync": fsync, "synchronous_commit": synchronous, "full_page_writes": full_pages}
    off = [name for name, value in settings.items() if value == "off"]
    return [
        Check("version", well=True, text=f"Postgres {version}"),
        _access(standby=standby, read_only=read_only == "on"),
        Check(
            "durability",
            not off,
            ", ".join(f"{name} is {value}" for name, value in settings.items()),
            f"switch on {', '.join(off)}: a crash may undo commits that were answered" if off else "",
        ),
        Check(
            "connections",
            used < limit * 0.9,
            f"{used} of {limit} in use",
            ""
            if used < limit * 0.9
            else "raise max_connections: each process uses one, or two while it waits",
        ),
        clock_check(server_ms, asked, answered),
    ]


def _access(*, standby: bool, read_only: bool) -> Check:
    """Check that the server takes commits; what it says itself, not the disk behind it."""
    if standby:
        return Check("access", False, "this server is a standby", "connect to the primary", stops=True)
    if read_only:
        hint = "switch off default_transaction_read_only for the database or the role"
        return Check("access", False, "transactions are read-only", hint, stops=True)
    return Check("access", True, "the server takes commits")
