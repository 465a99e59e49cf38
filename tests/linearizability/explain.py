"""Holds every reply against the log: a change needs its event, a refusal a moment at which it was right.

An operation may take effect anywhere between its begin and its end. If each reply is explained by a place
within its own limits, then the order of the log is a linearization of the whole history.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tests.linearizability.ledger import Ledger, LoggedEvent, Violation, after, logged_events, require
from tests.linearizability.task_model import Op, State, apply, as_of, worth_recording


def explain(ledger: Ledger, op: Op) -> None:
    """Raise `Violation` unless the log up to `op.end` explains the answer. Begin and end are offsets."""
    if op.unknown:
        return
    begin, end = after(op.begin), after(op.end)
    if op.wrote:
        found = [one for one in logged_events(ledger, op) if _fits(op, one)]
        require(found, "no event between", op.begin, "and", op.end, "for", op)
    elif op.kind == "claims":
        _explain_claims(ledger, op, begin, end)
    elif op.kind == "expired":
        _explain_expired(ledger, op, begin, end)
    elif op.kind in ("claim", "force") and str(_reason(op)).startswith("DENIED_LIMIT"):
        _explain_limit(ledger, op, begin, end)
    else:
        _explain_answer(ledger, op, begin, end)


def _reason(op: Op) -> object:
    return op.answer[0] if op.answer else None


def _explain_answer(ledger: Ledger, op: Op, begin: int, end: int) -> None:
    states = list(ledger.tasks[op.task].during(begin, end))
    right = [state for state in states for now in op.nows if apply(state, op, now)[0] == op.answer]
    require(right, "nothing explains", op, "among", states)
    if op.kind == "submit" and any(worth_recording(state, op) for state in right):
        noted = [
            one for one in logged_events(ledger, op) if one.answer[0] == _reason(op) and one.position <= end
        ]
        require(noted, "a rejection was not recorded:", op)


def _explain_claims(ledger: Ledger, op: Op, begin: int, end: int) -> None:
    told = {task: (generation, deadline) for task, generation, deadline in op.answer or ()}
    for claims in ledger.sessions[op.session].during(begin, end):
        for now in op.nows:
            live = {task: held for task, held in claims.items() if now is None or now < held[1]}
            if live == told:
                return
    raise Violation(f"the session never held just these: {op}")


def _explain_expired(ledger: Ledger, op: Op, begin: int, end: int) -> None:
    """Whatever is told was expired at some moment; whatever was so all the time is told."""
    told = {task: (generation, deadline) for task, generation, deadline in op.answer or ()}
    for task, timeline in ledger.tasks.items():
        states = list(timeline.during(begin, end))
        expired = {_expired(state, now) for state in states for now in op.nows}
        if task in told:
            require(told[task] in expired, task, "was told to have expired", op, states)
        else:
            changed_hands = len(expired) > 1
            require(None in expired or changed_hands, task, "has expired and was not told", op, states)


def _expired(state: State, now: int | None) -> tuple[int, int | None] | None:
    seen = as_of(state, now)
    # Another process, whose clock was ahead, may have written down what is still to come here.
    passed = now is None or seen.deadline is None or seen.deadline <= now
    return (seen.generation, seen.deadline) if seen.phase == "expired" and passed else None


def _explain_limit(ledger: Ledger, op: Op, begin: int, end: int) -> None:
    """A limit may refuse a claim only where nothing else does and the count is reached."""
    states: Iterable[State] = ledger.tasks[op.task].during(begin, end)
    open_to = [state for state in states for now in op.nows if apply(state, op, now)[0][0] == "GRANTED"]
    require(open_to, "a limit was named although something else stood against", op)
    most = ledger.limits
    match _reason(op):
        case "DENIED_LIMIT_GENERATIONS":
            reached = max(state.generation - state.reset_generation for state in open_to)
            require(reached >= most["max_generations_per_task"], "generations were left", op)
        case "DENIED_LIMIT_CONCURRENT_CLAIMS":
            reached = max(ledger.active.during(begin, end))
            require(reached >= most["max_concurrent_claims"], "claims were left", op, reached)
        case "DENIED_LIMIT_ACTIVE_SESSIONS":
            reached = max(ledger.busy_sessions.during(begin, end))
            require(reached >= most["max_active_sessions"], "sessions were left", op, reached)
        case _:
            raise Violation(f"no such limit applies here: {op}")


def _fits(op: Op, one: LoggedEvent) -> bool:
    """Whether this event can be what this operation did."""
    if op.unknown:
        return after(op.begin) < one.position
    return after(op.begin) < one.position <= after(op.end) and one.answer == op.answer


def match_all(ledger: Ledger, ops: Sequence[Op]) -> dict[int, int]:
    """Give each event one operation and each change one event; return positions by index of operation.

    That both sides can be served alone is enough: two matchings, one covering each side, always combine.
    """
    by_key: dict[tuple[str, str, str, int], list[int]] = defaultdict(list)
    for index, op in enumerate(ops):
        by_key["claim" if op.kind == "force" else op.kind, op.task, op.session, op.generation].append(index)
    placed: dict[int, int] = {}
    for key in {**by_key, **ledger.happened}:
        callers, events = by_key.get(key, []), ledger.happened.get(key, [])
        fits = {one: [n for n in callers if _fits(ops[n], one)] for one in events}
        for one, chosen in _matching(fits).items():
            require(chosen is not None, "nobody asked for", key, one)
        sources = {n: [one for one in events if _fits(ops[n], one)] for n in callers if ops[n].wrote}
        for n, event in _matching(sources).items():
            require(event is not None, "an event is missing for", ops[n])
            assert event is not None
            placed[n] = event.position
    return placed


def _matching(wishes: dict) -> dict:
    """A largest matching (augmenting paths): each key gets one of its wishes, or None."""
    taken: dict = {}

    def place(key, tried: set) -> bool:
        for wish in wishes[key]:
            if wish not in tried:
                tried.add(wish)
                if wish not in taken or place(taken[wish], tried):
                    taken[wish] = key
                    return True
        return False

    unplaced = {key for key in wishes if not place(key, set())}
    given: dict = dict.fromkeys(unplaced)
    given.update({key: wish for wish, key in taken.items()})
    return given
