"""Agents that work on tasks: they claim, renew, hand in, give up, crash, oversleep and come back."""

from collections.abc import Generator
from typing import Any

from coord.core.commands import Command
from coord.core.errors import CoordError, Unknown
from coord.core.tasks.commands import (
    ClaimTask,
    ClaimTasks,
    GetClaimHistory,
    GetSessionClaims,
    GetTaskState,
    ListExpiredClaims,
    ReleaseClaim,
    RenewLease,
    ResetTask,
    SubmitResult,
)
from coord.core.tasks.types import ClaimReason, ReleaseReason, derived_uuid
from tests.simulation.agents import Agent, Ask, Rest, Routine

CLOSED = (ClaimReason.DENIED_COMPLETED, ClaimReason.DENIED_LIMIT_GENERATIONS)


class Worker(Agent):
    """One that works on tasks."""

    # The routines.

    def _live(self) -> Routine:
        roll = self.world.chance.random
        if self.memory.unheard is not None and not self._too_late():
            yield from self._insist(self.memory.unheard)
        while True:
            if roll() < 0.75:
                crashed = yield from self._work()
                if crashed:
                    return
            else:
                yield from self._meddle()
            yield Rest(self.world.chance.randrange(0, 8_000))

    def _work(self) -> Generator[Ask | Rest, Any, bool]:
        """Claim something and carry it to some end; True if the agent dies on the way."""
        chance = self.world.chance
        if chance.random() < 0.1:
            return (yield from self._work_on_several())
        task = chance.choice(self.world.tasks)
        force = chance.random() < 0.04
        lease = chance.choice(self.world.plan.leases_ms)
        command = ClaimTask(
            *self._names(task), f"agent-{self.session}", self.session, lease, {}, force, "urgent" * force
        )
        reply = yield from self._ask(command)
        if isinstance(reply, Unknown):
            reply = yield from self._look(task)
            mine = not isinstance(reply, CoordError) and reply.claim is not None
            if not mine or reply.claim.session_id != self.session:
                return False
        elif isinstance(reply, CoordError):
            return False
        elif reply.claim is None:
            if reply.reason in CLOSED and chance.random() < 0.25:
                yield from self._ask(ResetTask(*self._names(task), "once more"))
            return False
        generation = int(reply.claim.generation)
        self.memory.held = [*self.memory.held[-7:], (task, generation)]
        return (yield from self._hold(task, generation, lease))

    def _work_on_several(self) -> Generator[Ask | Rest, Any, bool]:
        """Claim a few at once and begin with the first that was granted; the rest may run out."""
        chance, lease = self.world.chance, self.world.plan.leases_ms[0]
        tasks = chance.sample(self.world.tasks, min(len(self.world.tasks), chance.randint(2, 5)))
        pairs = tuple((project, name) for _, project, name in map(self._names, tasks))
        agent = f"agent-{self.session}"
        reply = yield Ask(ClaimTasks(self.world.plan.tenant, agent, self.session, lease, pairs))
        if isinstance(reply, CoordError):
            return False
        granted = [
            (task, int(one.claim.generation)) for task, one in zip(tasks, reply, strict=True) if one.claim
        ]
        self.memory.held = [*self.memory.held[-7:], *granted]
        if not granted:
            return False
        return (yield from self._hold(*granted[0], lease))

    def _hold(self, task: str, generation: int, lease: int) -> Generator[Ask | Rest, Any, bool]:
        chance = self.world.chance
        for _ in range(chance.randrange(0, 4)):
            crashed = yield from self._pass_time(task, generation, lease)
            if crashed:
                return True
        match chance.choice(("submit", "submit", "submit", "submit", "release", "fail", "forget")):
            case "submit":
                again = self._submit(task, generation)
                for _ in range(1 if chance.random() < 0.8 else 2):
                    yield from self._ask(again)
            case "release":
                yield from self._ask(self._release(task, generation, ReleaseReason.VOLUNTARY))
            case "fail":
                yield from self._ask(self._release(task, generation, ReleaseReason.ERROR))
        return False

    def _pass_time(self, task: str, generation: int, lease: int) -> Generator[Ask | Rest, Any, bool]:
        """One thing that happens to somebody at work; True if it is the last."""
        chance = self.world.chance
        match chance.choice(("rest", "rest", "renew", "look", "oversleep", "crash", "another")):
            case "rest":
                yield Rest(chance.randrange(0, lease))
            case "renew":
                yield from self._ask(self._renew(task, generation))
            case "look":
                yield from self._look(task)
            case "oversleep":
                yield Rest(lease * chance.randint(1, 3) + chance.randrange(0, 5_000))
            case "crash":
                if chance.random() < 0.3:
                    return True
            case "another":
                crashed = yield from self._work()
                if crashed:
                    return True
        return False

    def _meddle(self) -> Routine:
        """Ask questions, and do what a confused or outdated agent would do."""
        chance = self.world.chance
        task, generation = chance.choice(self.memory.held or [(chance.choice(self.world.tasks), 1)])
        generation += chance.choice((0, 0, 0, 0, -1, 1, 5))
        stranger = chance.random() < 0.25
        session = chance.choice(self.world.sessions) if stranger else self.session
        generation = max(0, generation)
        doings = ("look", "history", "claims", "expired", "submit", "renew", "release", "reset")
        match chance.choices(doings, (5, 2, 6, 1, 5, 3, 3, 1))[0]:
            case "look":
                yield from self._look(chance.choice(self.world.tasks))
            case "history":
                yield from self._ask(GetClaimHistory(*self._names(task)))
            case "claims":
                yield from self._ask(GetSessionClaims(self.world.plan.tenant, session))
            case "expired":
                yield from self._ask(ListExpiredClaims(self.world.plan.tenant))
            case "submit":
                yield from self._ask(self._submit(task, generation, session))
            case "renew":
                yield from self._ask(self._renew(task, generation, session))
            case "release":
                yield from self._ask(self._release(task, generation, ReleaseReason.VOLUNTARY, session))
            case "reset":
                yield from self._ask(ResetTask(*self._names(task), "once more"))

    # Asking.

    def _look(self, task: str) -> Routine:
        return (yield Ask(GetTaskState(*self._names(task))))

    # Commands.

    def _names(self, task: str) -> tuple[str, str, str]:
        project, name = task.split("/")
        return self.world.plan.tenant, project, name

    def _renew(self, task: str, generation: int, session: str = "") -> Command:
        return RenewLease(*self._names(task), session or self.session, generation)

    def _release(self, task: str, generation: int, reason: ReleaseReason, session: str = "") -> Command:
        return ReleaseClaim(*self._names(task), session or self.session, generation, reason)

    def _submit(self, task: str, generation: int, session: str = "") -> Command:
        unique = self.world.draw_id()
        work = f"wp-{task}-gen{generation}-{derived_uuid(unique)[:6]}-{unique}"
        session = session or self.session
        size = self.world.chance.choice((0, 0, 0, 400, 8_000))
        result = f'{{"by":"{unique}","fill":"{"x" * size}"}}'.encode()
        return SubmitResult(*self._names(task), session, generation, result, work)
