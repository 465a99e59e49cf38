"""What gates of git ask about fences, and what the log is told: commits made under locks, and merges."""

from coord.core.commands import Command, LockCommand, SessionCommand
from coord.core.replies import Reply


class FenceInfo(Reply, frozen=True):
    """How the lock of a fence stands (`held`, `unknown`) or ended, and who was granted it since."""

    resource: str
    fence: int
    owner: str
    end_reason: str
    superseded: bool = False
    by: str = ""
    by_fence: int = 0


class CheckFences(Command, frozen=True):
    """Ask whether fences still count, each with the resource it was given for and the file that is meant."""

    reply = list[FenceInfo]
    reads_only = True
    repository: str
    fences: tuple[tuple[int, str, str], ...]


class RecordCommitReply(Reply, frozen=True):
    """A commit that stands in the log."""

    commit: str


class RecordCommit(LockCommand, frozen=True, kw_only=True):
    """Write down a git commit, unless a lock it was made under was lost; `fences` are of `resources`."""

    reply = RecordCommitReply
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
