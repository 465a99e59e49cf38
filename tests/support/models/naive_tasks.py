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
    refused: dict[tuple[str, int, str, str], tuple[int, int]] = field(default_factory=dict)
    losses: set[tuple[int, str, str]] = field(default_factory=set)

    @property
    def number(self) -> int:
        return len(self.generations)

    @property
    def last(self) -> Generation:
        return self.generations[-1]

    def valid(self) -> bool:
        return not self.open and not self.last.end_reason

    def refuse(self, operation: str, number: int, session: str, reason: str, now: int) -> None:
        """Every refusal is kept with the last time and the number of times, at most one a minute."""
        at, times = self.refused.get((operation, number, session, reason), (-QUIET_MS, 0))
        if now - at >= QUIET_MS:
            self.refused[operation, number, session, reason] = (now, times + 1)

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
        reply = self._claim(key, task, session, lease_ms, force=force)
        if reply[0] != "GRANTED":
            task.refuse("claim", task.number, session, str(reply[0]), self.now)
        return reply

    def _claim(
        self, key: Key, task: ModelTask, session: str, lease_ms: int, *, force: bool
    ) -> tuple[object, ...]:
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
            task.refuse("renew", number, session, refused, self.now)
            return (refused, None)
        task.last.expires_ms = self.now + task.last.lease_ms
        return ("RENEWED", task.last.expires_ms)

    def release(self, key: Key, session: str, number: int, reason: str) -> tuple[object, ...]:
        task = self.tasks[key]
        refused = self._not_holder(task, session, number)
        if refused:
            task.refuse("release", number, session, refused, self.now)
        else:
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
        if lost or not mine:
            if lost and (number, session, reason) not in task.losses:
                task.losses.add((number, session, reason))
                _, times = task.refused.pop(("submit", number, session, reason), (0, 0))
                task.refused["submit", number, session, reason] = (self.now, times + 1)
            else:
                task.refuse("submit", number, session, reason, self.now)
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
