"""What a task is: given when it is added, apart from what becomes of it."""

from typing import Any

from coord.core import keys
from coord.core.records import Stored

PRIORITY_STEP_MS = 60_000
"""One step of priority is worth so long a wait in the queue: nobody waits for ever."""
RETRIES_MAX = 3


class Spec(Stored, frozen=True, tag=1):
    """The description of a task, and who may take it; `has_dependents`: some task depends on it, or did."""

    description: str = ""
    type: str = ""
    track: str = ""
    role: str = ""
    needs: tuple[str, ...] = ()
    priority: int = 0
    files: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    requirements: dict[str, Any] = {}
    deadline_ms: int = 0
    estimate_s: float = 0
    retries_max: int = RETRIES_MAX
    repository: str = ""
    created_ms: int = 0
    parts: int = 0
    exact: tuple[str, ...] = ()
    has_dependents: bool = False


class QueueClass(Stored, frozen=True, tag=1):
    """What all tasks of a class have alike."""

    track: str = ""
    type: str = ""
    role: str = ""
    needs: tuple[str, ...] = ()


def class_of(spec: Spec) -> str:
    """Return the class of a task: all of one class may be taken by the same agents."""
    parts = (spec.track, spec.type, spec.role, "+".join(sorted(spec.needs)))
    return ":".join(part or "-" for part in parts)


def place_in_queue(project: str, spec: Spec) -> str:
    """Return the line of a task while it is ready: by priority that ages, then by age."""
    rank_ms = max(0, spec.created_ms - PRIORITY_STEP_MS * spec.priority)
    return keys.ready(project, class_of(spec), rank_ms)
