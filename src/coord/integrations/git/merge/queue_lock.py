"""The lock of the merge queue: each merge is a use of it that names its process.

If a merge is killed together with its watchdog, its use stays. A session that repeats the merge would then
keep the lock, so it first ends the uses of its dead merges.
"""

import os
import re
from contextlib import suppress

import msgspec

from coord.core.errors import CoordError
from coord.core.identity import ProcessState
from coord.core.keys import digest
from coord.core.locks.commands import ListLocks, ReleaseLocks
from coord.core.locks.uses import guard_use
from coord.host.processes import describe, probe
from coord.sdk.client.client import Client

LOCK = "name:pr-merge-queue"
LOCK_TTL_S = 60.0
_USE = re.compile(r"merge-([0-9]+)-([0-9]+)-([0-9a-f]+)-[0-9a-f]+")


def use_name() -> str:
    """Return the name of this process's use."""
    process = describe(os.getpid())
    start, where = (process.start, _where()) if process else (0, "0")
    return f"merge-{os.getpid()}-{start}-{where}-{os.urandom(4).hex()}"


def release_dead_uses(client: Client) -> None:
    """End the uses of this session's merges whose process is proven dead."""
    for lock in client.call(ListLocks(client.caller, own=True)):
        if lock.resource != LOCK:
            continue
        for use in lock.uses:
            if _is_dead(use):
                command = ReleaseLocks(client.caller, client.location.repository_id, (LOCK,), use=use)
                with suppress(CoordError):  # it has expired
                    client.call(command)


def _is_dead(use: str) -> bool:
    found = _USE.fullmatch(use.removeprefix(guard_use("")))
    process = describe(os.getpid())
    if not found or process is None or found[3] != _where():
        return False
    other = msgspec.structs.replace(process, pid=int(found[1]), start=int(found[2]))
    return probe(other).life is ProcessState.DEAD


def _where() -> str:
    """Return a short name for this machine, boot and pid namespace."""
    process = describe(os.getpid())
    return digest(f"{process.machine} {process.boot} {process.namespace}")[:12] if process else "0"
