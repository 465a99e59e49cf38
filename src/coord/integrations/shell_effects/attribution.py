"""Find out which files of others a call overwrote, restore them, and notify both sides.

A file is restored only if its holder cannot have written it, or if the call has the lines that were written
(`evidence.py`). Otherwise the file stays as it is, both versions are kept, and both sides are notified.
"""

import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from coord.core.errors import CoordError
from coord.core.git_log import RecordRestore
from coord.core.locks.commands import LockInfo
from coord.core.messages.commands import SendMessage
from coord.core.messages.quoting import quote, quote_name
from coord.integrations.git.run import Git
from coord.integrations.shell_effects.call_log import (
    Call,
    CallFolder,
    Calls,
    CallText,
    sessions_elsewhere,
)
from coord.integrations.shell_effects.evidence import wrote_it
from coord.integrations.shell_effects.restore import (
    NO_FILE,
    Former,
    Restored,
    Restorer,
    former_files,
    index_entries,
    restore_index,
)
from coord.integrations.shell_effects.saved_content import (
    BYTES_MAX,
    SavedFile,
    is_blob,
    mark_restored,
    saved_by,
    show_saved,
)
from coord.integrations.shell_effects.worktree_state import Change, FileStat, read_content
from coord.sdk.client.connection import Connection

NAMED_MAX = 20
PATH_CHARS_MAX = 120
READ = "read"


class Finding(NamedTuple):
    """A changed file that another session holds; without a `doubt` the call overwrote it."""

    change: Change
    holders: Sequence[LockInfo]
    doubt: str
    saved: SavedFile | None
    """The last content of the holder, or the one before the call."""
    is_new: bool
    """Whether there was no such file before the call."""

    @property
    def name(self) -> str:
        """The path, cut to a readable length."""
        return self.change.path[:PATH_CHARS_MAX]

    @property
    def owners(self) -> list[str]:
        """The holders, each once."""
        return list(dict.fromkeys(lock.owner for lock in self.holders))


class Attribution:
    """Collects the files of other holders that one call changed."""

    def __init__(
        self,
        connection: Connection,
        git: Git,
        folder: CallFolder,
        index: str,
        mine: Call,
        calls: Calls,
        request: CallText,
    ) -> None:
        self._connection = connection
        self._git = git
        self._folder = folder
        self._index = index
        self._mine = mine
        self._calls = calls
        self._request = request
        self._found: list[Finding] = []

    def add(
        self, change: Change, holders: Sequence[LockInfo], before: SavedFile | None, *, in_head: bool
    ) -> None:
        """Add a changed file, unless it has the content that its holder gave it.

        `before`: the file before the call, if it was saved. `in_head`: whether the file is as in HEAD now.
        """
        owners = list(dict.fromkeys(lock.owner for lock in holders))
        left = [
            saved for owner in owners if (saved := saved_by(self._folder, owner).of(change.path)) is not None
        ]
        if any(self._is_as_left(change, saved) for saved in left):
            return
        if change.was_clean and change.now is not None and self._is_as_indexed(change):
            return
        from_git = in_head and (change.was_clean or self._was_indexed(change, before))
        if from_git and all(self._is_elsewhere(lock) for lock in holders):
            return
        saved = _newest(left[0] if len(left) == 1 else None, before, change)
        is_new = change.was is None and not change.was_clean and saved is None
        doubt = self._doubt_of_holder(change, holders) or self._doubt_of_content(change, saved, is_new=is_new)
        if not doubt and from_git:
            doubt = "git has checked out the content of another commit"
        self._found.append(Finding(change, holders, doubt, saved, is_new))

    def report(self, *, restore: bool) -> list[str]:
        """Restore what the call overwrote if wanted, notify the holders, and return notes for the agent."""
        if not self._found:
            return []
        former = self._former()
        found = [self._with_evidence(each, former.get(each.change.path)) for each in self._found]
        done = self._restore([each for each in found if restore and not each.doubt], former)
        notes: list[str] = []
        for number, finding in enumerate(found):
            result = done.get(finding.change.path, Restored(done=False))
            kept = result.kept
            if not result.done:
                kept = self._keep(finding, former.get(finding.change.path))
            notes.append(self._agent_note(finding, result, kept))
            if number < NAMED_MAX:
                self._notify_holders(finding, result, kept)
        if len(notes) > NAMED_MAX:
            back = sum(each.done for each in done.values())
            more = f"this call changed {len(notes) - NAMED_MAX} more files that others hold"
            notes = [*notes[:NAMED_MAX], f"coord: {more}; {back} of {len(found)} are restored."]
        return notes

    def _is_as_left(self, change: Change, saved: SavedFile) -> bool:
        """Whether a file still has the last content of its holder."""
        if change.now is None:
            return False
        if saved.file_stat.same_stat(change.now):
            return True
        return (
            _kind_and_mode(saved.file_stat) == _kind_and_mode(change.now)
            and is_blob(self._git, change.path, saved.blob) is True
        )

    def _is_as_indexed(self, change: Change) -> bool:
        """Whether a file still has the content of the old index."""
        words = ("diff", "--quiet", "--no-ext-diff", "--no-textconv", "--", change.path)
        done = self._git.run(*words, GIT_INDEX_FILE=self._index, GIT_LITERAL_PATHSPECS="1")
        return done.code == 0

    def _was_indexed(self, change: Change, before: SavedFile | None) -> bool:
        """Whether a file had the content of the old index, although its stat differed."""
        entry = index_entries(self._git, self._index, [change.path]).get(change.path)
        return before is not None and entry is not None and entry[1] == before.blob

    def _is_elsewhere(self, lock: LockInfo) -> bool:
        """Whether the holder works in another worktree, so that it does not write this one."""
        if lock.owner in self._calls.sessions:
            return False
        if lock.worktree:
            return lock.worktree != self._git.folder
        return lock.owner in sessions_elsewhere(self._folder)

    def _doubt_of_holder(self, change: Change, holders: Sequence[LockInfo]) -> str:
        """Return why the holder may have changed the file itself, or ""."""
        here = [lock for lock in holders if lock.mode != READ and not self._is_elsewhere(lock)]
        owners = {lock.owner for lock in here}
        if owners and not self._calls.complete_since(self._mine):
            return "too many calls ran at the same time"
        if self._calls.may_have_written(self._mine, {*owners, ""}, change.path):
            return "the holder's own tools ran at the same time"
        if any(owner not in self._calls.sessions for owner in owners):
            return "hooks do not see the writes of the holder here"
        return ""

    def _doubt_of_content(self, change: Change, saved: SavedFile | None, *, is_new: bool) -> str:
        """Return why the former content is unknown, or ""."""
        if saved is not None or change.was_clean or is_new:
            return ""
        if change.was is not None and change.was.size > BYTES_MAX:
            return f"the former content is lost: it had {change.was.size} bytes, and coord keeps {BYTES_MAX}"
        return "the former content is unknown"

    def _former(self) -> dict[str, Former]:
        """Return the files as they were before the call, as far as that is known."""
        known = [each for each in self._found if each.saved is not None or each.change.was_clean]
        found = {each.change.path: NO_FILE for each in self._found if each.is_new}
        with suppress(CoordError, OSError):
            wanted = {each.change.path: each.saved for each in known}
            found.update(former_files(self._git, self._folder, self._index, wanted))
        return found

    def _with_evidence(self, finding: Finding, former: Former | None) -> Finding:
        """Return a finding without its doubt if the call itself shows that it wrote the file."""
        path = finding.change.path
        if not finding.doubt or former is None or self._calls.may_have_written(self._mine, {""}, path):
            return finding
        now = read_content(self._git.folder, path, BYTES_MAX)
        if now is None and finding.change.now is not None:
            return finding
        root = self._git.folder
        proven = wrote_it(self._request.text, self._request.cwd or root, root, path, former.content, now)
        return finding._replace(doubt="") if proven else finding

    def _restore(self, found: Sequence[Finding], former: dict[str, Former]) -> dict[str, Restored]:
        wanted = {each.change.path: former[each.change.path] for each in found if each.change.path in former}
        if not wanted:
            return {}
        names = list(dict.fromkeys(_holder_name(each) for each in found))
        why = f"overwrote {len(wanted)} file(s) of {', '.join(names[:3])}: {', '.join(list(wanted)[:3])}"
        seen = {each.change.path: each.change.now for each in found}
        done: dict[str, Restored] = {}
        with suppress(CoordError, OSError):  # what git cannot keep stays, and is reported
            done = Restorer(self._git, self._folder, self._mine.session).restore(wanted, seen, why)
        back = [each for each in found if done.get(each.change.path, Restored(done=False)).done]
        for each in back:
            for owner in each.owners:
                mark_restored(self._folder, self._git, owner, each.change.path)
        self._record(back)
        with suppress(CoordError):  # another git has the index; the files themselves are back
            restore_index(self._git, self._index, [each.change.path for each in back])
        return done

    def _record(self, back: Sequence[Finding]) -> None:
        """Record what was restored; the usual call restores nothing, and commits nothing."""
        if not back:
            return
        files = tuple(each.name for each in back[:NAMED_MAX])
        holders = tuple(dict.fromkeys(owner for each in back for owner in each.owners))[:NAMED_MAX]
        command = RecordRestore(self._connection.caller, files=files, file_count=len(back), holders=holders)
        with suppress(CoordError):  # the files are back, recorded or not
            self._connection.call(command)

    def _keep(self, finding: Finding, former: Former | None) -> str:
        """Keep the former content of a file that is not restored; return the command that shows it."""
        if former is None or (finding.change.now is None and former.content is None):
            return ""
        with suppress(CoordError, OSError):
            restorer = Restorer(self._git, self._folder, finding.owners[0])
            why = f"before a call of session {self._mine.session}"
            return restorer.keep(finding.owners[0], finding.change.path, former, why)
        return "" if finding.saved is None else show_saved(self._folder, finding.saved)

    def _agent_note(self, finding: Finding, result: Restored, kept: str) -> str:
        lock = finding.holders[0]
        held = f"{quote_name(finding.name)}, which {_holder_name(finding)} holds" + (
            f" for: {quote(lock.reason)}" if lock.reason else ""
        )
        if finding.doubt:
            why = f"Author unknown: {finding.doubt}. Nothing was restored."
            shown = f" The content before: `{kept}`." if kept else ""
            return f"coord: {held}, changed while this call ran. {why}{shown}"
        beside = ", or one that ran at the same time," if self._others(finding) else ""
        notes = f"coord: this command{beside} changed {held}. The holder has a message about it."
        if result.done:
            did = "coord removed the new file" if finding.is_new else "coord restored the file"
            yours = f" What was written: `{kept}`." if kept else ""
            return f"{notes} {did}.{yours} Next: `coord lock` waits for it."
        return f"{notes} coord did not restore it. Next: stop writing it; `coord lock` waits for it."

    def _others(self, finding: Finding) -> list[str]:
        """Return the other sessions whose commands may have made the change."""
        others = {call.session for call in self._calls.concurrent_with(self._mine) if call.shell}
        return sorted(others - {"", *finding.owners})

    def _notify_holders(self, finding: Finding, result: Restored, kept: str) -> None:
        """Notify the holders, except one whose own tools may have made the change."""
        at_work = {call.session for call in self._calls.concurrent_with(self._mine)}
        for owner in finding.owners:
            if finding.doubt and owner in at_work:
                continue
            message = SendMessage(
                self._connection.caller,
                to=owner,
                kind="warn" if finding.doubt else "overwrite",
                subject=f"{finding.name} was changed, author unknown"
                if finding.doubt
                else f"{finding.name} was overwritten",
                body=self._message_body(finding, result, kept),
                blob={
                    "path": finding.change.path,
                    "worktree": self._git.folder,
                    "restored": result.done,
                },
            )
            with suppress(CoordError):  # the holder is gone, or its inbox is full
                self._connection.call(message)

    def _message_body(self, finding: Finding, result: Restored, kept: str) -> str:
        mine = self._mine.session
        shown = f" The content before: {kept}" if kept else ""
        if finding.doubt:
            ran = f"It changed while a call of session {mine} ran"
            return f"{ran}; {finding.doubt}. Nothing was restored.{shown}"
        others = self._others(finding)
        beside = f", or one of {', '.join(others[:3])}," if others else ""
        notes = f"A shell command of session {mine}{beside} changed it without a lock."
        if result.done:
            other = f" The other content: {kept}" if kept else ""
            return f"{notes} coord {'removed' if finding.is_new else 'restored'} it.{other}"
        return f"{notes} It was not restored.{shown}"


def _newest(left: SavedFile | None, before: SavedFile | None, change: Change) -> SavedFile | None:
    """Return the newest content of a file that is not the call's.

    `left`: the last content of the holder. `before`: the content before the call.
    """
    if left is None or before is None:
        certain = left is not None and (change.was is None or left.file_stat.same_stat(change.was))
        return before or (left if certain else None)
    return left if left.file_stat.ctime_ns > before.file_stat.ctime_ns else before


def _holder_name(finding: Finding) -> str:
    lock = finding.holders[0]
    session = f"session {quote_name(lock.owner)}"
    return f"{quote_name(lock.agent)} ({session})" if lock.agent else session


def _kind_and_mode(found: FileStat) -> tuple[int, int]:
    return stat.S_IFMT(found.mode), found.mode & 0o777
