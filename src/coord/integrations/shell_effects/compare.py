"""Compare a worktree before and after a call; lock free files and report overwrites."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from coord.core.errors import CoordError, Invalid
from coord.core.locks.commands import BeginToolCall, LockInfo, LockReply, Outcome
from coord.host.repository import git_dir_of
from coord.integrations.git.clean_files import differing_from_head
from coord.integrations.git.run import Git
from coord.integrations.shell_effects.call_log import (
    Call,
    CallFolder,
    Calls,
    CallText,
    read_file,
    remove,
    write_file,
)
from coord.integrations.shell_effects.enforcement_files import (
    EnforcementCheck,
    enforcement_files,
    record_files,
)
from coord.integrations.shell_effects.held_files import (
    holders_of,
    overlapping,
    record_held,
    resource_like,
    resource_of,
)
from coord.integrations.shell_effects.saved_content import (
    SavedFile,
    drop_content,
    forget_content,
    save_content,
)
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
NOT_CHECKED = "coord: the changes of this call could not be checked: the state before it is not known"


class StateBefore(msgspec.Struct, frozen=True):
    """A worktree before a call, and the changed files in it that others hold."""

    state: WorktreeState
    held: dict[bytes, SavedFile] = {}
    enforcement: dict[bytes, SavedFile | None] = {}
    """The files that decide whether locks are enforced."""


class ShellCall:
    """A call in a worktree that may write any file."""

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
        self.edited: list[str] = []
        """The changed files that this call has locked, or had."""

    def record_state(self, watched: Sequence[str], calls: Calls, settings: Sequence[str]) -> None:
        """Record the state of the files before the call; `settings`: files with the hooks of tools."""
        remove(self._state)
        save_index(git_dir_of(self._git.folder), self._index)
        state = read_state(self._git, self._index, watched)
        held: dict[bytes, SavedFile] = {}
        with suppress(CoordError, OSError):  # without it, changes are still found
            held = record_held(self._connection, self._git, self._folder, state.files, calls)
        repository = self._connection.location.repository
        files = (
            [] if repository is None else enforcement_files(self._git.folder, repository.commondir, settings)
        )
        write_file(self._state, StateBefore(state, held, record_files(self._folder, files)))

    def compare_state(self, watched: Sequence[str], request: CallText, *, restore: bool) -> str:
        """Handle the changes since then, and return the notes for the agent."""
        try:
            before = read_file(self._state, StateBefore)
            with self._folder.lock_calls() as calls:
                mine = calls.find(self._name, self._session)
            if before is None or mine is None:
                return NOT_CHECKED
            check = EnforcementCheck(
                self._connection, self._git, self._folder, self._session, request.text, request.cwd
            )
            notes = check.check(before.enforcement)
            found = changes(self._git, self._index, before.state, watched)
            if found:
                notes.append(self._report_changes(found, before, mine, calls, request, restore=restore))
            return "\n".join(note for note in notes if note)
        finally:
            remove(self._state)
            remove(self._index)
            for file in self._folder.sweep(time.time()):
                drop_content(self._git, file)

    def _report_changes(
        self,
        found: list[Change],
        before: StateBefore,
        mine: Call,
        calls: Calls,
        request: CallText,
        *,
        restore: bool,
    ) -> str:
        """Lock changed files that are free, and check those that others hold."""
        names, unlockable = _resource_names(found[:CHANGES_MAX])
        texts = {**names, **unlockable}
        self._folders = {texts[path] for path in texts if os.path.isdir(f"{self._git.folder}/{path}")}
        holders = holders_of(self._connection, list(dict.fromkeys(texts.values())), self._folders)
        dirty = _differing_from_head(self._git.folder, list(texts))
        free = [path for path in dirty if path in names and names[path] not in holders]
        locked, taken = self._lock({path: names[path] for path in free[:LOCKS_MAX]})
        holders.update(taken)
        self.edited = [names[path] for path in locked]
        if any(call.shell for call in calls.concurrent_with(mine)):  # the other shell may have written it
            forget_content(self._git, self._folder, self._session, locked)
        else:
            save_content(self._git, self._folder, self._session, locked)
        notes: list[str] = []
        held = [change for change in found[:CHANGES_MAX] if texts.get(change.path) in holders]
        if held:
            from coord.integrations.shell_effects.attribution import Attribution  # slow to import

            attribution = Attribution(
                self._connection, self._git, self._folder, self._index, mine, calls, request
            )
            for change in held:
                attribution.add(
                    change,
                    holders[texts[change.path]],
                    before.held.get(os.fsencode(change.path)),
                    in_head=change.path not in dirty,
                )
            notes = attribution.report(restore=restore)
        unlocked = len(free[LOCKS_MAX:]) + len(found[CHANGES_MAX:])
        unlocked += sum(text not in holders for text in unlockable.values())
        if unlocked:
            notes.append(
                f"coord: this command changed {unlocked} more files, which are not locked: there are too "
                "many of them, or their names cannot be locked. Next: lock the files that you need."
            )
        return "\n".join(notes)

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
            exact=tuple(text for text in texts if text not in self._folders),
            call=self._name,
            lease_ms=LEASE_MS,
            worktree=self._git.folder,
            reason=REASON,
        )
        reply: LockReply = self._connection.call(command)
        return reply

    def _overlapping(self, texts: list[str], holder: LockInfo) -> list[str]:
        return overlapping(texts, holder, self._connection.location.repository_id, self._folders)


def _resource_names(found: Sequence[Change]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the resources of files by path, and like ones for files that cannot be locked."""
    names: dict[str, str] = {}
    unlockable: dict[str, str] = {}
    for change in found:
        try:
            names[change.path] = resource_of(change.path)
        except Invalid:
            unlockable[change.path] = resource_like(change.path)
    return names, unlockable


def _differing_from_head(worktree: str, paths: list[str]) -> list[str]:
    """Return the files that differ from HEAD; clean files need no lock."""
    found: list[str] = []
    for start in range(0, len(paths), CHECKED_AT_ONCE):
        some = paths[start : start + CHECKED_AT_ONCE]
        dirty = differing_from_head(worktree, some)
        found += some if dirty is None else dirty
    return found
