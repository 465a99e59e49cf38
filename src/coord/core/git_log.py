"""The record of a git commit: only one that was made under locks which are still held."""

from coord.core.errors import LockLost
from coord.core.events import CommitMade
from coord.core.git_log_commands import CommitRecorded, RecordCommit
from coord.core.locks.locks import ended_by_time, read_hold
from coord.core.locks.resources import parse_resource
from coord.core.sessions.session import enlist
from coord.core.transaction import View


def record_commit(view: View, command: RecordCommit, now: int) -> CommitRecorded:
    """Tell of a commit, unless one of its locks was lost meanwhile, or granted anew."""
    session = enlist(view, command.caller, now)
    resources = [parse_resource(text, command.repository)[0] for text in command.resources]
    view.want(*(resource.hold_key(session.session_id) for resource in resources))
    for resource, fence in zip(resources, command.fences, strict=True):
        hold = read_hold(view, resource.hold_key(session.session_id))
        if hold is None or hold.fence != fence or ended_by_time(hold, now) is not None:
            raise LockLost(
                f"the lock on {resource.text} (fence {fence}) was lost",
                hint=f"coord log locks {resource.text} says to whom; look at {command.commit[:12]}",
            )
    view.emit(
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
    return CommitRecorded(command.commit)
