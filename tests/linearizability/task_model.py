"""A task as a sequential object: what each operation answers, and what it leaves behind.

Written from the specification and not from the code, and kept naive: no records, no indexes, no books. The
simulation and the linearizability tests hold every reply of the real thing against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Phase = Literal["none", "active", "expired", "released", "error", "done"]
Answer = tuple[Any, ...]


class ClaimLife(NamedTuple):
    """One generation: who had it, since when, and how and when it ended ("" while it lasts)."""

    session: str
    claimed: int | None
    end_reason: str = ""
    ended: int | None = None


class State(NamedTuple):
    """Everything a task can tell. Moments are None where a history is judged without time."""

    generation: int = 0
    phase: Phase = "none"
    session: str = ""
    lease: int = 0
    deadline: int | None = None
    work: str = ""
    reset_generation: int = 0
    lives: tuple[ClaimLife, ...] = ()


NEW = State()


@dataclass(slots=True, eq=False)
class Op:
    """One operation that somebody asked for, from its begin to its end.

    `begin` and `end` say where it stands among the others: offsets of the log, or moments of a clock that
    all processes share. `answer` is None where the outcome is unknown, and then `end` says nothing. `nows`
    are the times that the operation may have acted at (none: time plays no part).
    """

    kind: str
    task: str = ""
    session: str = ""
    generation: int = 0
    lease: int = 0
    reason: str = ""
    work: str = ""
    begin: int = 0
    end: int = 0
    answer: Answer | None = None
    nows: Sequence[int | None] = field(default_factory=lambda: [None])

    @property
    def unknown(self) -> bool:
        return self.answer is None

    @property
    def wrote(self) -> bool:
        """Whether its answer says that it changed the task."""
        return self.answer is not None and self.answer[:1] in SUCCESS


SUCCESS = frozenset({("GRANTED",), ("RENEWED",), ("RELEASED",), ("ACCEPTED",), ("RESET",)})


def as_of(state: State, now: int | None) -> State:
    """The task with its deadline acted on."""
    late = now is not None and state.deadline is not None and now >= state.deadline
    if state.phase != "active" or not late:
        return state
    return _ended(state, "expired", "EXPIRED", state.deadline)


def apply(state: State, op: Op, now: int | None) -> tuple[Answer, State]:
    """What the operation answers at this moment, and the task after it."""
    return OPERATIONS[op.kind](as_of(state, now), op, now)


def _claim(state: State, op: Op, now: int | None) -> tuple[Answer, State]:
    if state.phase == "done":
        return ("DENIED_COMPLETED", None, None, None), state
    if state.phase == "active" and op.kind != "force":
        return ("DENIED_ACTIVE_CLAIM", None, None, state.session), state
    if state.phase == "active":
        state = _ended(state, "none", "SUPERSEDED", now)
    deadline = None if now is None else now + op.lease
    granted = State(
        state.generation + 1,
        "active",
        op.session,
        op.lease,
        deadline,
        reset_generation=state.reset_generation,
        lives=(*state.lives, ClaimLife(op.session, now)),
    )
    return ("GRANTED", granted.generation, deadline, None), granted


def _renew(state: State, op: Op, now: int | None) -> tuple[Answer, State]:
    refusal = _not_holder(state, op)
    if refusal:
        return (refusal, None), state
    renewed = state._replace(deadline=None if now is None else now + state.lease)
    return ("RENEWED", renewed.deadline), renewed


def _release(state: State, op: Op, now: int | None) -> tuple[Answer, State]:
    refusal = _not_holder(state, op)
    if refusal:
        return (refusal,), state
    reason = op.reason or "VOLUNTARY"
    return ("RELEASED",), _ended(state, "error" if reason == "ERROR" else "released", reason, now)


def _not_holder(state: State, op: Op) -> str:
    if state.phase not in ("active", "expired"):
        return "NO_CLAIM"
    if op.generation != state.generation:
        return "GENERATION_MISMATCH"
    if op.session != state.session:
        return "SESSION_MISMATCH"
    return "ALREADY_EXPIRED" if state.phase == "expired" else ""


def _submit(state: State, op: Op, now: int | None) -> tuple[Answer, State]:
    reason = _submission(state, op)
    if reason == "ACCEPTED":
        return (reason, state.generation, False), _ended(state, "done", "COMPLETED", now, op.work)
    held = _life(state, op)
    lost = held is not None and held.end_reason != "COMPLETED"
    return (reason, state.generation, lost), state


def _submission(state: State, op: Op) -> str:
    if state.phase not in ("active", "expired", "done"):
        return "NO_CLAIM"
    if op.generation != state.generation:
        return "STALE_GENERATION" if op.generation < state.generation else "FUTURE_GENERATION"
    if state.phase == "done":
        return "TASK_ALREADY_COMPLETED"
    return "ACCEPTED" if op.session == state.session else "SESSION_MISMATCH"


def _life(state: State, op: Op) -> ClaimLife | None:
    """The generation that a submitter names, if it was once that session's."""
    if not 0 < op.generation <= state.generation:
        return None
    life = state.lives[op.generation - 1]
    return life if life.session == op.session else None


def worth_recording(state: State, op: Op) -> bool:
    """Whether a rejection leaves a trace: not that of a generation never granted, nor of a repetition."""
    held = _life(state, op)
    return 0 < op.generation <= state.generation and (held is None or held.end_reason != "COMPLETED")


def _reset(state: State, op: Op, now: int | None) -> tuple[Answer, State]:
    if not state.generation:
        return ("NOT_FOUND", 0), state
    if state.phase == "active":
        state = _ended(state, "none", "RESET", now)
    opened = State(state.generation, reset_generation=state.generation, lives=state.lives)
    return ("RESET", state.generation), opened


STATUS = {"active": "in_progress", "done": "done"}
CLAIM = {
    "active": "ACTIVE",
    "expired": "EXPIRED",
    "released": "RELEASED",
    "error": "ERROR",
    "done": "RELEASED",
}


def _state(state: State, op: Op, now: int | None) -> tuple[Answer, State]:
    shown = (CLAIM[state.phase], state.session, state.deadline) if state.phase != "none" else (None,) * 3
    return (STATUS.get(state.phase, "ready"), state.generation, *shown, state.work or None), state


def _history(state: State, op: Op, now: int | None) -> tuple[Answer, State]:
    return tuple((n, *life) for n, life in enumerate(state.lives, 1) if life.end_reason), state


def _ended(state: State, phase: Phase, end_reason: str, ended: int | None, work: str = "") -> State:
    """The task with its latest generation ended; a late result turns an expired one into a completed one."""
    life = state.lives[-1]._replace(end_reason=end_reason, ended=ended)
    return state._replace(phase=phase, lives=(*state.lives[:-1], life), work=work)


OPERATIONS = {
    "claim": _claim,
    "force": _claim,
    "renew": _renew,
    "release": _release,
    "submit": _submit,
    "reset": _reset,
    "state": _state,
    "history": _history,
}
