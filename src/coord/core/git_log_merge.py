"""What is told of a merge: git keeps the work, the log who merged it, or what stood against it."""

from coord.core.events import BranchMerged, MergeRefused
from coord.core.git_log_commands import RecordMerge
from coord.core.sessions.session import ensure_session
from coord.core.transaction import Transaction


def record_merge(tx: Transaction, command: RecordMerge, now: int) -> bool:
    """Tell that a branch was merged, or why it was not."""
    session = ensure_session(tx, command.caller, now)
    names = (session.session_id, session.agent, command.branch, command.into, command.tip)
    if command.commit:
        tx.emit(BranchMerged(*names, command.commit, command.files))
    else:
        tx.emit(MergeRefused(*names, command.verdict, command.files, command.parties, command.detail))
    return True
