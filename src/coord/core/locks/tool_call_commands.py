"""What hooks ask around the calls of an agent's tools; the rest stands in `commands.py`."""

from coord.core import replies
from coord.core.commands import LockCommand, ResourceCommand, SessionCommand


class BeginToolCall(ResourceCommand, frozen=True, kw_only=True):
    """A tool is about to be called: lock what it writes, or refuse; what its session holds stays held.

    `lease_ms` is how long the call may take. `worktree` is where its files are.
    """

    reply = replies.LockReply
    fenced = True
    call: str
    lease_ms: int
    worktree: str = ""
    reason: str = ""


class EndToolCall(SessionCommand, frozen=True):
    """A call has ended, or without a name all of them; what the session holds stays held."""

    reply = replies.EndToolCallReply
    call: str = ""


class ReleaseHookLocks(LockCommand, frozen=True):
    """Give back what hooks locked for calls; nothing as long as a call of the session is under way.

    `reminded` is the newest lock that the session was reminded of.
    """

    reply = replies.ReleaseReply
    reminded: int = 0
