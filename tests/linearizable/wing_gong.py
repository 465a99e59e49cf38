"""Black-box search for a linearization (Wing and Gong, with Lowe's memory of what was tried).

Looks only at operations with their begin, end and answer: is there an order that respects real time (what
ended before another began comes first) in which the sequential model gives every one of the answers? An
operation whose outcome is unknown may have happened at any time after its begin, or never. Tasks are
independent objects, so each is searched alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tests.linearizable.task_model import NEW, Answer, Op, State, apply

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


def linearization(history: Sequence[Op]) -> list[Op] | None:
    """An order that explains the history of one task, or None if there is none."""
    ops = sorted(history, key=lambda op: op.begin)
    needed = sum(1 << place for place, op in enumerate(ops) if not op.unknown)
    tried: set[tuple[int, State]] = {(0, NEW)}
    path: list[Op] = []
    branches = [_next(ops, 0, NEW)]
    masks = [0]
    while branches:
        if masks[-1] & needed == needed:
            return path
        step = next(branches[-1], None)
        if step is None:
            branches.pop()
            masks.pop()
            if path:
                path.pop()
            continue
        place, state = step
        mask = masks[-1] | 1 << place
        if (mask, state) in tried:
            continue
        tried.add((mask, state))
        path.append(ops[place])
        masks.append(mask)
        branches.append(_next(ops, mask, state))
    return None


def _next(ops: Sequence[Op], done: int, state: State) -> Iterator[tuple[int, State]]:
    """The operations that may come next here with the answers they got, and what each leaves behind."""
    first_end: float = min(
        (op.end for place, op in enumerate(ops) if not done >> place & 1 and not op.unknown),
        default=float("inf"),
    )
    for place, op in enumerate(ops):
        if op.begin > first_end:
            return
        if done >> place & 1:
            continue
        for now in op.nows:
            answer, after = apply(state, op, now)
            if answer == op.answer or (op.unknown and after != state):
                yield place, after
