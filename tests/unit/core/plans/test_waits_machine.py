"""Random histories of locks, waits and tasks: a deadlock is broken if and only if somebody is stuck.

What the test knows is written down naively: who waits for which files, who waits for a task. Everything else
is read from listings. Whoever is stuck is found by letting everybody else finish.
"""

from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coord.core.locks.commands import ListLocks
from coord.core.plans.commands import GetTasks, SetTrack
from tests.unit.core.plans.test_waits import Office

SESSIONS = ("ann", "bob", "cid", "kid")
PARENTS = {"kid": "ann"}
FILES = ("a", "b", "c")
TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "t": (("a",), (), ""),
    "u": (("b",), ("t",), ""),
    "v": (("c",), (), "x"),
    "w": (("a",), (), "x"),
}
"""The files of each task, the tasks it depends on, and its track, which has room for one agent."""


@dataclass
class Picture:
    """Who waits and who has what, at one moment; `done` are those that can finish."""

    waits: dict[str, str]
    asking: set[str]
    held: set[tuple[str, str]]
    tasks: list[Any]
    done: set[str] = field(default_factory=set)

    def stuck(self) -> set[str]:
        """Let everybody finish that can, again and again; return the others."""
        order = list(self.waits)
        for _ in SESSIONS:
            for name in SESSIONS:
                ahead = order[: order.index(name)] if name in order else []
                locked = name not in self.waits or self.free(name, self.waits[name], ahead)
                if locked and (name not in self.asking or self.gets_task(name)):
                    self.done.add(name)
        return set(SESSIONS) - self.done

    def free(self, session: str, file: str, queue: list[str]) -> bool:
        """Whether a session gets a file when those that can finish have finished."""
        holders = {owner for owner, name in self.held if name == file} - {session, PARENTS.get(session, "")}
        ahead = {other for other in queue if self.waits[other] == file and other != session}
        return ahead <= self.done and all(map(self.lets_go, holders))

    def lets_go(self, holder: str) -> bool:
        """Whether a session releases what it has: its sub-agents have to finish first."""
        below = {name for name, parent in PARENTS.items() if parent == holder}
        return {holder, *below} <= self.done

    def gets_task(self, session: str) -> bool:
        """Whether one of the tasks comes to a session in the end; true if it waits for nobody."""
        ways = [self.comes(session, task) for task in self.tasks if self.is_awaited(session, task)]
        return any(ways) or not ways

    def is_awaited(self, session: str, task: Any) -> bool:
        followed = any(task.task_id in after for _, after, _ in TASKS.values())
        others = task.state == "in_progress" and task.session_id != session
        return task.state == "ready" or (others and followed)

    def comes(self, session: str, task: Any) -> bool:
        files, _, track = TASKS[task.task_id]
        if task.state == "in_progress":
            return self.lets_go(task.session_id)
        claims = [each for each in self.tasks if each.state == "in_progress"]
        on_track = {each.session_id for each in claims if track and TASKS[each.task_id][2] == track}
        if on_track and session not in on_track:
            return any(map(self.lets_go, on_track))
        return all(self.free(session, file, list(self.waits)) for file in files)


class WaitMachine(RuleBasedStateMachine):
    """Four sessions, one of them a sub-agent, three files and four tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.office = Office()
        self.office.parents |= PARENTS
        for name, (files, after, track) in TASKS.items():
            self.office.add(name, *files, after=after, track=track)
        self.office.engine.call(SetTrack("p", "x", 1))
        self.requests: dict[str, tuple[Any, str]] = {}
        self.asking: dict[str, None] = {}

    # What can happen.

    def idle(self, name: str) -> bool:
        return name not in self.requests and name not in self.asking

    @rule(name=st.sampled_from(SESSIONS), file=st.sampled_from(FILES))
    def lock(self, name: str, file: str) -> None:
        """Lock a file or wait for it."""
        if not self.idle(name) or (name, f"file:{file}") in self.office.held():
            return
        expected = None if self.stuck() else self.stuck(request=(name, file))
        before = len(self.office.victims())
        reply = self.office.wait(name, f"file:{file}")
        if reply.wait is not None:
            self.requests[name] = (reply, file)
        self.settle(before, expected, f"{name} waits for {file}")

    @rule(name=st.sampled_from(SESSIONS))
    def ask(self, name: str) -> None:
        """Claim a task or wait for one."""
        if not self.idle(name):
            return
        expected = None if self.stuck() else self.stuck(asks=name)
        before = len(self.office.victims())
        reply = self.office.ask(name)
        if reply.outcome.value == "blocked" and not reply.lost_to:
            self.asking[name] = None
        self.settle(before, expected, f"{name} waits for a task")

    @rule(name=st.sampled_from(SESSIONS))
    def release(self, name: str) -> None:
        """Release everything, and the claims with it."""
        if self.idle(name):
            before = len(self.office.victims())
            for task in self.claimed(name):
                self.office.submit_newest(name, task)
            self.office.release(name)
            self.settle(before, None, f"{name} releases")

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def give_up(self, data: Any) -> None:
        """Leave the wait queue."""
        name = data.draw(st.sampled_from(sorted(self.requests)))
        before = len(self.office.victims())
        self.office.withdraw(name, self.requests.pop(name)[0])
        self.settle(before, None, f"{name} gives up")

    def settle(self, before: int, expected: set[str] | None, what: str) -> None:
        """Let everybody see what came of it, as often as something changes; compare the deadlocks."""
        self.office.pass_time(1_000)
        broken = len(self.office.victims()) > before
        if expected is not None:
            assert broken == bool(expected), f"{what}: stuck {expected}, broken {broken}"
        changed = True
        while changed:
            changed = False
            for name, (reply, _) in list(self.requests.items()):
                if self.office.confirm(name, reply).outcome != "waiting":
                    del self.requests[name]
                    changed = True
            for name in list(self.asking):
                again = self.office.ask(name)
                if again.outcome.value != "blocked" or again.lost_to:
                    del self.asking[name]
                    changed = True

    # Who is stuck.

    def claimed(self, name: str) -> list[str]:
        return [
            task.task_id for task in self.tasks() if task.session_id == name and task.state == "in_progress"
        ]

    def tasks(self) -> list[Any]:
        return list(self.office.engine.call(GetTasks("p")).tasks)

    def stuck(self, request: tuple[str, str] = ("", ""), asks: str = "") -> set[str]:
        """Those that cannot go on if this session began to wait now."""
        waits = {name: file for name, (_, file) in self.requests.items()}
        if request[0]:
            waits[request[0]] = request[1]
        locks = self.office.engine.call(ListLocks(self.office.who("x")))
        held = {(lock.owner, lock.resource.partition(":")[2]) for lock in locks}
        return Picture(waits, {*self.asking, asks} - {""}, held, self.tasks()).stuck()

    @invariant()
    def nobody_is_stuck(self) -> None:
        """DLK-13: no deadlock lasts."""
        assert not self.stuck(), f"{self.requests}, {list(self.asking)}"


TestWaits = WaitMachine.TestCase
TestWaits.settings = settings(max_examples=60, stateful_step_count=20)
