"""What a deadline means for locks, requests in line, sessions and messages."""

from coord.core import keys
from coord.core.lifecycle.end import pass_session_deadline
from coord.core.locks.acquire import end_if_owner_gone
from coord.core.locks.expiry import end_by_time
from coord.core.locks.locks import Hold, Standing, ended_by_time, read_hold, resource_of
from coord.core.locks.wait_queue import (
    Request,
    Waiting,
    WaitState,
    alive,
    drop_request,
    resources_of,
    serve,
)
from coord.core.messages.message import return_message
from coord.core.transaction import View

LOOK_AGAIN_MS = 30_000
"""A ticket past its lease whose owner lives is looked at again after this time."""


def pass_hold(view: View, key: str, now: int) -> None:
    hold = view.get(key, Hold)
    if hold is None:
        return
    standing = Standing(key, hold, resource_of(hold))
    freed = (
        end_by_time(view, standing, now)
        if ended_by_time(hold, now) is not None
        else end_if_owner_gone(view, standing, now)
    )
    if freed:
        serve(view, freed, now)
    if view.get(key, Hold) is not None:
        view.put(key, _with_fence(view, key, hold), keys.due(now + LOOK_AGAIN_MS))


def _with_fence(view: View, key: str, hold: Hold) -> Hold:
    """Return the hold as it may be rewritten: its fence was the version it has now."""
    fenced = read_hold(view, key)
    return hold if fenced is None else fenced


def pass_request(view: View, key: str, now: int) -> None:
    request = view.get(key, Request)
    if request is None:
        return
    in_line = request.state is WaitState.WAITING and not request.bid
    if in_line and alive(view, request, now):
        return
    drop_request(view, Waiting(key, request), "its process is gone or its time was up")
    if in_line:
        serve(view, resources_of(request), now)


def pass_session(view: View, key: str, now: int) -> None:
    freed = pass_session_deadline(view, key.partition("/")[2], now)
    if freed:
        serve(view, freed, now)


def pass_message(view: View, key: str, now: int) -> None:
    return_message(view, key, "nobody read it in time", now)
