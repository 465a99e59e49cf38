"""The log as witness of a recorded history: it names an order, and that order must explain everything.

Processes note moments and the log has offsets. What changed something shows where the two meet: whoever
ended before it began comes before its offset, whoever began after it ended comes after.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from coord.stores.contract import Store
from tests.linearizability.explain import explain, match_all
from tests.linearizability.ledger import PER_ENTRY, Ledger, logged_events, require
from tests.linearizability.task_model import Op

PAGE = 1_000


def read_log(store: Store) -> Ledger:
    """Everything the log says; every event must be legal where it stands."""
    ledger = Ledger()
    while entries := store.tail(ledger.head, PAGE):
        for entry in entries:
            ledger.add(entry)
    return ledger


def explain_all(ledger: Ledger, history: Iterable[Op]) -> dict[str, int]:
    """Raise `Violation` unless the order of the log explains the history; return how much was seen."""
    ops = list(history)
    offsets = _known_offsets(ledger, ops)
    _check_real_time(ops, offsets)
    placed = [_between(ledger, op, offsets, ops) for op in ops]
    for op in placed:
        explain(ledger, op)
    match_all(ledger, placed)
    return dict(Counter("unknown" if op.unknown else op.kind for op in ops))


def _known_offsets(ledger: Ledger, ops: list[Op]) -> dict[int, int]:
    """The offsets of those changes that only one event can be."""
    offsets = {}
    for place, op in enumerate(ops):
        events = [one for one in logged_events(ledger, op) if one.answer == op.answer]
        twins = [other for other in ops if other.answer == op.answer and _same(other, op)]
        if op.wrote and len(events) == len(twins) == 1:
            offsets[place] = events[0].position // PER_ENTRY
    return offsets


def _same(one: Op, other: Op) -> bool:
    return (one.task, one.session, one.generation) == (other.task, other.session, other.generation)


def _check_real_time(ops: list[Op], offsets: dict[int, int]) -> None:
    """CLM-60: what ended before another began has the smaller offset."""
    for first, earlier in offsets.items():
        for second, later in offsets.items():
            if ops[first].end < ops[second].begin:
                require(earlier < later, "the log turns real time around:", ops[first], ops[second])


def _between(ledger: Ledger, op: Op, offsets: dict[int, int], ops: list[Op]) -> Op:
    """The operation with begin and end as offsets, as far as the others show them."""
    begin = max((offset for place, offset in offsets.items() if ops[place].end < op.begin), default=0)
    if op.unknown:
        return replace(op, begin=begin)
    after = [offset for place, offset in offsets.items() if ops[place].begin > op.end]
    return replace(op, begin=begin, end=min(after, default=ledger.head + 1) - 1)
