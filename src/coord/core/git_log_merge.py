"""What is told of a merge: git keeps the work, the log who merged it, or what stood against it."""

from coord.core.events import BranchMerged, MergeRefused
from coord.core.git_log_commands import RecordMerge
from coord.core.sessions.session import enlist
from coord.core.transaction import View


def record_merge(view: View, command: RecordMerge, now: int) -> bool:
    """Tell that a branch was merged, or why it was not."""
    session = enlist(view, command.caller, now)
    names = (session.session_id, session.agent, command.branch, command.into, command.tip)
    if command.commit:
        view.emit(BranchMerged(*names, command.commit, command.files))
    else:
        view.emit(MergeRefused(*names, command.verdict, command.files, command.parties, command.detail))
    return True
