"""The state of a session: what it does now, as far as records and evidence show it.

`session_state` is the only place that decides. The first line that applies gives the state:

    the session ended                      completed, failed, terminated or crashed, by how it ended
    its process is proven dead             crashed
    it waits for a lock or a task          blocked
    it reported what nobody else can see   blocked, stopping, completed or failed
    it has a claim or a tool call runs     working
    otherwise                              what it reported: starting, working or idle

A claim that is newer than a report of the end ("completed", "failed") shows that the session goes on. The
rule for tool calls drops "starting" and "completed" from the record.
"""

from coord.core.sessions.schema import Liveness, Session

STATES = (
    "starting",
    "idle",
    "working",
    "blocked",
    "stopping",
    "completed",
    "failed",
    "crashed",
    "terminated",
)
STATE_ALIASES = {
    "running": "working",
    "creating": "starting",
    "exited": "completed",
    "pending": "idle",
    "in_progress": "working",
    "done": "completed",
    "error": "failed",
}
"""Other names that the founding documents use for these states (CFL-11)."""
TERMINAL_STATES = frozenset(("completed", "failed", "terminated", "crashed"))
ENDED_STATES = {"deregistered": "completed", "replaced": "completed", "dead": "crashed"}
"""The state of a session by the reason of its end; every other end was somebody else's: terminated."""
REPORTS_ONLY = frozenset(("blocked", "stopping"))
"""States that only the session itself can know, such as blocked on something outside of coord."""


def is_terminal(state: str) -> bool:
    """Whether a session in this state does nothing more."""
    return state in TERMINAL_STATES


def end_state(session: Session, end_reason: str) -> str:
    """Return the state of a session that ends now; one that reported its failure failed."""
    state = ENDED_STATES.get(end_reason, "terminated")
    return "failed" if state == "completed" and session.state == "failed" else state


def session_state(
    session: Session, life: Liveness, now: int, *, waits: bool = False, claimed_ms: int = 0
) -> str:
    """Return the state of a session; `claimed_ms` is the time of its newest claim, 0 without one."""
    if session.ended_ms:
        return session.state
    if life is Liveness.DEAD:
        return "crashed"
    if waits:
        return "blocked"
    if session.state in REPORTS_ONLY or (is_terminal(session.state) and claimed_ms <= session.reported_ms):
        return session.state
    if claimed_ms or any(until_ms > now for until_ms in session.calls.values()):
        return "working"
    return session.state
