"""What the log tells: one struct per event, in the past tense, and the founding documents' names for them."""

import msgspec


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="event"):
    """The base of every event; the entry around it has the offset and the time."""


class TaskEvent(Event, frozen=True):
    """Something happened to a claim."""

    project: str
    task: str
    generation: int
    session: str
    agent: str


class TaskClaimed(TaskEvent, frozen=True, tag="task.claimed"):
    """A claim was granted."""

    lease_ms: int
    previous_generation: int = 0
    previous_state: str = ""
    reason: str = ""


class TaskRenewed(TaskEvent, frozen=True, tag="task.renewed"):
    """A lease was renewed."""

    expires_ms: int


class TaskReleased(TaskEvent, frozen=True, tag="task.released"):
    """A claim ended without a result: given back, failed or reset."""

    reason: str
    note: str = ""


class TaskExpired(TaskEvent, frozen=True, tag="task.expired"):
    """A lease ran out."""

    expired_ms: int


class TaskSuperseded(TaskEvent, frozen=True, tag="task.superseded"):
    """A claim was taken over by force."""

    by_session: str
    reason: str


class TaskCompleted(TaskEvent, frozen=True, tag="task.completed"):
    """A result was accepted."""

    work_product: str
    result_bytes: int


class ResultRejected(TaskEvent, frozen=True, tag="task.result_rejected"):
    """A result was turned away."""

    reason: str
    current_generation: int
    work_lost: bool
    result_bytes: int


class TaskReset(Event, frozen=True, tag="task.reset"):
    """A task was opened again."""

    project: str
    task: str
    generation: int
    reason: str


class HistoryForgotten(Event, frozen=True, tag="task.history_forgotten"):
    """An earlier generation passed its retention."""

    project: str
    task: str
    generation: int


class LimitsSet(Event, frozen=True, tag="limits.set"):
    """A tenant's limits were changed."""

    limits: dict[str, int]


class ClockAccepted(Event, frozen=True, tag="clock.accepted"):
    """Somebody confirmed the clock although the log was ahead of it."""

    newest_ms: int


SEED_NAMES = {
    "task.claimed": "CLAIM_ACQUIRED",
    "task.renewed": "LEASE_RENEWED",
    "task.released": "CLAIM_RELEASED",
    "task.expired": "CLAIM_EXPIRED",
    "task.superseded": "CLAIM_LOST",
    "task.completed": "RESULT_SUBMITTED",
    "task.result_rejected": "RESULT_REJECTED",
}
"""The names that the second founding document uses (CFL-23)."""
