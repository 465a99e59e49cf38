"""Start the hub of this user when one is needed, if the user wants that (`coord init --hub`).

The request is a file in the user's state folder, which agents may not write. A repository cannot ask for
it: its `coord.toml` comes with a clone, and would start a process.
"""

import os
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from coord.host.consent import state_folder
from coord.host.runtime.hub_socket import runtime_folder

REQUEST = "hub.start"
LOG = "hub.log"
LOCK = "hub.lock"
"""In the runtime folder: locked while a hub runs."""
ATTEMPT = "hub.starting"
ATTEMPT_S = 30.0
"""A hub that does not start is tried again after this time."""
IDLE = "30m"
LOG_BYTES_MAX = 1024 * 1024
KEPT = frozenset(("HOME", "PATH", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR"))
KEPT_PREFIXES = ("LC_", "XDG_", "PG", "MYSQL_", "SSL_CERT_")
"""What a hub needs of the environment in which it is started: nothing that belongs to an agent."""


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Return whether the user wants a hub to be started when one is needed."""
    if environ.get("COORD_HUB") or "CODEX_SANDBOX" in environ:
        return False
    try:
        status = os.lstat(f"{state_folder(environ)}/{REQUEST}")
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()


def want(environ: Mapping[str, str], *, wanted: bool) -> None:
    """Remember whether the user wants a hub to be started when one is needed."""
    from coord.stores.local.folders import make_private_folder  # noqa: PLC0415 - only `coord init` does this

    path = f"{state_folder(environ)}/{REQUEST}"
    if not wanted:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    make_private_folder(os.path.dirname(path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "w", encoding="ascii") as file:
        file.write("auto\n")


def start_hub(environ: Mapping[str, str], folder: str) -> bool:
    """Start a hub in a repository and return at once; False if that is not wanted, or was just tried.

    The hub is no child of this process, has none of its files, and ends when nobody has used it for a while.
    """
    if not is_wanted(environ):
        return False
    runtime = runtime_folder(environ, make=True)
    if not runtime or hub_runs(runtime) or not _first_attempt(runtime):
        return False
    log = _open_log(environ)
    if log < 0:
        return False
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        command = [sys.executable, "-m", "coord", "serve", "--idle", IDLE]
        words = ["sh", "-c", 'cd "$0" && "$@" &', folder, *command]  # sh ends, the hub stays
        ends = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate((nothing, log, log))]
        kept = {
            name: value for name, value in environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)
        }
        shell = os.posix_spawn("/bin/sh", words, kept, file_actions=ends, setsid=True)
    except OSError:
        return False
    finally:
        os.close(nothing)
        os.close(log)
    os.waitpid(shell, 0)
    return True


def hub_runs(runtime: str) -> bool:
    """Return whether a hub runs, of whatever version: it has the lock."""
    import fcntl  # noqa: PLC0415 - most processes start no hub

    try:
        lock = os.open(f"{runtime}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _first_attempt(runtime: str) -> bool:
    """Return whether no other process has tried to start a hub within ATTEMPT_S."""
    path = f"{runtime}/{ATTEMPT}"
    with suppress(OSError):
        if not 0 <= time.time() - os.lstat(path).st_mtime < ATTEMPT_S:
            os.unlink(path)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return False
    return True


def _open_log(environ: Mapping[str, str]) -> int:
    """Return the private log of the hub, emptied if it is long; -1 if it cannot be written."""
    path = f"{state_folder(environ)}/{LOG}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        log = os.open(path, flags, 0o600)
        if os.fstat(log).st_size > LOG_BYTES_MAX:
            os.ftruncate(log, 0)
    except OSError:
        return -1
    return log
