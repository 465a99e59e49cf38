"""The health of a project: how far its plan is, what its agents do, and what waits for a person."""

from collections.abc import Sequence

from coord.core import keys
from coord.core.brief.commands import Health
from coord.core.questions.questions import open_questions
from coord.core.ranges import Range
from coord.core.tasks.schema import Task
from coord.core.tasks.types import TaskStatus
from coord.core.transaction import Transaction

CRITICAL, WARNING, HEALTHY = "🔴", "⚠️", "✅"
READ_MAX = 1000
"""How many entries of a range one question to the store reads."""
BLOCKED_READ = 2000
"""How many unfinished tasks are read to count the blocked ones."""


def health_ranges(project: str) -> list[Range]:
    """Return the ranges that the health of a project is read from."""
    prefixes = (keys.spec_prefix(project), keys.unfinished_prefix(project), keys.stuck_prefix(project))
    return [Range(prefix, "key", READ_MAX) for prefix in (*prefixes, keys.ASKING_PREFIX)]


def read_health(tx: Transaction, project: str, states: Sequence[str], done: int, now: int) -> Health:
    """Return the health of a project, whose agents have these states; `done` have ended."""
    total = _count(tx, keys.spec_prefix(project))
    completion, blocked, failed = None, 0, 0
    if total:
        open_tasks = min(total, _count(tx, keys.unfinished_prefix(project)))
        failed = _count(tx, keys.stuck_prefix(project))
        blocked = _count_blocked(tx, project) if failed else 0
        completion = 100 * (total - open_tasks) // total
    asked = open_questions(tx, now, project)
    active, idle = sum(state in ACTIVE_STATES for state in states), states.count("idle")
    if blocked or failed:
        icon = CRITICAL
    elif asked or is_many_idle(active, idle):
        icon = WARNING
    else:
        icon = HEALTHY
    oldest_ms = asked[0].asked_ms if asked else 0
    return Health(icon, completion, active, idle, done, len(asked), oldest_ms, blocked, failed)


ACTIVE_STATES = ("working", "starting", "blocked", "stopping")


def is_many_idle(active: int, idle: int) -> bool:
    """Whether many agents are idle: at least two, and more than work."""
    return idle > max(1, active)


def _count(tx: Transaction, prefix: str) -> int:
    return sum(len(page) for page in tx.pages(prefix, limit=READ_MAX))


def _count_blocked(tx: Transaction, project: str) -> int:
    """Return how many tasks depend on one that failed; without a failed task there is none."""
    prefix = keys.unfinished_prefix(project)
    names = [found.key[len(prefix) :] for found in tx.scan(prefix, limit=BLOCKED_READ)]
    tx.prefetch(*(keys.task(project, name) for name in names))
    tasks = (tx.get(keys.task(project, name), Task) for name in names)
    return sum(task is not None and task.state is TaskStatus.BLOCKED for task in tasks)
