"""Find out whether a command overwrote files that others hold, notify the holders, and restore the files.

If the author of a change is in doubt, the holder is only warned and the file stays as it is.
"""

import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from coord.core.errors import CoordError
from coord.core.locks.commands import LockInfo
from coord.core.messages.commands import SendMessage
from coord.integrations.git.run import Git
from coord.integrations.git.salvage.salvage import save_to_ref
from coord.integrations.shell_effects.call_log import Call, CallFolder, Calls
from coord.integrations.shell_effects.saved_content import (
    BYTES_MAX,
    SavedFile,
    content_before,
    is_blob,
    mark_restored,
    restore_content,
    saved_by,
)
from coord.integrations.shell_effects.worktree_state import Change, FileStat, file_stat, read_content
from coord.sdk.client.connection import Connection

NAMED_MAX = 20
PATH_CHARS_MAX = 120


class Finding(NamedTuple):
    """A changed file that another session holds; without a `doubt` the command overwrote it."""

    change: Change
    holders: Sequence[LockInfo]
    doubt: str
    saved: SavedFile | None
    now: bytes | None

    @property
    def name(self) -> str:
        """The path, cut to a readable length."""
        return self.change.path[:PATH_CHARS_MAX]


class Attribution:
    """Collects the files of other holders that one call changed."""

    def __init__(
        self, connection: Connection, git: Git, folder: CallFolder, index: str, mine: Call, calls: Calls
    ) -> None:
        self._connection = connection
        self._git = git
        self._folder = folder
        self._index = index
        self._mine = mine
        self._calls = calls
        self._found: list[Finding] = []

    def add(self, change: Change, holders: Sequence[LockInfo]) -> None:
        """Add a changed file, unless it has the content that its holder gave it."""
        owners = list(dict.fromkeys(lock.owner for lock in holders))
        left = [
            saved for owner in owners if (saved := saved_by(self._folder, owner).of(change.path)) is not None
        ]
        if any(self._is_as_left(change, saved) for saved in left):
            return
        if change.was_clean and change.now is not None and self._is_as_indexed(change):
            return
        saved = left[0] if len(left) == 1 else None
        now = read_content(self._git.folder, change.path, BYTES_MAX)
        doubt = self._doubt_of_calls(owners) or self._doubt_of_content(change, saved, now)
        self._found.append(Finding(change, holders, doubt, saved, now))

    def report(self, *, restore: bool) -> list[str]:
        """Notify the holders, restore proven overwrites if wanted, and return the notes for the agent."""
        notes: list[str] = []
        for finding in self._found:
            salvage_ref = ""
            with suppress(CoordError):  # a file that git cannot save is not restored, but reported
                salvage_ref = self._restore(finding) if restore and not finding.doubt else ""
            notes.append(self._agent_note(finding, salvage_ref))
            self._notify_holders(finding, salvage_ref)
        if len(notes) > NAMED_MAX:
            notes = [
                *notes[:NAMED_MAX],
                f"coord: this command changed {len(notes) - NAMED_MAX} more files that others hold.",
            ]
        return notes

    def _is_as_left(self, change: Change, saved: SavedFile) -> bool:
        """Whether a file still has the last content of its holder."""
        if change.now is None:
            return False
        if saved.file_stat.same_stat(change.now):
            return True
        return (
            _git_mode(saved.file_stat) == _git_mode(change.now)
            and is_blob(self._git, change.path, saved.blob) is True
        )

    def _is_as_indexed(self, change: Change) -> bool:
        """Whether a file still has the content of the old index."""
        words = ("diff", "--quiet", "--no-ext-diff", "--no-textconv", "--", change.path)
        done = self._git.run(*words, GIT_INDEX_FILE=self._index, GIT_LITERAL_PATHSPECS="1")
        return done.code == 0

    def _doubt_of_calls(self, owners: list[str]) -> str:
        """Return why another call may have changed the file, or ""."""
        others = self._calls.concurrent_with(self._mine)
        if not self._calls.complete_since(self._mine):
            return "too many calls ran at the same time"
        if any(call.session in owners for call in others):
            return "the holder's own tools ran at the same time"
        if any(call.shell for call in others):
            return "another shell command ran at the same time"
        if any(owner not in self._calls.sessions for owner in owners):
            return "hooks do not see the writes of the holder here"
        return ""

    def _doubt_of_content(self, change: Change, saved: SavedFile | None, now: bytes | None) -> str:
        """Return why the contents cannot be compared, or ""."""
        if now is None and change.now is not None:
            return "the file is too large to compare"
        if saved is None and not change.was_clean and change.was is not None:
            return "the former content is unknown"
        return ""

    def _restore(self, finding: Finding) -> str:
        """Salvage the new content and restore the former one; return the salvage ref, or ""."""
        change = finding.change
        former = content_before(self._git, change, self._index, finding.saved)
        if former is None:
            return ""
        why = f"overwrote a file that {_holder_name(finding)} holds"
        ref = save_to_ref(self._git, self._mine.session, [change.path], why)
        saved_in = ref or "HEAD"
        if not _unchanged(change.now, file_stat(self._git.folder, change.path)):
            return ""
        if not restore_content(self._git, change.path, *former, finding.now):
            return ""
        for owner in dict.fromkeys(lock.owner for lock in finding.holders):
            mark_restored(self._folder, self._git, owner, change.path)
        return saved_in

    def _agent_note(self, finding: Finding, salvage_ref: str) -> str:
        lock = finding.holders[0]
        held = f"{finding.name}, which {_holder_name(finding)} holds" + (
            f" for: {lock.reason}" if lock.reason else ""
        )
        if finding.doubt:
            why = f"Author unknown: {finding.doubt}. Nothing was restored."
            return f"coord: {held}, changed while this command ran. {why}"
        notes = f"coord: this command changed {held}. The holder has a message about it."
        if salvage_ref:
            return (
                f"{notes} coord restored the file; the content that this command wrote is in {salvage_ref}."
            )
        return f"{notes} coord did not restore it. Next: stop writing it; `coord lock` waits for it."

    def _notify_holders(self, finding: Finding, salvage_ref: str) -> None:
        """Notify the holders, except one whose own tools may have made the change."""
        at_work = {call.session for call in self._calls.concurrent_with(self._mine)}
        for owner in dict.fromkeys(lock.owner for lock in finding.holders):
            if finding.doubt and owner in at_work:
                continue
            message = SendMessage(
                self._connection.caller,
                to=owner,
                kind="warn" if finding.doubt else "overwrite",
                subject=f"{finding.name} was changed, author unknown"
                if finding.doubt
                else f"{finding.name} was overwritten",
                body=self._message_body(finding, salvage_ref),
                blob={
                    "path": finding.change.path,
                    "worktree": self._git.folder,
                    "restored": bool(salvage_ref),
                },
            )
            with suppress(CoordError):  # the holder is gone, or its inbox is full
                self._connection.call(message)

    def _message_body(self, finding: Finding, salvage_ref: str) -> str:
        mine = self._mine.session
        if finding.doubt:
            ran = f"It changed while a shell command of session {mine} ran"
            return f"{ran}; {finding.doubt}. Nothing was restored."
        notes = f"A shell command of session {mine} changed it without a lock."
        if salvage_ref:
            return f"{notes} coord restored it; the other content is in {salvage_ref}."
        if finding.saved is not None:
            last = f"Your last content: git cat-file blob {finding.saved.blob}"
            return f"{notes} It was not restored. {last}"
        return f"{notes} It was not restored."


def _holder_name(finding: Finding) -> str:
    lock = finding.holders[0]
    return f"{lock.agent} (session {lock.owner})" if lock.agent else f"session {lock.owner}"


def _git_mode(found: FileStat) -> tuple[int, bool]:
    """Return the parts of a file's mode that git stores."""
    return stat.S_IFMT(found.mode), bool(found.mode & 0o100)


def _unchanged(before: FileStat | None, now: FileStat | None) -> bool:
    return before is None and now is None if now is None else now.same_stat(before)
