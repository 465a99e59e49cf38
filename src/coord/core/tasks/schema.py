"""The record of a task, and how it looks now that its deadlines have passed."""

from typing import Any

import msgspec

from coord.core.records import Stored
from coord.core.tasks.types import ClaimState, ReleaseReason, TaskStatus

ACTIVE, EXPIRED, RELEASED = ClaimState.ACTIVE, ClaimState.EXPIRED, ClaimState.RELEASED
READY, IN_PROGRESS, DONE = TaskStatus.READY, TaskStatus.IN_PROGRESS, TaskStatus.DONE
STUCK = (TaskStatus.FAILED, TaskStatus.ERRORED)
# Bound once, because Python 3.11 takes as long to find a member in its class as to make a small record.


class Task(Stored, frozen=True, tag=1):
    """A task with its latest claim; archived as it is when the next generation begins.

    One that was added (`planned`) has a place in the queue for when it is ready, perhaps a track, and while
    it is worked on perhaps the locks on its files; after a failure it is not ready before `retry_ms`. Of one
    that was split, `parts_done` counts the parts that are done or skipped.
    """

    generation: int = 0
    state: TaskStatus = TaskStatus.READY
    claim: ClaimState | None = None
    session: str = ""
    agent: str = ""
    claimed_ms: int = 0
    lease_ms: int = 0
    expires_ms: int = 0
    ended_ms: int = 0
    end_reason: ReleaseReason | None = None
    work_product: str = ""
    result_bytes: int = 0
    note: str = ""
    metadata: dict[str, Any] = {}
    reset_generation: int = 0
    planned: bool = False
    queue: str = ""
    track: str = ""
    locked: tuple[str, ...] = ()
    retries: int = 0
    retry_ms: int = 0
    parts_done: int = 0


UNCLAIMED = Task()


def as_of(task: Task, now: int) -> Task:
    """Return the task with its deadline acted on."""
    if task.claim is not ACTIVE or now < task.expires_ms:
        return task
    return msgspec.structs.replace(
        task,
        claim=EXPIRED,
        state=TaskStatus.READY,
        ended_ms=task.expires_ms,
        end_reason=ReleaseReason.EXPIRED,
    )
