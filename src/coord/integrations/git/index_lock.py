"""Remove a stale index lock of git, but only if no process can hold it."""

import os
import time
from contextlib import suppress

from coord.core.errors import Busy

STALE_S = 60.0
"""A younger lock may belong to a git that is just starting."""
PROCESSES = "/proc"


def remove_stale(lock: str, worktree: str) -> None:
    """Remove the lock of a killed git; raise with the name of a process that may hold it."""
    if not os.path.lexists(lock):
        return
    if time.time() - os.lstat(lock).st_mtime < STALE_S:
        raise Busy(f"git is running in {worktree}", hint="try again in a minute")
    found = holder(os.path.realpath(lock), os.path.realpath(worktree))
    if found:
        raise Busy(
            f"{found} may hold {lock}", hint="wait for it; if no git is running there, remove that file"
        )
    with suppress(FileNotFoundError):
        os.unlink(lock)


def holder(lock: str, worktree: str) -> str:
    """Return the process that holds a lock or may hold it: git closes the file while its hooks run."""
    if not os.path.isdir(f"{PROCESSES}/self/fd"):
        return "some process (coord cannot list processes here)"
    folders = (worktree, os.path.dirname(lock))
    for pid in filter(str.isdigit, os.listdir(PROCESSES)):
        process_folder, is_git = f"{PROCESSES}/{pid}", True
        try:
            with open(f"{process_folder}/comm", encoding="utf-8", errors="replace") as file:
                is_git = file.read().startswith("git")
            if is_git and f"{os.readlink(f'{process_folder}/cwd')}/".startswith(
                tuple(f"{each}/" for each in folders)
            ):
                return f"git (process {pid})"
            if any(
                _leads_to(f"{process_folder}/fd/{each}", lock) for each in os.listdir(f"{process_folder}/fd")
            ):
                return f"process {pid}"
        except PermissionError:
            if is_git:
                return f"git (process {pid} of another user)"
        except OSError:  # the process has ended
            continue
    return ""


def _leads_to(link: str, path: str) -> bool:
    with suppress(FileNotFoundError):
        return os.readlink(link) == path
    return False
