"""Compare a worktree before and after a shell command; lock free files and report overwrites."""

import os
import time
from collections.abc import Sequence

from coord.core.errors import Invalid
from coord.core.locks.commands import BeginToolCall, CheckLocks, CheckReply, LockInfo, LockReply, Outcome
from coord.core.locks.paths import literal_path
from coord.core.locks.resources import parse_resource
from coord.host.repository import git_dir_of
from coord.integrations.git.clean_files import differing_from_head
from coord.integrations.git.run import Git
from coord.integrations.shell_effects.attribution import Attribution
from coord.integrations.shell_effects.call_log import Call, CallFolder, Calls, read_file, remove, write_file
from coord.integrations.shell_effects.saved_content import drop_content, save_content
from coord.integrations.shell_effects.worktree_state import (
    Change,
    WorktreeState,
    changes,
    read_state,
    save_index,
)
from coord.sdk.client.connection import Connection

CHANGES_MAX = 1024
LOCKS_MAX = 256
CHECKED_AT_ONCE = 256
LOCKED_AT_ONCE = 64
LEASE_MS = 660_000
REASON = "changed by a shell command"


class ShellCall:
    """A shell call in a worktree."""

    def __init__(self, connection: Connection, worktree: str, session: str, name: str) -> None:
        self._connection = connection
        self._git = Git(worktree)
        self._folder = CallFolder(connection.location.folder, worktree)
        self._session = session
        self._name = name
        self._state = self._folder.file("before", session, name)
        self._index = self._folder.file("index", session, name)
        self._folders: set[str] = set()
        """Changed paths that are not files: nested repositories."""

    def record_state(self, watched: Sequence[str]) -> None:
        """Record the state of the files before the call."""
        remove(self._state)
        save_index(git_dir_of(self._git.folder), self._index)
        write_file(self._state, read_state(self._git, self._index, watched))

    def compare_state(self, watched: Sequence[str], *, restore: bool) -> str:
        """Handle the changes since then, and return the notes for the agent."""
        try:
            state = read_file(self._state, WorktreeState)
            found = [] if state is None else changes(self._git, self._index, state, watched)
            with self._folder.lock_calls() as calls:
                mine = calls.find(self._name, self._session)
            return (
                self._report_changes(found, mine, calls, restore=restore)
                if found and mine is not None
                else ""
            )
        finally:
            remove(self._state)
            remove(self._index)
            for file in self._folder.sweep(time.time()):
                drop_content(self._git, file)

    def _report_changes(self, found: list[Change], mine: Call, calls: Calls, *, restore: bool) -> str:
        """Lock changed files that are free, and check those that others hold."""
        names, unlockable = _resource_names(found[:CHANGES_MAX])
        self._folders = {names[path] for path in names if os.path.isdir(f"{self._git.folder}/{path}")}
        holders = self._holders(list(names.values()))
        dirty = _differing_from_head(self._git.folder, [path for path in names if names[path] not in holders])
        locked, taken = self._lock({path: names[path] for path in dirty[:LOCKS_MAX]})
        holders.update(taken)
        if not any(
            call.shell for call in calls.concurrent_with(mine)
        ):  # otherwise another shell may have written it
            save_content(self._git, self._folder, self._session, locked)
        attribution = Attribution(self._connection, self._git, self._folder, self._index, mine, calls)
        for change in found[:CHANGES_MAX]:
            if names.get(change.path) in holders:
                attribution.add(change, holders[names[change.path]])
        notes = attribution.report(restore=restore)
        unlocked = len(dirty[LOCKS_MAX:]) + len(unlockable) + len(found[CHANGES_MAX:])
        if unlocked:
            notes.append(
                f"coord: this command changed {unlocked} more files, which are not locked: there are too "
                "many of them, or their names cannot be locked. Next: lock the files that you need."
            )
        return "\n".join(notes)

    def _holders(self, texts: list[str]) -> dict[str, list[LockInfo]]:
        """Return the locks that block writing these files."""
        caller, repository = self._connection.caller, self._connection.location.repository_id
        found: dict[str, list[LockInfo]] = {}
        for start in range(0, len(texts), CHECKED_AT_ONCE):
            some = texts[start : start + CHECKED_AT_ONCE]
            check = CheckLocks(caller, repository, tuple(some), "write", exact=self._files(some))
            checked: CheckReply = self._connection.call(check)
            for lock in checked.holders:
                for text in self._overlapping(some, lock):
                    found.setdefault(text, []).append(lock)
        return found

    def _lock(self, names: dict[str, str]) -> tuple[list[str], dict[str, list[LockInfo]]]:
        """Lock changed files; return those, and the holders of files that others have just locked."""
        locked: list[str] = []
        taken: dict[str, list[LockInfo]] = {}
        paths = list(names)
        for start in range(0, len(paths), LOCKED_AT_ONCE):
            some = paths[start : start + LOCKED_AT_ONCE]
            for _ in range(len(some) + 1):
                reply = self._try_lock([names[path] for path in some])
                if reply.ok:
                    locked += some
                    break
                if (
                    reply.outcome is Outcome.CHANGED
                ):  # refused once because the file changed, which this call did
                    continue
                lost = (
                    []
                    if reply.holder is None
                    else self._overlapping([names[path] for path in some], reply.holder)
                )
                taken.update({text: [reply.holder] for text in lost if reply.holder is not None})
                some = [path for path in some if names[path] not in lost]
                if not lost or not some:
                    break
        return locked, taken

    def _try_lock(self, texts: list[str]) -> LockReply:
        command = BeginToolCall(
            self._connection.caller,
            self._connection.location.repository_id,
            tuple(texts),
            exact=self._files(texts),
            call=self._name,
            lease_ms=LEASE_MS,
            worktree=self._git.folder,
            reason=REASON,
        )
        reply: LockReply = self._connection.call(command)
        return reply

    def _overlapping(self, texts: list[str], holder: LockInfo) -> list[str]:
        """Return the resources that a lock overlaps."""
        repository = self._connection.location.repository_id
        (held,) = parse_resource(holder.resource, repository, holder.exact)
        return [
            text
            for text in texts
            if held.overlaps(parse_resource(text, repository, exact=text not in self._folders)[0])
        ]

    def _files(self, texts: list[str]) -> tuple[str, ...]:
        return tuple(text for text in texts if text not in self._folders)


def _resource_names(found: Sequence[Change]) -> tuple[dict[str, str], list[str]]:
    """Return the resources of files by path, and the files that cannot be locked."""
    names: dict[str, str] = {}
    unlockable: list[str] = []
    for change in found:
        try:
            text = f"file:{literal_path(change.path).spelled}"
            parse_resource(text, "any")
            names[change.path] = text
        except Invalid:
            unlockable.append(change.path)
    return names, unlockable


def _differing_from_head(worktree: str, paths: list[str]) -> list[str]:
    """Return the files that differ from HEAD; clean files need no lock."""
    found: list[str] = []
    for start in range(0, len(paths), CHECKED_AT_ONCE):
        some = paths[start : start + CHECKED_AT_ONCE]
        dirty = differing_from_head(worktree, some)
        found += some if dirty is None else dirty
    return found
