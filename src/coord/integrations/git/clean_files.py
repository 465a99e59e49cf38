"""Find hook locks on files that are as in HEAD: these locks are no longer needed."""

import os
from collections.abc import Sequence

from coord.core.errors import CoordError
from coord.core.locks.commands import LockInfo
from coord.host.paths import path_in_resource
from coord.integrations.deadline import deadline_s
from coord.integrations.git.run import Git

GIT_SHARE = 2 / 7
"""The part of a hook's deadline that git may use."""
FILES_MAX = 256
"""How many files are checked at once."""


def clean_locks(held: Sequence[LockInfo]) -> list[str]:
    """Return the hook locks whose files are clean in the worktree that the lock was taken for.

    If git fails, no file counts as clean: an unneeded lock ends with its lease.
    """
    found: list[str] = []
    for worktree in dict.fromkeys(lock.worktree for lock in held if lock.worktree):
        names = {
            path_in_resource(lock.resource): lock.resource
            for lock in held
            if lock.worktree == worktree and lock.resource.startswith("file:")
        }
        if names and os.path.isdir(worktree):
            some = list(names)[:FILES_MAX]
            dirty = differing_from_head(worktree, some)
            if dirty is not None:
                found += [names[name] for name in some if name not in dirty]
    return found


def differing_from_head(worktree: str, names: list[str]) -> list[str] | None:
    """Return the files that differ from HEAD; None if git fails."""
    changed = _changed(worktree, names)
    return None if changed is None else [name for name in names if _within(name, changed)]


def _changed(worktree: str, names: list[str]) -> set[str] | None:
    """Return the changed, new and ignored files among these; folders end with a slash."""
    words = ("--literal-pathspecs", "status", "--porcelain=v1", "-z", "--no-renames", "--ignored=traditional")
    try:
        running = Git(worktree).start(*words, "--untracked-files=all", "--", *names)
        return {entry[3:] for entry in running.result(deadline_s() * GIT_SHARE).names}
    except CoordError:
        return None


def _within(name: str, changed: set[str]) -> bool:
    folders = name.split("/")
    above = ("/".join(folders[:end]) + "/" for end in range(1, len(folders)))
    return name in changed or any(folder in changed for folder in above)
