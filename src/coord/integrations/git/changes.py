"""The files that differ from HEAD, and the paths that locks cover."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from coord.core.locks.commands import LockInfo
from coord.core.locks.paths import Pattern, covers, fold, literal_path, parse_pattern
from coord.integrations.git.run import Git, nul_terminated

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
STAND_IN = "\ufffd"
"""Stands for characters that no lock can name; a lock on the folder covers such names."""


class Change(NamedTuple):
    """A file that differs from HEAD; a `new` one is untracked."""

    path: str
    new: bool


def changes(git: Git, paths: Iterable[str] = ()) -> list[Change]:
    """Return the files that differ from HEAD, staged or not, new ones included, ignored ones not."""
    asked = (
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=dirty",
    )
    entries = git.must(*asked, "--", *paths, GIT_LITERAL_PATHSPECS="1").names
    return [Change(entry[3:], entry.startswith("??")) for entry in entries]


class CoveredPaths:
    """The paths that resources (`file:…`) cover; resources without wildcards are found by name."""

    def __init__(self, resources: Iterable[str]) -> None:
        self._literal: dict[tuple[str, ...], str] = {}
        self._globs: list[tuple[Pattern, str]] = []
        for resource in resources:
            for pattern in parse_pattern(resource.removeprefix("file:")):
                if pattern.literal:
                    self._literal[pattern.directory] = resource
                else:
                    self._globs.append((pattern, resource))

    def __contains__(self, path: str) -> bool:
        return self.covering(path) is not None

    def covering(self, path: str) -> str | None:
        """Return a resource that covers a path."""
        shown = _CONTROL.sub(STAND_IN, path)
        names = tuple(fold(shown).split("/"))
        for end in range(len(names) + 1):
            if names[:end] in self._literal:
                return self._literal[names[:end]]
        return next(
            (resource for pattern, resource in self._globs if covers(pattern, literal_path(shown))), None
        )


def literal_name(resource: str) -> str | None:
    """Return the path of a resource without wildcards; None if it has wildcards."""
    pattern = parse_pattern(resource.removeprefix("file:"))[0]
    return re.sub(r"\\(.)", r"\1", pattern.spelled) if pattern.literal else None


def pathspecs(paths: Iterable[str]) -> bytes:
    """Return paths as pathspecs for a file: literal, and from the top of the worktree."""
    return nul_terminated(f":(top,literal){path}" for path in paths)


def write_locks(locks: Iterable[LockInfo]) -> list[LockInfo]:
    """Return the locks that allow writing files."""
    return [lock for lock in locks if lock.scope == "file" and lock.mode != "read"]
