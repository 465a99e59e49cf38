"""The record of a git commit: only one that was made under locks which are still held."""

from coord.core.commands import Reply, SessionCommand
from coord.core.errors import LockLost
from coord.core.events import Event
from coord.core.locks.commands import LockCommand
from coord.core.locks.locks import ended_by_time, read_lock
from coord.core.locks.resources import parse_resource
from coord.core.sessions.identify import ensure_session
from coord.core.transaction import Transaction


class RecordCommitReply(Reply, frozen=True):
    """A commit that stands in the log."""

    commit: str


class RecordCommit(LockCommand, frozen=True, kw_only=True):
    """Write down a git commit, unless a lock it was made under was lost; `fences` are of `resources`."""

    rule = "coord.core.git_log:record_commit"
    prefetch_keys = "coord.core.locks.locks:lock_reads"
    reply = RecordCommitReply
    fences: tuple[int, ...]
    commit: str
    branch: str
    subject: str
    files: tuple[str, ...]
    file_count: int


class RecordMerge(SessionCommand, frozen=True, kw_only=True):
    """Tell what became of a branch that was to be merged; `commit` is empty where it was refused."""

    rule = "coord.core.git_log:record_merge"
    reply = bool
    branch: str
    into: str
    tip: str
    commit: str = ""
    status: str = ""
    files: tuple[str, ...] = ()
    parties: tuple[str, ...] = ()
    detail: str = ""


class CommitMade(Event, frozen=True, tag="git.committed"):
    """A session committed files that it held, and the commit was verified; `files` are the first of them."""

    session: str
    agent: str
    commit: str
    branch: str
    subject: str
    files: tuple[str, ...]
    file_count: int
    fences: tuple[int, ...]


class BranchMerged(Event, frozen=True, tag="git.merged"):
    """A branch became part of another one: `commit` is what that one is since."""

    session: str
    agent: str
    branch: str
    into: str
    tip: str
    commit: str
    files: tuple[str, ...] = ()


class MergeRefused(Event, frozen=True, tag="git.merge_refused"):
    """A branch was not merged; `status` says why, `parties` who changed the same."""

    session: str
    agent: str
    branch: str
    into: str
    tip: str
    status: str
    files: tuple[str, ...] = ()
    parties: tuple[str, ...] = ()
    detail: str = ""


def record_commit(tx: Transaction, command: RecordCommit, now: int) -> RecordCommitReply:
    """Tell of a commit, unless one of its locks was lost meanwhile, or granted anew."""
    session = ensure_session(tx, command.caller, now)
    resources = [parse_resource(text, command.repository)[0] for text in command.resources]
    tx.prefetch(*(resource.lock_key(session.session_id) for resource in resources))
    for resource, fence in zip(resources, command.fences, strict=True):
        lock = read_lock(tx, resource.lock_key(session.session_id))
        if lock is None or lock.fence != fence or ended_by_time(lock, now) is not None:
            raise LockLost(
                f"the lock on {resource.text} (fence {fence}) was lost",
                hint=f"coord log locks {resource.text} says to whom; look at {command.commit[:12]}",
            )
    tx.emit(
        CommitMade(
            session.session_id,
            session.agent,
            command.commit,
            command.branch,
            command.subject,
            command.files,
            command.file_count,
            command.fences,
        )
    )
    return RecordCommitReply(command.commit)


def record_merge(tx: Transaction, command: RecordMerge, now: int) -> bool:
    """Tell that a branch was merged, or why it was not."""
    session = ensure_session(tx, command.caller, now)
    names = (session.session_id, session.agent, command.branch, command.into, command.tip)
    if command.commit:
        tx.emit(BranchMerged(*names, command.commit, command.files))
    else:
        tx.emit(MergeRefused(*names, command.status, command.files, command.parties, command.detail))
    return True
