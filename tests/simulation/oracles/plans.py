"""What the log says about a plan: each event must be legal where it stands, and what is ready follows.

Knows the plan and the events, no record and no index: a task is ready when all it depends on is done or
skipped, and nobody works on it. After every event a `Snapshot` is kept, so that an answer can be held against
all that was true while it was given.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from coord.core.plans.commands import ClaimNext, NewTask
from coord.core.tasks.agent_record import FAILURES_TO_BLOCK
from coord.core.tasks.schema import PRIORITY_STEP_MS
from tests.linearizability.ledger import require

OVER = ("done", "skipped")
BLOCKING_STATES = ("failed", "errored", "blocked")


class Active(NamedTuple):
    """Who works on a task."""

    session: str
    agent: str
    generation: int


class Snapshot(NamedTuple):
    """All that an agent who asks for work may meet."""

    ready: frozenset[str]
    moving: frozenset[str]
    unfinished: frozenset[str]
    held: dict[str, str]
    busy: dict[str, frozenset[str]]


class PlanOracle:
    """One project as the log tells it."""

    def __init__(self, plan: dict[str, NewTask], agents_max: dict[str, int]) -> None:
        self.plan = plan
        self.agents_max = agents_max
        self.base: dict[str, str] = {}
        self.rank: dict[str, tuple[int, str]] = {}
        self.paused_until: dict[str, int] = {}
        self.generation: dict[str, int] = {}
        self.active: dict[str, Active] = {}
        self.late: dict[str, Active] = {}
        self.held: dict[str, str] = {}
        self.claimed_at: dict[tuple[str, int], int] = {}
        self.accepted: dict[str, int] = {}
        self.snapshots = [Snapshot(frozenset(), frozenset(), frozenset(), {}, {})]
        self.offset = 0
        self._failures: Counter[str] = Counter()
        self._taken_over = ""

    def read(self, events: Iterable[bytes], offset: int, at: int) -> None:
        """Read the next entry."""
        require(offset == self.offset + 1, "the log has a gap:", self.offset, "then", offset)
        self.offset = offset
        for data in events:
            event = json.loads(data)
            kind, _, what = event["event"].partition(".")
            reader = getattr(self, f"_{kind}_{what}", None)
            if reader is None:
                continue
            reader(event, at)
            if kind in ("task", "lock"):
                self.snapshots.append(self._snapshot())

    def end_pause(self, task: str) -> None:
        """Let a task be taken again after a failure."""
        del self.paused_until[task]
        self.snapshots.append(self._snapshot())

    def failures(self, agent: str) -> bool:
        """Whether an agent has failed so often that it may be given nothing for a while."""
        return self._failures[agent] >= FAILURES_TO_BLOCK

    # What follows.

    def state(self, task: str) -> str:
        """The state of a task that nobody works on, computed from its dependencies each time."""
        base = self.base[task]
        if base != "open" or task in self.paused_until:
            return "pending" if base == "open" else base
        states = {self.state(name) for name in self.plan[task].depends_on}
        if states & set(BLOCKING_STATES):
            return "blocked"
        return "ready" if states <= set(OVER) else "pending"

    def _snapshot(self) -> Snapshot:
        states = {task: self.state(task) for task in self.base}
        ready = {t for t, state in states.items() if state == "ready" and t not in self.paused_until}
        busy: dict[str, set[str]] = {}
        for task, active in self.active.items():
            busy.setdefault(self.plan[task].track, set()).add(active.agent)
        return Snapshot(
            frozenset(ready),
            frozenset({*ready, *self.active, *self.paused_until}),
            frozenset(task for task, state in states.items() if state not in OVER),
            dict(self.held),
            {track: frozenset(agents) for track, agents in busy.items()},
        )

    def takeable(self, snapshot: Snapshot, command: ClaimNext) -> set[str]:
        """What this agent could have been given at a moment."""
        return {task for task in snapshot.ready if self._may_take(self.plan[task], snapshot, command)}

    def _may_take(self, task: NewTask, snapshot: Snapshot, command: ClaimNext) -> bool:
        wanted = ((command.types, task.type), (command.tracks, task.track), (command.roles, task.role))
        if any(choice and value and value not in choice for choice, value in wanted):
            return False
        agents = snapshot.busy.get(task.track, frozenset()) if task.track else frozenset()
        if command.caller.agent not in agents and len(agents) >= self.agents_max.get(task.track, 1):
            return False
        free = all(
            snapshot.held.get(file, command.caller.session) == command.caller.session for file in task.files
        )
        return set(task.needs) <= set(command.has) and (free or not command.lock_files)

    # One reader per event.

    def _task_added(self, event: dict[str, Any], at: int) -> None:
        task = event["task"]
        require(task not in self.base, "added twice:", event)
        require(all(name in self.base for name in self.plan[task].depends_on), "added too early:", event)
        self.base[task] = "open"
        self.rank[task] = (at - PRIORITY_STEP_MS * self.plan[task].priority, task)
        require(event["state"] == self.state(task), "added as something else:", event)

    def _task_claimed(self, event: dict[str, Any], at: int) -> None:
        task = event["task"]
        require(at >= self.paused_until.pop(task, 0), "claimed in its pause:", event)
        runs_on = self._taken_over == task  # work that was begun goes on, also in other hands
        self._taken_over = ""
        require(runs_on or self.state(task) == "ready", "claimed although it is", self.state(task), event)
        require(task not in self.active, "claimed twice:", event)
        require(event["generation"] == self.generation.get(task, 0) + 1, "a generation is missing:", event)
        self.generation[task] = event["generation"]
        track = self.plan[task].track
        agents = self._snapshot().busy.get(track, frozenset()) | {event["agent"]}
        require(not track or len(agents) <= self.agents_max.get(track, 1), "too many on a track:", event)
        self.active[task] = Active(event["session"], event["agent"], event["generation"])
        self.late.pop(task, None)
        self.base[task] = "in_progress"
        self.claimed_at[task, event["generation"]] = len(self.snapshots)

    def _task_completed(self, event: dict[str, Any], _at: int) -> None:
        task = event["task"]
        holder = self.active.pop(task, None) or self.late.pop(task, None)
        require(holder is not None, "done by nobody:", event)
        claim = Active(event["session"], event["agent"], event["generation"])
        require(claim == holder, "done by another than its holder:", event, holder)
        require(self.base[task] != "done", "done twice:", event)
        self.base[task] = "done"
        self.paused_until.pop(task, None)
        self.accepted[task] = self.accepted.get(task, 0) + 1

    def _end(self, event: dict[str, Any]) -> Active:
        task = event["task"]
        holder = self.active.pop(task, None)
        require(holder is not None, "the end of nothing:", event)
        assert holder is not None
        require(holder.generation == event["generation"], "the end of another generation:", event)
        if self.base[task] == "in_progress":
            self.base[task] = "open"
        return holder

    def _task_released(self, event: dict[str, Any], _at: int) -> None:
        self._failures[event["agent"]] += event["reason"] == "ERROR"
        self._end(event)

    def _task_superseded(self, event: dict[str, Any], _at: int) -> None:
        self._taken_over = event["task"]
        self._end(event)

    def _task_expired(self, event: dict[str, Any], at: int) -> None:
        require(at >= event["expired_ms"], "run out before its time:", event)
        self._failures[event["agent"]] += 1
        self.late[event["task"]] = self._end(event)

    def _task_retried(self, event: dict[str, Any], _at: int) -> None:
        require(self.base[event["task"]] not in ("open", "done") or event["retries"], "again:", event)
        self.base[event["task"]] = "open"
        if event.get("retry_ms"):
            self.paused_until[event["task"]] = event["retry_ms"]

    def _task_failed(self, event: dict[str, Any], _at: int) -> None:
        self.base[event["task"]] = "failed"

    def _task_errored(self, event: dict[str, Any], _at: int) -> None:
        require(event["retries"] > self.plan[event["task"]].retries_max, "given up too early:", event)
        self.base[event["task"]] = "errored"

    def _task_skipped(self, event: dict[str, Any], _at: int) -> None:
        task = event["task"]
        require(task not in self.active, "skipped while somebody works on it:", event)
        require(self.base[task] != "done", "skipped although it is done:", event)
        self.base[task] = "skipped"
        self.paused_until.pop(task, None)

    def _task_reset(self, event: dict[str, Any], _at: int) -> None:
        task = event["task"]
        require(task not in self.active, "reset, and its claim goes on:", event)
        self.base[task] = "open"
        self.late.pop(task, None)
        self.paused_until.pop(task, None)
        self.accepted.pop(task, None)

    def _lock_acquired(self, event: dict[str, Any], _at: int) -> None:
        owner = self.held.get(event["resource"], event["session"])
        require(owner == event["session"], "held twice:", event, owner)
        self.held[event["resource"]] = event["session"]

    def _lock_released(self, event: dict[str, Any], _at: int) -> None:
        require(self.held.pop(event["resource"], "") == event["session"], "given back by another:", event)
