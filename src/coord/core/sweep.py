"""Passing deadlines: everything that stands in the due line is dealt with by the kind of its key."""

from coord.core import keys
from coord.core.commands import Sweep, TaskCommand
from coord.core.decide import imported
from coord.core.range import Range
from coord.core.replies import Swept
from coord.core.view import View

DEADLINES = {
    "unsettled": "graph.settle_rest",
    "history": "history.forget_generation",
    "blob": "blob.remove_unheld",
    "lock": "lock_sweep.pass_hold",
    "wait": "lock_sweep.pass_request",
    "bid": "lock_sweep.pass_request",
    "session": "lock_sweep.pass_session",
    "inbox": "lock_sweep.pass_message",
    "broadcast": "message.return_broadcast",
}
"""What passes the deadline of a kind; it is imported when there is one to pass."""
KEPT_FOR_A_TIME = ("done", "rejected", "grant", "deadlock", "mailbox", "agent", "past", "lost", "lapsed")
"""Kinds of records that are simply not needed any more when their time is up."""


def sweep(view: View, command: Sweep, now: int) -> Swept:
    """Pass up to `most` deadlines; return how many, and when the next one is."""
    passed = 0
    after = ("", "")
    settled = False
    while page := view.scan(keys.DUE_PREFIX, by="line", limit=command.most, after=after):
        for found in page:
            deadline = keys.due_ms(found.line)
            if deadline > now or passed == command.most:
                return Swept(passed, 0 if settled else deadline)
            after = (found.line, found.key)
            if found.key.startswith(keys.UNSETTLED_PREFIX):
                if settled:
                    continue  # one of them is work enough
                settled = True
            passed += _pass_deadline(view, command.tenant, found.key, now)
    return Swept(passed, 0 if settled else None)


def sweep_ranges(command: Sweep) -> list[Range]:
    """Return where deadlines stand."""
    return [Range(keys.DUE_PREFIX, "line", command.most)]


def _pass_deadline(view: View, tenant: str, key: str, now: int) -> bool:
    """Do what a deadline means for this kind of record; False for a kind that only a newer version knows."""
    kind, *rest = keys.parts(key)
    if kind == "task":
        imported("task.expire")(view, TaskCommand(tenant, *rest), now)
    elif kind in DEADLINES:
        imported(DEADLINES[kind])(view, key, now)
    elif kind in KEPT_FOR_A_TIME:
        view.delete(key)
    else:
        return False
    return True
