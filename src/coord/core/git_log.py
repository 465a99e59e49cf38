"""Commits and merges of git, recorded in the log: a commit only if its locks are still held.

Also recorded: commits that a gate refused, and files that were restored after a command had overwritten them.
"""

import msgspec

from coord.core import keys
from coord.core.commands import Reply, SessionCommand
from coord.core.errors import LockLost
from coord.core.events import Event
from coord.core.locks.commands import LockCommand
from coord.core.locks.locks import ended_by_time, read_lock
from coord.core.locks.resources import parse_resource
from coord.core.records import Stored
from coord.core.sessions.identify import ensure_session
from coord.core.transaction import Transaction

OVERWRITES_MAX = 64
OVERWRITES_KEPT_MS = 30 * 60_000


class RecordCommitReply(Reply, frozen=True):
    """The commit that was recorded."""

    commit: str


class RecordCommit(LockCommand, frozen=True, kw_only=True):
    """Record a git commit, unless one of its locks was lost; `fences` belong to `resources`."""

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
    """Record the outcome of a merge; `commit` is empty if the merge was refused."""

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


class RecordCommitRefusal(SessionCommand, frozen=True, kw_only=True):
    """Record that a gate of git refused commits; `hook` is the name of the gate."""

    rule = "coord.core.git_log:record_commit_refusal"
    reply = bool
    hook: str
    findings: int
    detail: str


class RecordRestore(SessionCommand, frozen=True, kw_only=True):
    """Record that files of others were restored after a command of this session."""

    rule = "coord.core.git_log:record_restore"
    reply = bool
    files: tuple[str, ...]
    file_count: int
    holders: tuple[str, ...]


class Overwrite(msgspec.Struct, frozen=True, gc=False):
    """A file of `holders` that a session overwrote, and that was restored."""

    session: str
    holders: tuple[str, ...]
    at_ms: int


class Overwrites(Stored, frozen=True, tag=1):
    """The files that were restored lately, for alerts: the newest `OVERWRITES_MAX`."""

    files: dict[str, Overwrite] = {}


class CommitRefused(Event, frozen=True, tag="git.commit_refused"):
    """A gate of git refused the commits of a session: others hold the files, or a fence is old."""

    session: str
    agent: str
    hook: str
    findings: int
    detail: str


class FileRestored(Event, frozen=True, tag="file.restored"):
    """Files that `holders` hold were restored after a command; `files` are the first of them."""

    session: str
    agent: str
    files: tuple[str, ...]
    file_count: int
    holders: tuple[str, ...]


class CommitMade(Event, frozen=True, tag="git.committed"):
    """A session committed files under its locks; `files` are the first of them."""

    session: str
    agent: str
    commit: str
    branch: str
    subject: str
    files: tuple[str, ...]
    file_count: int
    fences: tuple[int, ...]


class BranchMerged(Event, frozen=True, tag="git.merged"):
    """A branch was merged into another one; `commit` is the new tip of that one."""

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
    """Record a commit, unless one of its locks was lost or granted again since."""
    session = ensure_session(tx, command.caller, now)
    resources = [parse_resource(text, command.repository)[0] for text in command.resources]
    tx.prefetch(*(resource.lock_key(session.session_id) for resource in resources))
    for resource, fence in zip(resources, command.fences, strict=True):
        lock = read_lock(tx, resource.lock_key(session.session_id))
        if lock is None or lock.fence != fence or ended_by_time(lock, now) is not None:
            raise LockLost(
                f"the lock on {resource.text} (fence {fence}) was lost",
                hint=f"coord log locks {resource.text} shows who has it; check commit {command.commit[:12]}",
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
    """Record that a branch was merged, or why it was not."""
    session = ensure_session(tx, command.caller, now)
    names = (session.session_id, session.agent, command.branch, command.into, command.tip)
    if command.commit:
        tx.emit(BranchMerged(*names, command.commit, command.files))
    else:
        tx.emit(MergeRefused(*names, command.status, command.files, command.parties, command.detail))
    return True


def record_commit_refusal(tx: Transaction, command: RecordCommitRefusal, now: int) -> bool:
    """Record that a gate refused commits."""
    session = ensure_session(tx, command.caller, now)
    names = (session.session_id, session.agent)
    tx.emit(CommitRefused(*names, command.hook, command.findings, command.detail))
    return True


def record_restore(tx: Transaction, command: RecordRestore, now: int) -> bool:
    """Record that files were restored."""
    session = ensure_session(tx, command.caller, now)
    names = (session.session_id, session.agent)
    tx.emit(FileRestored(*names, command.files, command.file_count, command.holders))
    before = tx.get(keys.OVERWRITES, Overwrites) or Overwrites()
    found = Overwrite(session.session_id, command.holders, now)
    fresh = {path: each for path, each in before.files.items() if now - each.at_ms < OVERWRITES_KEPT_MS}
    others = {path: each for path, each in fresh.items() if path not in command.files}
    kept = dict([*others.items(), *((path, found) for path in command.files)][-OVERWRITES_MAX:])
    tx.put(keys.OVERWRITES, msgspec.structs.replace(before, files=kept))
    return True
