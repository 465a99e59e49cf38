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

from coord.core.commands import ReleaseClaim, ResetTask, SubmitResult
from coord.core.errors import CoordError
from coord.core.identity import Caller
from coord.core.plans.commands import AddTasks, ClaimNext, GetTasks, NewTask, RetryTask, SkipTask, SplitTask
from coord.core.replies import Runnable
from coord.core.tasks.types import ReleaseReason
from coord.engine.engine import Engine
from coord.stores.open import open_store
from tests.conftest import SOAK

LEASE_MS = 60_000
NAMES = [f"t{number}" for number in range(7)]
PARTS = [f"{name}::{number}" for name in NAMES[:3] for number in (1, 2)]
ONE = st.sampled_from([*NAMES, *PARTS])
AGENTS = ("ann", "bob")


class DeadlockWarning(NamedTuple):
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


class QueueMachine(RuleBasedStateMachine):
    """One project, two agents, a virtual clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_700_000_000_000
        self.engine = Engine(open_store("memory:"), "local", clock=lambda: self.now)
        self.told: dict[str, DeadlockWarning] = {}
        self.generation: dict[str, int] = {}
        self.failed: dict[str, list[int]] = {agent: [] for agent in AGENTS}
        self.limited: dict[str, int] = dict.fromkeys(AGENTS, 0)

    # The model.

    def state(self, name: str) -> str:
        told = self.told[name]
        if told.base == "worked":
            return "in_progress"
        if told.base != "open":
            return told.base
        if told.retry_ms:
            return "pending"
        states = [self.state(other) for other in told.parts or told.depends_on]
        if any(state in ("failed", "errored", "blocked") for state in states):
            return "blocked"
        free = "done" if told.parts else "ready"
        return free if all(state in ("done", "skipped") for state in states) else "pending"

    def change(self, name: str, **fields: Any) -> None:
        self.told[name] = self.told[name]._replace(**fields)

    def blocked_reason(self, agent: str) -> bool:
        """Rate limited, or three failures of which no minute took one back and no success all."""
        return self.now < self.limited[agent] or len(self.bear_in_mind(agent)) >= 3

    def bear_in_mind(self, agent: str) -> list[int]:
        """The failures that still count: since the last one, a minute forgives the oldest."""
        failed = self.failed[agent]
        return failed[(self.now - failed[-1]) // 60_000 :] if failed else []

    def lose(self, name: str, *, pause: bool) -> None:
        agent = self.told[name].agent
        self.failed[agent] = [*self.bear_in_mind(agent), self.now][-10:]
        retries = self.told[name].retries + 1
        if retries > 3:
            self.change(name, base="errored", retries=retries)
        else:
            retry_ms = self.now + min(5_000 * 4 ** (retries - 1), 600_000) if pause else 0
            self.change(name, base="open", retries=retries, retry_ms=retry_ms)

    def depends(self, name: str, on: str) -> bool:
        told = self.told[name]
        return name == on or any(self.depends(other, on) for other in told.parts or told.depends_on)

    # What happens.

    @rule(
        name=st.sampled_from(NAMES),
        on=st.sets(ONE, max_size=3),
        priority=st.integers(0, 3),
    )
    def add(self, name: str, on: set[str], priority: int) -> None:
        depends_on = tuple(sorted(other for other in on if other in self.told))
        closes = (name, *self.told[name].parts) if name in self.told else ()
        circle = any(self.depends(other, each) for other in depends_on for each in closes)
        task = NewTask(task_id=name, depends_on=depends_on, priority=priority)
        if circle:
            self.refused(AddTasks("p", (task,)))
            return
        self.engine.call(AddTasks("p", (task,)))
        before = self.told.get(name, DeadlockWarning((), 0, self.now))
        self.told[name] = before._replace(depends_on=depends_on, priority=priority)
        for part in before.parts:
            self.change(part, depends_on=depends_on)

    @rule(name=st.sampled_from([*NAMES[:3], PARTS[0]]))
    def split(self, name: str) -> None:
        told, command = self.told.get(name), SplitTask("local", "p", name, 2)
        if told is None or (told.base != "open" and not told.parts) or name in PARTS:
            self.refused(command)
            return
        assert self.engine.call(command).parts == 2
        if not told.parts:
            parts = tuple(part for part in PARTS if part.startswith(f"{name}::"))
            self.change(name, parts=parts, retries=0, retry_ms=0)
            for part in parts:
                self.told[part] = DeadlockWarning(told.depends_on, told.priority, self.now)

    @rule(agent=st.sampled_from(AGENTS), most=st.sampled_from([1, 1, 2, 5]))
    def take_next(self, agent: str, most: int) -> None:
        ready = sorted(
            (told.added_ms - 60_000 * told.priority, name)
            for name, told in self.told.items()
            if self.state(name) == "ready"
        )
        caller = Caller(agent, agent=agent)
        command = ClaimNext(caller=caller, tenant="local", project="p", lease_ms=LEASE_MS, most=most)
        reply = self.engine.call(command)
        if ready and self.blocked_reason(agent):
            assert reply.outcome is Runnable.BLOCKED
            assert agent in reply.waiting_for[0]
            return
        if ready:
            taken = [reply, *reply.more]
            assert [each.task.task_id for each in taken] == [name for _, name in ready[:most]]
            for each, (_, name) in zip(taken, ready, strict=False):
                self.generation[name] = self.generation.get(name, 0) + 1
                assert (each.outcome, int(each.claim.generation)) == (Runnable.TASK, self.generation[name])
                self.change(name, base="worked", agent=agent, until_ms=self.now + LEASE_MS)
            return
        unfinished = [name for name in self.told if self.state(name) not in ("done", "skipped")]
        moving = [n for n in unfinished if self.state(n) == "in_progress" or self.told[n].retry_ms]
        moving += [agent] if self.blocked_reason(agent) else []
        expected = Runnable.DONE if not unfinished else Runnable.BLOCKED if moving else Runnable.DEADLOCKED
        assert reply.outcome is expected

    def worked(self) -> list[str]:
        return sorted(name for name, told in self.told.items() if told.base == "worked")

    @precondition(lambda self: self.worked())
    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.worked()))
        command = SubmitResult("local", "p", name, self.told[name].agent, self.generation[name], b"{}", "wp")
        assert self.engine.call(command).accepted
        self.change(name, base="done")
        self.failed[self.told[name].agent] = []

    @precondition(lambda self: self.worked())
    @rule(data=st.data(), how=st.sampled_from(["release", "fail", "final", "limited"]))
    def give_back(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(self.worked()))
        agent = self.told[name].agent
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
            self.failed[agent] = [*self.bear_in_mind(agent), self.now]
        else:
            self.lose(name, pause=True)

    @rule(name=ONE, what=st.sampled_from([SkipTask, RetryTask, ResetTask]))
    def interfere(self, name: str, what: Any) -> None:
        command = what("local", "p", name)
        told = self.told.get(name)
        parts = told.parts if told is not None else ()
        if what is ResetTask:
            assert self.engine.call(command).success == (told is not None)
            for each in (name, *parts) if told is not None else ():
                self.change(each, base="open", retries=0, retry_ms=0)
            return
        if told is None or not self.may(what, name):
            self.refused(command)
            return
        self.engine.call(command)
        for each in (name, *parts):
            if what is RetryTask and self.told[each].base in ("failed", "errored", "skipped"):
                self.change(each, base="open", retries=0, retry_ms=0)
            elif what is SkipTask and told.base != "skipped" and self.state(each) != "done":
                self.change(each, base="skipped", retry_ms=0)

    def may(self, what: Any, name: str) -> bool:
        told = self.told[name]
        if what is RetryTask:
            return told.base in ("failed", "errored", "skipped")
        working = any(self.told[each].base == "worked" for each in (name, *told.parts))
        return not working and self.state(name) != "done"

    @rule(seconds=st.sampled_from([1, 6, 30, 61, 700]))
    def let_time_pass(self, seconds: int) -> None:
        self.now += seconds * 1000
        caller = Caller("clerk", agent="clerk")
        self.engine.call(ClaimNext(caller=caller, tenant="local", project="empty", lease_ms=1))  # sweeps
        for name, told in self.told.items():
            if told.base == "worked" and self.now >= told.until_ms:
                self.lose(name, pause=False)
            elif told.retry_ms and self.now >= told.retry_ms:
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
        assert found == {name: (self.state(name), told.retries) for name, told in self.told.items()}

    @invariant()
    def what_was_split_says_how_far_it_is(self) -> None:
        for task in self.shown():
            states = [self.state(part) for part in self.told[task["task_id"]].parts]
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
