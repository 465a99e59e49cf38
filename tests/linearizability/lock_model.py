"""Locks as a sequential object, from the specification and kept naive; and the search for an order.

No time passes here and nobody waits: what is asked is granted at once or refused. Each process is a session
and asks one thing after the other, so a point of the search is how far each of them is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

COVERS = {
    "src/a.py": {"src/a.py"},
    "src/*": {"src/a.py", "src/b.py"},
    "lib/a.py": {"lib/a.py"},
    r"\{src,lib\}/a.py": {"{src,lib}/a.py"},
}
PARTS = {
    "src/a.py": ("src/a.py",),
    "src/*": ("src/*",),
    "{src,lib}/a.py": ("lib/a.py", "src/a.py", r"\{src,lib\}/a.py"),
}
"""What can be asked for, and the locks that this means."""


class Lock(NamedTuple):
    resource: str
    session: str
    mode: str
    fence: int


class State(NamedTuple):
    holds: frozenset[Lock] = frozenset()
    newest: int = 0
    """The newest fence that was given."""
    fences: frozenset[tuple[str, bool, int]] = frozenset()
    """The newest fence of each path, for those who write and for those who read."""


@dataclass
class Op:
    """What a session asked, and when; `answer` is None where it never came."""

    session: str
    kind: str
    resource: str
    mode: str
    fence: int
    begin: int
    end: int = 1 << 62
    answer: Any = None


def apply(state: State, op: Op) -> State | None:
    """Return what the operation leaves behind, or None where it could not have been answered so."""
    if op.kind == "acquire":
        return _acquire(state, op)
    if op.kind == "check":
        return state if op.answer is None or op.answer == _check(state, op) else None
    return _release_or_renew(state, op)


def _others(state: State, op: Op) -> set[Lock]:
    return {
        hold
        for hold in state.holds
        for part in PARTS[op.resource]
        if hold.session != op.session
        and COVERS[hold.resource] & COVERS[part]
        and "write" in (hold.mode, op.mode)
    }


def _own(state: State, session: str, part: str) -> Lock | None:
    return next((hold for hold in state.holds if hold[:2] == (part, session)), None)


def _acquire(state: State, op: Op) -> State | None:
    others = _others(state, op)
    if others:
        refused = op.answer is None or op.answer in [["held", hold.session] for hold in others]
        return state if refused else None
    if op.answer is None:
        new = state.newest  # nobody was told, and nobody can ask for it
    elif op.answer[0] == "granted":
        new = max(op.answer[1].values())
    else:
        return None
    holds, told, fresh = set(state.holds), {}, False
    for part in PARTS[op.resource]:
        before = _own(state, op.session, part)
        if before is not None and (before.mode == "write" or op.mode == "read"):
            told[part] = before.fence
            continue
        fresh = True
        holds.discard(before) if before else None
        holds.add(Lock(part, op.session, op.mode, new))
        told[part] = new
    if op.answer is not None and told != op.answer[1]:
        return None
    if op.answer is None or not fresh:
        return state._replace(holds=frozenset(holds))
    if new < state.newest or _is_known(state, op, new):
        return None
    paths, writes = _paths(op), op.mode == "write"
    kept = {each for each in state.fences if each[0] not in paths or each[1] != writes}
    return State(frozenset(holds), new, frozenset(kept | {(path, writes, new) for path in paths}))


def _paths(op: Op) -> set[str]:
    return set().union(*(COVERS[part] for part in PARTS[op.resource]))


def _is_known(state: State, op: Op, fence: int) -> bool:
    """Whether a conflicting lock had this fence; those that do not conflict may begin with one commit."""
    paths = _paths(op)
    return any(
        known >= fence and path in paths and (writes or op.mode == "write")
        for path, writes, known in state.fences
    )


def _meant(state: State, op: Op) -> Sequence[str]:
    """Return the parts that an operation on own locks means: those that the session has, or else all."""
    parts = PARTS[op.resource]
    return [part for part in parts if _own(state, op.session, part) is not None] or parts


def _release_or_renew(state: State, op: Op) -> State | None:
    answer: Any = ["done"]
    found = set()
    for part in _meant(state, op):
        own = _own(state, op.session, part)
        if own is None:
            held = any(hold.resource == part for hold in state.holds)
            answer = ["NotOwner" if held else "NotFound"]
        elif op.fence and op.fence != own.fence:
            answer = ["LockLost"]
        else:
            found.add(own)
            continue
        break
    if op.answer not in (None, answer):
        return None
    if answer == ["done"] and op.kind == "unlock":
        return state._replace(holds=state.holds - found)
    return state


def _check(state: State, op: Op) -> list[Any]:
    others = _others(state, op)
    own = [_own(state, op.session, part) for part in _meant(state, op)]
    proven = all(hold is not None and hold.fence == op.fence for hold in own) if op.fence else True
    return [not others and proven, sorted([hold.resource, hold.session] for hold in others)]


def explained(histories: Sequence[Sequence[Op]]) -> bool:
    """Whether some order that respects real time explains every answer."""
    start = (tuple(0 for _ in histories), State())
    tried = {start}
    open_ = [start]
    while open_:
        places, state = open_.pop()
        following = [
            (number, history[place])
            for number, (history, place) in enumerate(zip(histories, places, strict=True))
            if place < len(history)
        ]
        if all(op.answer is None for _, op in following):
            return True
        first_end = min(op.end for _, op in following)
        for number, op in following:
            after = apply(state, op) if op.begin <= first_end else None
            if after is None:
                continue
            point = (tuple(place + (n == number) for n, place in enumerate(places)), after)
            if point not in tried:
                tried.add(point)
                open_.append(point)
    return False
