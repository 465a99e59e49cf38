"""What the log is told about git: commits that were made under locks, and merges."""

from coord.core.commands import LockCommand, SessionCommand
from coord.core.replies import Reply


class CommitRecorded(Reply, frozen=True):
    """A commit that stands in the log."""

    commit: str


class RecordCommit(LockCommand, frozen=True, kw_only=True):
    """Write down a git commit, unless a lock it was made under was lost; `fences` are of `resources`."""

    reply = CommitRecorded
    fences: tuple[int, ...]
    commit: str
    branch: str
    subject: str
    files: tuple[str, ...]
    file_count: int


class RecordMerge(SessionCommand, frozen=True, kw_only=True):
    """Tell what became of a branch that was to be merged; `commit` is empty where it was refused."""

    reply = bool
    branch: str
    into: str
    tip: str
    commit: str = ""
    verdict: str = ""
    files: tuple[str, ...] = ()
    parties: tuple[str, ...] = ()
    detail: str = ""
