"""The record of a git commit: only one that was made under locks which are still held."""

from coord.core.errors import LockLost
from coord.core.events import CommitMade
from coord.core.git_log_commands import RecordCommit, RecordCommitReply
from coord.core.locks.locks import ended_by_time, read_lock
from coord.core.locks.resources import parse_resource
from coord.core.sessions.session import ensure_session
from coord.core.transaction import Transaction


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
