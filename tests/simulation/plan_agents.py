"""Agents that carry out a plan: they take the next task, hand in, fail, crash, oversleep, skip and retry."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from coord.core.commands import Command
from coord.core.errors import CoordError
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ReleaseLocks
from coord.core.plans.commands import AddTasks, ClaimNext, RetryTask, SkipTask
from coord.core.tasks.commands import ClaimTask, ReleaseClaim, RenewLease, ResetTask, SubmitResult
from coord.core.tasks.types import ReleaseReason
from tests.simulation.agents import Agent, Ask, Memory, Rest, Routine
from tests.simulation.plan_setting import FILES, PROJECT, REPOSITORY


@dataclass(slots=True)
class PlanMemory(Memory):
    """What one agent is able to do, besides what it remembers."""

    types: tuple[str, ...] = ()
    has: tuple[str, ...] = ()


class PlanAgent(Agent):
    """One that takes tasks from the queue."""

    @property
    def caller(self) -> Caller:
        return Caller(self.session, agent=f"agent-{self.session}")

    def _live(self) -> Routine:
        roll = self.world.chance.random
        if self.memory.unheard is not None and not self._too_late():
            yield from self._insist(self.memory.unheard)
        while True:
            if roll() < 0.8:
                crashed = yield from self._work()
                if crashed:
                    return
            else:
                yield from self._meddle()
            yield Rest(self.world.chance.randrange(0, 8_000))

    def _work(self) -> Generator[Ask | Rest, Any, bool]:
        """Take the next task, or a few, and carry them to some end; True if the agent dies on the way."""
        chance = self.world.chance
        lease = chance.choice(self.world.plan.leases_ms)
        reply = yield from self._ask(self.next_command(lease, limit=chance.choice((1, 1, 1, 3))))
        if isinstance(reply, CoordError) or reply.claim is None:
            return False
        taken = [(each.task.task_id, int(each.claim.generation)) for each in (reply, *reply.more)]
        self.memory.held = [*self.memory.held[-7:], *taken]
        for task, generation in taken:
            if (yield from self._hold(task, generation, lease)):
                return True
        return False

    def next_command(self, lease_ms: int, *, lock_files: bool = True, limit: int = 1) -> ClaimNext:
        return ClaimNext(
            caller=self.caller,
            tenant="local",
            project=PROJECT,
            lease_ms=lease_ms,
            repository=REPOSITORY,
            types=self.memory.types,
            has=self.memory.has,
            lock_files=lock_files,
            limit=limit,
        )

    def _hold(self, task: str, generation: int, lease: int) -> Generator[Ask | Rest, Any, bool]:
        chance = self.world.chance
        for _ in range(chance.randrange(0, 3)):
            match chance.choice(("rest", "rest", "renew", "oversleep", "crash")):
                case "rest":
                    yield Rest(chance.randrange(0, lease))
                case "renew":
                    names = ("local", PROJECT, task, self.session, generation)
                    yield from self._ask(RenewLease(*names))
                case "oversleep":
                    yield Rest(lease * chance.randint(1, 3) + chance.randrange(0, 5_000))
                case "crash" if chance.random() < 0.3:
                    return True
        yield from self._end(task, generation)
        return False

    def _end(self, task: str, generation: int) -> Routine:
        chance = self.world.chance
        if chance.random() < self.world.plan.luck:
            for _ in range(1 if chance.random() < 0.8 else 2):
                yield from self._ask(self._submit(task, generation))
            return
        match chance.choice(("release", "fail", "fail", "final", "forget")):
            case "release":
                yield from self._ask(self._release(task, generation, ReleaseReason.VOLUNTARY))
            case "fail":
                yield from self._ask(self._release(task, generation, ReleaseReason.ERROR))
            case "final":
                yield from self._ask(self._release(task, generation, ReleaseReason.ERROR, final=True))

    def _meddle(self) -> Routine:
        """Do what people and confused agents do."""
        chance = self.world.chance
        task = chance.choice(list(self.world.plan.tasks))
        mine, generation = chance.choice(self.memory.held or [(task, 1)])
        doings = ("add", "submit", "claim", "lock", "unlock", "skip", "retry", "reset")
        match chance.choices(doings, (4, 4, 3, 4, 3, 1, 3, 1))[0]:
            case "add":
                yield from self._ask(self.world.addition())
            case "submit":
                yield from self._ask(self._submit(mine, max(0, generation + chance.choice((0, 0, -1, 1)))))
            case "claim":
                yield from self._claim(task)
            case "lock":
                yield from self._ask(
                    AcquireLocks(self.caller, REPOSITORY, (chance.choice(FILES),), ttl_ms=15_000)
                )
            case "unlock":
                yield from self._ask(ReleaseLocks(self.caller, REPOSITORY, ()))
            case "skip":
                yield from self._ask(SkipTask("local", PROJECT, task))
            case "retry":
                yield from self._ask(RetryTask("local", PROJECT, task))
            case "reset":
                yield from self._ask(ResetTask("local", PROJECT, task, "once more"))

    def _claim(self, task: str) -> Routine:
        """Claim a task by its name: only what was added, for claims know nothing of a plan."""
        if task not in self.world.observer.oracle.base:
            return
        chance = self.world.chance
        lease, force = chance.choice(self.world.plan.leases_ms), chance.random() < 0.2
        reason = "urgent" * force
        reply = yield from self._ask(
            ClaimTask("local", PROJECT, task, self.caller.agent, self.session, lease, {}, force, reason)
        )
        if not isinstance(reply, CoordError) and reply.claim is not None:
            self.memory.held = [*self.memory.held[-7:], (task, int(reply.claim.generation))]

    def _submit(self, task: str, generation: int) -> Command:
        names = ("local", PROJECT, task, self.session, generation)
        return SubmitResult(*names, b"{}", f"wp-{task}-{generation}-{self.world.draw_id()}")

    def _release(self, task: str, generation: int, reason: ReleaseReason, *, final: bool = False) -> Command:
        names = ("local", PROJECT, task, self.session, generation)
        return ReleaseClaim(*names, reason, "", final)


def addition(tasks: tuple[Any, ...]) -> AddTasks:
    """Add tasks, or find that they are there already."""
    return AddTasks(PROJECT, tasks)
