"""Tasks, dependencies, queue and claims behave like a naive model that computes everything anew each time."""

from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from coord.core.errors import CoordError
from coord.core.identity import Caller
from coord.core.plans.commands import (
    AddTasks,
    AssignTask,
    ClaimNext,
    GetTasks,
    NewTask,
    RetryTask,
    Runnable,
    SkipTask,
    SplitTask,
)
from coord.core.sessions.commands import Heartbeat
from coord.core.tasks.commands import ReleaseClaim, ResetTask, SubmitResult
from coord.core.tasks.types import ReleaseReason
from coord.engine.engine import Engine
from coord.stores.open import open_store
from tests.conftest import SOAK

LEASE_MS = 60_000
NAMES = [f"t{number}" for number in range(7)]
PARTS = [f"{name}::{number}" for name in NAMES[:3] for number in (1, 2)]
ONE = st.sampled_from([*NAMES, *PARTS])
AGENTS = ("ann", "bob")


class TaskModel(NamedTuple):
    """What the model knows of a task that was added."""

    depends_on: tuple[str, ...]
    priority: int
    added_ms: int
    base: str = "open"  # open, worked, done, skipped, failed, errored
    agent: str = ""
    until_ms: int = 0
    retries: int = 0
    retry_ms: int = 0
    parts: tuple[str, ...] = ()
    assignee: str = ""
    assigned_until_ms: int = 0


class QueueMachine(RuleBasedStateMachine):
    """One project, two agents, a virtual clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_700_000_000_000
        self.engine = Engine(open_store("memory:"), "local", clock=lambda: self.now)
        self.tasks: dict[str, TaskModel] = {}
        self.generation: dict[str, int] = {}
        self.failed: dict[str, list[int]] = {agent: [] for agent in AGENTS}
        self.limited: dict[str, int] = dict.fromkeys(AGENTS, 0)
        self.beat_ms: dict[str, int] = dict.fromkeys(AGENTS, self.now)
        for agent in AGENTS:
            self.engine.call(Heartbeat(Caller(agent, agent=agent, project="p")))

    # The model.

    def state(self, name: str) -> str:
        model = self.tasks[name]
        if model.base == "worked":
            return "in_progress"
        if model.base != "open":
            return model.base
        if model.retry_ms:
            return "pending"
        states = [self.state(other) for other in model.parts or model.depends_on]
        if any(state in ("failed", "errored", "blocked") for state in states):
            return "blocked"
        free = "done" if model.parts else "ready"
        return free if all(state in ("done", "skipped") for state in states) else "pending"

    def change(self, name: str, **fields: Any) -> None:
        self.tasks[name] = self.tasks[name]._replace(**fields)

    def blocked_reason(self, agent: str) -> bool:
        """Rate limited, or three failures of which no minute took one back and no success all."""
        return self.now < self.limited[agent] or len(self.failures_counted(agent)) >= 3

    def failures_counted(self, agent: str) -> list[int]:
        """The failures that still count: since the last one, a minute forgives the oldest."""
        failed = self.failed[agent]
        return failed[(self.now - failed[-1]) // 60_000 :] if failed else []

    def lose(self, name: str, *, pause: bool) -> None:
        agent = self.tasks[name].agent
        self.failed[agent] = [*self.failures_counted(agent), self.now][-10:]
        retries = self.tasks[name].retries + 1
        if retries > 3:
            self.change(name, base="errored", retries=retries)
        else:
            retry_ms = self.now + min(5_000 * 4 ** (retries - 1), 600_000) if pause else 0
            self.change(name, base="open", retries=retries, retry_ms=retry_ms)

    def live(self, agent: str) -> bool:
        """Whether an agent sent a command in the last five minutes."""
        return self.now - self.beat_ms[agent] < 300_000

    def kept_from(self, name: str, agent: str) -> bool:
        """Whether a task is assigned to another agent that is live and has no task."""
        model = self.tasks[name]
        other = model.assignee
        busy = any(each.base == "worked" and each.agent == other for each in self.tasks.values())
        return (
            other not in ("", agent) and self.now < model.assigned_until_ms and self.live(other) and not busy
        )

    def depends(self, name: str, on: str) -> bool:
        model = self.tasks[name]
        return name == on or any(self.depends(other, on) for other in model.parts or model.depends_on)

    # What happens.

    @rule(
        name=st.sampled_from(NAMES),
        on=st.sets(ONE, max_size=3),
        priority=st.integers(0, 3),
    )
    def add(self, name: str, on: set[str], priority: int) -> None:
        depends_on = tuple(sorted(other for other in on if other in self.tasks))
        closes = (name, *self.tasks[name].parts) if name in self.tasks else ()
        circle = any(self.depends(other, each) for other in depends_on for each in closes)
        task = NewTask(task_id=name, depends_on=depends_on, priority=priority)
        if circle:
            self.refused(AddTasks("p", (task,)))
            return
        self.engine.call(AddTasks("p", (task,)))
        before = self.tasks.get(name, TaskModel((), 0, self.now))
        self.tasks[name] = before._replace(depends_on=depends_on, priority=priority)
        for part in before.parts:
            self.change(part, depends_on=depends_on)

    @rule(name=st.sampled_from([*NAMES[:3], PARTS[0]]))
    def split(self, name: str) -> None:
        model, command = self.tasks.get(name), SplitTask("local", "p", name, 2)
        if model is None or (model.base != "open" and not model.parts) or name in PARTS:
            self.refused(command)
            return
        assert self.engine.call(command).parts == 2
        if not model.parts:
            parts = tuple(part for part in PARTS if part.startswith(f"{name}::"))
            self.change(name, parts=parts, retries=0, retry_ms=0)
            for part in parts:
                self.tasks[part] = TaskModel(model.depends_on, model.priority, self.now)

    @rule(data=st.data(), agent=st.sampled_from(AGENTS), seconds=st.sampled_from([20, 1200]))
    def assign(self, data: st.DataObject, agent: str, seconds: int) -> None:
        name = data.draw(st.sampled_from([*sorted(self.tasks), NAMES[-1]]))
        command = AssignTask(
            caller=Caller("lead"), tenant="local", project="p", task=name, agent=agent, for_ms=seconds * 1000
        )
        taken = name in self.tasks and self.state(name) in ("in_progress", "done", "skipped")
        if name not in self.tasks or taken or not self.live(agent):
            self.refused(command)
            return
        assert self.engine.call(command).assignee == agent
        self.change(name, assignee=agent, assigned_until_ms=self.now + seconds * 1000)

    @rule(agent=st.sampled_from(AGENTS), limit=st.sampled_from([1, 1, 2, 5]))
    def take_next(self, agent: str, limit: int) -> None:
        ready = sorted(
            (model.added_ms - 60_000 * model.priority, name)
            for name, model in self.tasks.items()
            if self.state(name) == "ready" and not self.kept_from(name, agent)
        )
        if self.now - self.beat_ms[agent] >= 15_000:
            self.beat_ms[agent] = self.now
        caller = Caller(agent, agent=agent, project="p")
        command = ClaimNext(caller=caller, tenant="local", project="p", lease_ms=LEASE_MS, limit=limit)
        reply = self.engine.call(command)
        if ready and self.blocked_reason(agent):
            assert reply.outcome is Runnable.BLOCKED
            assert agent in reply.waiting_for[0]
            return
        if ready:
            taken = [reply, *reply.more]
            assert [each.task.task_id for each in taken] == [name for _, name in ready[:limit]]
            for each, (_, name) in zip(taken, ready, strict=False):
                self.generation[name] = self.generation.get(name, 0) + 1
                assert (each.outcome, int(each.claim.generation)) == (Runnable.TASK, self.generation[name])
                self.change(name, base="worked", agent=agent, until_ms=self.now + LEASE_MS)
            return
        unfinished = [name for name in self.tasks if self.state(name) not in ("done", "skipped")]
        moving = [n for n in unfinished if self.state(n) == "in_progress" or self.tasks[n].retry_ms]
        moving += [agent] if self.blocked_reason(agent) else []
        moving += [name for name in self.tasks if self.state(name) == "ready"]
        expected = Runnable.DONE if not unfinished else Runnable.BLOCKED if moving else Runnable.DEADLOCKED
        assert reply.outcome is expected

    def worked(self) -> list[str]:
        return sorted(name for name, model in self.tasks.items() if model.base == "worked")

    @precondition(lambda self: self.worked())
    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.worked()))
        command = SubmitResult("local", "p", name, self.tasks[name].agent, self.generation[name], b"{}", "wp")
        assert self.engine.call(command).accepted
        self.change(name, base="done")
        self.failed[self.tasks[name].agent] = []

    @precondition(lambda self: self.worked())
    @rule(data=st.data(), how=st.sampled_from(["release", "fail", "final", "limited"]))
    def give_back(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(self.worked()))
        agent = self.tasks[name].agent
        reason = ReleaseReason.ERROR if how in ("fail", "final") else ReleaseReason.VOLUNTARY
        command = ReleaseClaim(
            "local",
            "p",
            name,
            agent,
            self.generation[name],
            reason,
            final=how == "final",
            limited_ms=20_000 if how == "limited" else 0,
        )
        assert self.engine.call(command).success
        if how == "limited":
            self.limited[agent] = self.now + 20_000
        if how in ("release", "limited"):
            self.change(name, base="open")
        elif how == "final":
            self.change(name, base="failed")
            self.failed[agent] = [*self.failures_counted(agent), self.now]
        else:
            self.lose(name, pause=True)

    @rule(name=ONE, what=st.sampled_from([SkipTask, RetryTask, ResetTask]))
    def interfere(self, name: str, what: Any) -> None:
        command = what("local", "p", name)
        model = self.tasks.get(name)
        parts = model.parts if model is not None else ()
        if what is ResetTask:
            assert self.engine.call(command).success == (model is not None)
            for each in (name, *parts) if model is not None else ():
                self.change(each, base="open", retries=0, retry_ms=0)
            return
        if model is None or not self.may(what, name):
            self.refused(command)
            return
        self.engine.call(command)
        for each in (name, *parts):
            if what is RetryTask and self.tasks[each].base in ("failed", "errored", "skipped"):
                self.change(each, base="open", retries=0, retry_ms=0)
            elif what is SkipTask and model.base != "skipped" and self.state(each) != "done":
                self.change(each, base="skipped", retry_ms=0)

    def may(self, what: Any, name: str) -> bool:
        model = self.tasks[name]
        if what is RetryTask:
            return model.base in ("failed", "errored", "skipped")
        working = any(self.tasks[each].base == "worked" for each in (name, *model.parts))
        return not working and self.state(name) != "done"

    @rule(seconds=st.sampled_from([1, 6, 30, 61, 700]))
    def let_time_pass(self, seconds: int) -> None:
        self.now += seconds * 1000
        caller = Caller("clerk", agent="clerk")
        self.engine.call(ClaimNext(caller=caller, tenant="local", project="empty", lease_ms=1))  # sweeps
        for name, model in self.tasks.items():
            if model.base == "worked" and self.now >= model.until_ms:
                self.lose(name, pause=False)
            elif model.retry_ms and self.now >= model.retry_ms:
                self.change(name, retry_ms=0)

    def refused(self, command: Any) -> None:
        before = self.shown()
        with pytest.raises(CoordError) as caught:
            self.engine.call(command)
        assert caught.value.hint
        assert self.shown() == before

    def shown(self) -> list[Any]:
        return [msgspec.structs.asdict(task) for task in self.engine.call(GetTasks("p")).tasks]

    @invariant()
    def every_task_stands_as_the_model_says(self) -> None:
        found = {task["task_id"]: (task["state"], task["retries"]) for task in self.shown()}
        assert found == {name: (self.state(name), model.retries) for name, model in self.tasks.items()}

    @invariant()
    def what_was_split_says_how_far_it_is(self) -> None:
        for task in self.shown():
            states = [self.state(part) for part in self.tasks[task["task_id"]].parts]
            if task["state"] != "skipped":
                assert task["parts_done"] == sum(state in ("done", "skipped") for state in states)


def test_tasks_queue_and_claims_are_as_the_model_says() -> None:
    """CLM-15, CLM-59, TID-14, TID-27, SCN-7: none is missed, taken early, lost, or done twice."""
    run_state_machine_as_test(
        QueueMachine,
        settings=settings(
            max_examples=400 if SOAK else 60,
            stateful_step_count=40,
        ),
    )
