"""Holds whose time is over: the commit that notices writes their end down, and their owners are told."""

from collections.abc import Iterable

from coord.core.locks.locks import Ending, Hold, Standing, end_hold, ended_by_time, holds_meeting
from coord.core.locks.resources import Resource
from coord.core.messages.message import tell
from coord.core.transaction import View


def end_by_time(view: View, standing: Standing, now: int) -> list[Resource]:
    """End a hold whose deadline passed, and tell its owner; return what came free."""
    hold = standing.hold
    ending = ended_by_time(hold, now)
    assert ending is not None, f"{standing.key} has not ended"
    if ending is Ending.EXPIRED:
        tell(
            view,
            hold.owner,
            "warn",
            f"Your lock on {hold.resource} has expired.",
            now,
            {"resource": hold.resource},
        )
    elif ending is Ending.PREEMPTED:
        subject = f"Your lock on {hold.resource} went to {hold.preempted_by}."
        tell(view, hold.owner, "preempt", subject, now, {"resource": hold.resource})
    return end_hold(view, standing, ending, now, by=hold.preempted_by)


def end_expired(view: View, resources: Iterable[Resource], now: int) -> list[Resource]:
    """End what time has ended in the way of a grant: the commit that passes a hold over writes its end.

    Else a renewal that was decided in time could still land after the grant. Return what came free.
    """
    freed: list[Resource] = []
    for resource in resources:
        for standing in list(holds_meeting(view, resource)):
            if ended_by_time(standing.hold, now) is not None and view.get(standing.key, Hold) is not None:
                freed += end_by_time(view, standing, now)
    return freed
