"""Black-box search for a linearization (Wing and Gong, with Lowe's memory of what was tried).

Looks only at operations with their begin, end and answer: is there an order that respects real time (what
ended before another began comes first) in which the sequential model gives every one of the answers? An
operation whose outcome is unknown may have happened at any time after its begin, or never. Tasks are
independent objects, so each is searched alone; only that a lease ran out may be written down by whoever
works on another task, and matters where that one's clock is ahead.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tests.linearizability.task_model import NEW, Answer, Op, State, apply, as_of

ENDLESS = 1 << 62
MOMENTS = {"claim": (2,), "force": (2,), "renew": (1,), "state": (4,)}
"""Where an answer holds a moment, by kind of operation."""


def by_task(ops: Iterable[Op]) -> dict[str, list[Op]]:
    """The history of each task."""
    tasks: dict[str, list[Op]] = defaultdict(list)
    for op in ops:
        tasks[op.task].append(op)
    return tasks


def timeless(op: Op) -> Op:
    """The operation as it looks where no lease can run out and nobody knows the clock."""
    if op.answer is None:
        return replace(op, nows=[None])
    answer = op.answer
    if op.kind == "history":
        answer = tuple(_hidden(life, (2, 4)) for life in answer)
    return replace(op, answer=_hidden(answer, MOMENTS.get(op.kind, ())), nows=[None])


def _hidden(parts: Answer, places: tuple[int, ...]) -> Answer:
    return tuple(None if place in places else part for place, part in enumerate(parts))


def sweepers(ops: Iterable[Op]) -> list[tuple[int, int]]:
    """The begin and time of each operation that may have written down that leases ran out, on any task."""
    asked = [op for op in ops if op.kind not in ("state", "history")]
    return sorted((op.begin, now) for op in asked for now in op.nows if now is not None)


def linearization(history: Sequence[Op], sweeps: Sequence[tuple[int, int]] = ()) -> list[Op] | None:
    """An order that explains the history of one task, or None if there is none."""
    search = _Search(sorted(history, key=lambda op: op.begin), sweeps)
    tried: set[tuple[int, State]] = {(0, NEW)}
    path: list[_Step] = []
    branches = [search.steps(0, NEW)]
    while branches:
        done = path[-1].done if path else 0
        if done & search.needed == search.needed:
            return [step.op for step in path if step.op is not None]
        step = next(branches[-1], None)
        if step is None:
            branches.pop()
            if path:
                path.pop()
        elif (step.done, step.state) not in tried:
            tried.add((step.done, step.state))
            path.append(step)
            branches.append(search.steps(step.done, step.state))
    return None


class _Step(NamedTuple):
    """What comes next (None: a sweep that belongs to another task), and how things are after it."""

    op: Op | None
    done: int
    state: State


class _Search:
    """Where one can go from each point of the search; `done` has a bit for each operation that is placed."""

    def __init__(self, ops: Sequence[Op], sweeps: Sequence[tuple[int, int]]) -> None:
        self._ops = ops
        self._sweeps = sweeps
        self.needed = sum(1 << place for place, op in enumerate(ops) if not op.unknown)

    def steps(self, done: int, state: State) -> Iterator[_Step]:
        """Those that may come next with the answers they got, and what each leaves behind."""
        left = [(place, op) for place, op in enumerate(self._ops) if not done >> place & 1]
        first_end = min((op.end for _, op in left if not op.unknown), default=ENDLESS)
        for place, op in left:
            if op.begin > first_end:
                break
            for after in _outcomes(state, op):
                yield _Step(op, done | 1 << place, after)
        swept = as_of(state, max((now for begin, now in self._sweeps if begin <= first_end), default=None))
        if swept != state:
            yield _Step(None, done, swept)


def _outcomes(state: State, op: Op) -> Iterator[State]:
    for now in op.nows:
        answer, after = apply(state, op, now)
        if op.unknown:
            if after != state:
                yield after
        elif answer == op.answer:
            yield after
            if after == as_of(
                state, now
            ):  # it changed nothing, and may not have written down that time passed
                yield state
