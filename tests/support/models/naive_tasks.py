"""The generation clock as a naive reader of the second document would write it: dicts, lists, time first.

A deadline acts the moment it passes, so what the real thing writes down late must not be seen.
Replies are plain tuples, reason first.
"""

from collections import defaultdict
from dataclasses import dataclass, field

Key = tuple[str, str, str]
DEFAULTS = {"max_concurrent_claims": 100, "max_active_sessions": 50, "max_generations_per_task": 100}
LEASE_RANGE_MS = (30_000, 3_600_000)
QUIET_MS = 60_000


@dataclass
class Generation:
    session: str
    claimed_ms: int
    lease_ms: int
    expires_ms: int
    end_reason: str = ""
    ended_ms: int = 0

    def end(self, end_reason: str, at_ms: int) -> None:
        self.end_reason, self.ended_ms = end_reason, at_ms


@dataclass
class ModelTask:
    generations: list[Generation] = field(default_factory=list)
    done: bool = False
    open: bool = True  # no claim is current: never claimed, or reset
    reset_at: int = 0
    result: str = ""
    rejected: dict[tuple[int, str], tuple[str, int, int]] = field(default_factory=dict)

    @property
    def number(self) -> int:
        return len(self.generations)

    @property
    def last(self) -> Generation:
        return self.generations[-1]

    def valid(self) -> bool:
        return not self.open and not self.last.end_reason

    def current(self) -> bool:
        """Whether somebody may still hand in the result of the last generation."""
        return not self.open and self.last.end_reason in ("", "EXPIRED")


class Model:
    """Every tenant's tasks and limits."""

    def __init__(self) -> None:
        self.now = 0
        self.tasks: defaultdict[Key, ModelTask] = defaultdict(ModelTask)
        self.limits: defaultdict[str, dict[str, int]] = defaultdict(DEFAULTS.copy)

    def pass_time(self, now: int) -> None:
        self.now = now
        for task in self.tasks.values():
            if task.valid() and task.last.expires_ms <= now:
                task.last.end("EXPIRED", task.last.expires_ms)

    def active(self, tenant: str) -> dict[Key, str]:
        """The session of each valid claim."""
        return {k: t.last.session for k, t in self.tasks.items() if k[0] == tenant and t.valid()}

    def expired(self, tenant: str) -> list[tuple[int, Key]]:
        lost = [(k, t) for k, t in self.tasks.items() if k[0] == tenant and not t.open]
        return sorted((t.last.expires_ms, k) for k, t in lost if t.last.end_reason == "EXPIRED")

    def _over_limit(self, key: Key, task: ModelTask, session: str, lease_ms: int) -> str:
        if key[0] == "local":
            return ""
        limits = self.limits[key[0]]
        if not LEASE_RANGE_MS[0] <= lease_ms <= LEASE_RANGE_MS[1]:
            return "DENIED_LIMIT_LEASE_DURATION"
        if task.number - task.reset_at >= limits["max_generations_per_task"]:
            return "DENIED_LIMIT_GENERATIONS"
        before = self.active(key[0])
        stay = {k: holder for k, holder in before.items() if k != key}
        if len(stay) >= limits["max_concurrent_claims"]:
            return "DENIED_LIMIT_CONCURRENT_CLAIMS"
        if session not in before.values() and len(set(stay.values())) >= limits["max_active_sessions"]:
            return "DENIED_LIMIT_ACTIVE_SESSIONS"
        return ""

    def claim(self, key: Key, session: str, lease_ms: int, *, force: bool) -> tuple[object, ...]:
        task = self.tasks[key]
        if task.done:
            return ("DENIED_COMPLETED", None, None)
        if task.valid() and not force:
            return ("DENIED_ACTIVE_CLAIM", None, task.last.session)
        denied = self._over_limit(key, task, session, lease_ms)
        if denied:
            return (denied, None, None)
        if task.valid():
            task.last.end("SUPERSEDED", self.now)
        task.generations.append(Generation(session, self.now, lease_ms, self.now + lease_ms))
        task.open = False
        return ("GRANTED", task.number, None)

    def _not_holder(self, task: ModelTask, session: str, number: int) -> str:
        if not task.current():
            return "NO_CLAIM"
        if number != task.number:
            return "GENERATION_MISMATCH"
        if session != task.last.session:
            return "SESSION_MISMATCH"
        return "ALREADY_EXPIRED" if task.last.end_reason else ""

    def renew(self, key: Key, session: str, number: int) -> tuple[object, ...]:
        task = self.tasks[key]
        refused = self._not_holder(task, session, number)
        if refused:
            return (refused, None)
        task.last.expires_ms = self.now + task.last.lease_ms
        return ("RENEWED", task.last.expires_ms)

    def release(self, key: Key, session: str, number: int, reason: str) -> tuple[object, ...]:
        task = self.tasks[key]
        refused = self._not_holder(task, session, number)
        if not refused:
            task.last.end(reason, self.now)
        return (refused or "RELEASED",)

    def submit(self, key: Key, session: str, number: int, result: str) -> tuple[object, ...]:
        task = self.tasks[key]
        reason = self._verdict(task, session, number)
        if reason == "ACCEPTED":
            task.last.end("COMPLETED", self.now)
            task.done, task.result = True, result
            return (reason, task.number, False)
        granted = task.generations[number - 1 : number] if number else []
        mine = [held for held in granted if held.session == session]
        lost = any(held.end_reason != "COMPLETED" for held in mine)
        if granted and (lost or not mine):
            was, at, times = task.rejected.get((number, session), ("", 0, 0))
            if was != reason or self.now - at >= QUIET_MS:
                task.rejected[number, session] = (reason, self.now, times + 1)
        return (reason, task.number, lost)

    def _verdict(self, task: ModelTask, session: str, number: int) -> str:
        if not task.current() and not task.done:
            return "NO_CLAIM"
        if number != task.number:
            return "STALE_GENERATION" if number < task.number else "FUTURE_GENERATION"
        if task.done:
            return "TASK_ALREADY_COMPLETED"
        return "ACCEPTED" if session == task.last.session else "SESSION_MISMATCH"

    def reset(self, key: Key) -> tuple[object, ...]:
        task = self.tasks[key]
        if not task.number:
            return ("NOT_FOUND", 0)
        if task.valid():
            task.last.end("RESET", self.now)
        task.open, task.done, task.result, task.reset_at = True, False, "", task.number
        return ("RESET", task.number)
