"""Agents with sessions: they lock, wait, renew, steal, write letters, die, fall silent and come back."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from coord.core.commands import Command
from coord.core.errors import Busy, CoordError, Dead, Unavailable, Unknown
from coord.core.identity import Caller
from coord.core.identity import Process as HostProcess
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.locks.commands import (
    AcquireLocks,
    CheckLocks,
    ConfirmWait,
    ListLocks,
    LockInfo,
    LockReply,
    Outcome,
    PeekWait,
    PreemptLock,
    ReleaseLocks,
    RenewLocks,
    StealLock,
    WithdrawWait,
)
from coord.core.messages.commands import AckMessages, PeekMessages, ReceiveMessages, SendMessage
from coord.core.sessions.commands import Heartbeat, ListSessions, UpdateSession
from tests.simulation.agents import Agent, Ask, Memory, Rest, Routine
from tests.simulation.resources import REPOSITORY, files_of

WEATHER = (Busy, Unavailable, Unknown)
Wish = Ask | Rest
GRACES_MS = (0, 5_000, 30_000)
KINDS = ("handoff", "warn", "emergency", "status", "request", "reply")


@dataclass(slots=True)
class LockMemory(Memory):
    """What outlives an agent: its session and the process of that, its parent, what it was granted."""

    host: HostProcess | None = None
    parent: str = ""


class LockAgent(Agent):
    """One session's life."""

    memory: LockMemory

    def __init__(self, world: Any, process: Any, memory: LockMemory) -> None:
        super().__init__(world, process, memory)
        self.waiter = world.begin_host()
        """The process of the command that waits."""

    @property
    def caller(self) -> Caller:
        host = self.memory.host
        return Caller(
            self.session,
            agent=f"agent-{self.session}",
            parent=self.memory.parent,
            process=host,
            process_ancestors=(host,) if host is not None and self.world.plan.futures else (),
        )

    # The routines.

    def _live(self) -> Routine:
        chance, plan = self.world.chance, self.world.plan
        if self.memory.unheard is not None and not self._too_late():
            yield from self._insist(self.memory.unheard)
        if chance.random() < 0.5:
            yield from self._ask(self._register())
        doings = (self._work, self._meddle, self._mail, self._beat, self._rest_long, self._leave, self._clear)
        weights = (60, 18, 14, 4, 2, 2, 2, 100 * plan.sub_agents, 100 * plan.mortality)
        while not self.world.closing:
            doing = chance.choices((*doings, self._get_help, self._die), weights)[0]
            if (yield from doing()):
                return
            yield Rest(chance.randrange(0, 8_000))
        yield from self._part()

    def _rest_long(self) -> Routine:
        yield Rest(self.world.chance.randrange(60_000, 700_000))

    def _leave(self) -> Routine:
        yield from self._ask(Deregister(self.caller))

    def _get_help(self) -> Routine:
        self.world.adopt(self)
        yield Rest(0)

    def _die(self) -> Generator[Wish, Any, bool]:
        yield Rest(0)
        return True

    def _work(self, depth: int = 0) -> Generator[Wish, Any, bool]:
        """Lock something, do something and give it back; True if the agent dies on the way."""
        chance, plan = self.world.chance, self.world.plan
        several = min(len(plan.resources), chance.choice((1, 1, 1, 2, 3)))
        wanted = tuple(chance.sample(plan.resources, several))
        command = AcquireLocks(
            self.caller,
            REPOSITORY,
            wanted,
            exact=files_of(wanted),
            mode=chance.choice(("", "", "read", "write", "exclusive")),
            profile="ticket" if chance.random() < 0.1 else "",
            ttl_ms=chance.choice(plan.ttls_ms),
            priority=chance.choice((0, 0, 0, 1, 3)),
            preemptible=chance.random() < 0.2,
            wait_ms=chance.choice((0, *plan.patience_ms)),
            wait_id=self.world.draw_id(),
            waiter=self.waiter,
            leased=chance.random() < 0.5,
        )
        reply = yield from self._take(command)
        if reply is None:
            return chance.random() < plan.mortality
        fences = [(lock.resource, lock.fence) for lock in reply.locks]
        self.memory.held = [*self.memory.held[-9:], *fences]
        return (yield from self._hold(reply.locks, depth))

    def _take(self, command: AcquireLocks) -> Generator[Wish, Any, LockReply | None]:
        """Ask for locks: once, again and again, or in line; None if nothing came of it."""
        chance = self.world.chance
        for _ in range(chance.choice((1, 1, 4, 9))):
            reply = yield from self._ask(command)
            if isinstance(reply, LockReply) and reply.wait is not None:
                reply = yield from self._stand_in_line(reply, command.wait_ms)
            if isinstance(reply, LockReply) and reply.ok:
                return reply
            if isinstance(reply, CoordError) or reply.outcome is not Outcome.HELD:
                return None
            yield Rest(chance.randrange(0, 10_000))
        return None

    def _stand_in_line(self, reply: LockReply, patience_ms: int) -> Generator[Wish, Any, Any]:
        """Look after a place in line until something comes of it; now and then too seldom."""
        assert reply.wait is not None, "a waiting request has a place"
        chance, key = self.world.chance, reply.wait.wait_id
        give_up_us = self.world.now_us + patience_ms * 1000
        if chance.random() < 0.2:
            give_up_us = self.world.now_us + chance.randrange(0, patience_ms) * 1000
        while self.world.now_us < give_up_us:
            yield Rest(chance.choice((500, 2_000, 2_000, 4_000, 4_000, 20_000)))
            if chance.random() < 0.3 and not (yield Ask(PeekWait(self.caller, key))):
                continue
            answer = yield Ask(ConfirmWait(self.caller, key))
            if isinstance(answer, LockReply) and answer.outcome is not Outcome.WAITING:
                return answer
            if isinstance(answer, CoordError) and not isinstance(answer, WEATHER):
                return answer
        yield from self._ask(WithdrawWait(self.caller, key))
        return LockReply(Outcome.WITHDRAWN)

    def _hold(self, locks: list[LockInfo], depth: int) -> Generator[Wish, Any, bool]:
        chance = self.world.chance
        doings = ("rest", "rest", "renew", "check", "oversleep", "another", "another", "mail", "leave", "die")
        for doing in chance.choices(doings, k=chance.randrange(0, 4)):
            match doing:
                case "rest":
                    yield Rest(chance.randrange(0, 20_000))
                case "renew":
                    yield from self._renew(chance.choice(locks))
                case "check":
                    yield from self._check(chance.choice(locks))
                case "oversleep":
                    yield Rest(chance.randrange(10_000, 400_000))
                case "another" if depth < 3 and (yield from self._work(depth + 1)):
                    return True
                case "mail":
                    yield from self._mail()
                case "leave" if chance.random() < 0.3:
                    yield from self._leave()
                case "die" if chance.random() < 4 * self.world.plan.mortality:
                    return True
        yield from self._give_back(locks)
        return False

    def _give_back(self, locks: list[LockInfo]) -> Routine:
        """One by one with their fences, by name, all at once, or not at all."""
        match self.world.chance.choice(("each", "each", "each", "named", "all", "forget")):
            case "each":
                for lock in locks:
                    yield from self._release(lock.resource, lock.fence)
            case "named":
                names = tuple(lock.resource for lock in locks)
                yield from self._ask(ReleaseLocks(self.caller, REPOSITORY, names))
            case "all":
                yield from self._ask(ReleaseLocks(self.caller, REPOSITORY, ()))

    def _meddle(self) -> Routine:
        """Ask questions, take what others hold, and do what an outdated agent would do."""
        chance, plan = self.world.chance, self.world.plan
        resource, fence = chance.choice(self.memory.held or [(self.world.draw_resource(), 1)])
        old, other = (
            (self.caller, REPOSITORY, (resource,)),
            (self.caller, REPOSITORY, (chance.choice(plan.resources),)),
        )
        exact = files_of(other[2])
        wish = chance.choice(
            (
                RenewLocks(*old, fence),
                ReleaseLocks(*old, fence),
                CheckLocks(*old, fence=fence),
                CheckLocks(*other, exact=exact),
                ListLocks(self.caller, own=fence % 2 == 0),
                ListSessions(self.caller, live=True),
                StealLock(*other, exact=exact),
                StealLock(*other, exact=exact, force=True, reason="urgent"),
                StealLock(*other, exact=exact, dead_owner=True),
                PreemptLock(
                    *other, exact=exact, priority=2, grace_ms=chance.choice(GRACES_MS), reason="urgent"
                ),
                UpdateSession(caller=self.caller, phase=str(fence)),
                RenewLocks(self.caller, REPOSITORY, (), 0, chance.choice(plan.ttls_ms)),
            )
        )
        reply = yield from self._ask(wish)
        if isinstance(reply, LockReply):
            fences = [(lock.resource, lock.fence) for lock in reply.locks]
            self.memory.held = [*self.memory.held[-9:], *fences]

    def _mail(self) -> Routine:
        chance = self.world.chance
        match chance.choice(("send", "send", "broadcast", "receive", "receive", "drain", "peek")):
            case "send":
                yield from self._send(to=chance.choice(self.world.sessions))
            case "broadcast":
                yield from self._send(live_only=chance.random() < 0.5)
            case "receive":
                yield from self._receive()
            case "drain":
                yield from self._ask(ReceiveMessages(self.caller, drain=True))
            case "peek":
                yield Ask(PeekMessages(self.caller))

    def _receive(self) -> Routine:
        """Be offered what waits; acknowledge it or not, perhaps twice, perhaps after it was offered again."""
        chance = self.world.chance
        reply = yield from self._ask(ReceiveMessages(self.caller))
        if isinstance(reply, CoordError) or not reply.messages:
            return
        ids = tuple(message.id for message in reply.messages)
        for _ in range(chance.choice((0, 1, 1, 2))):
            yield Rest(chance.choice((0, 5_000, 100_000)))
            yield from self._ask(AckMessages(self.caller, ids))

    def _send(self, **how: Any) -> Routine:
        chance = self.world.chance
        ttl = chance.choice((0, 0, 5_000, 60_000))
        kind, subject = chance.choice(KINDS), self.world.draw_id()
        yield from self._ask(SendMessage(caller=self.caller, kind=kind, subject=subject, ttl_ms=ttl, **how))

    def _beat(self) -> Routine:
        for _ in range(self.world.chance.randint(1, 4)):
            yield from self._ask(Heartbeat(self.caller))
            yield Rest(self.world.chance.choice((100, 5_000, 30_000)))

    def _clear(self) -> Routine:
        """Go on as another session in the same process, which takes over what this one has."""
        old, new = self.session, self.world.new_name()
        self.memory.session = new
        yield from self._ask(self._register(replaces=old))

    def _part(self) -> Routine:
        """Give everything back and read what is left."""
        yield from self._ask(ReleaseLocks(self.caller, REPOSITORY, ()))
        yield from self._ask(ReceiveMessages(self.caller, drain=True))
        if self.world.chance.random() < 0.5:
            yield from self._ask(Deregister(self.caller))

    # Commands.

    def _ask(self, command: Command) -> Routine:
        """Ask; one that was declared dead mostly registers again, and has nothing any more."""
        reply = yield from super()._ask(command)
        if isinstance(reply, Dead) and self.world.chance.random() < 0.7:
            yield Ask(self._register())
        return reply

    def _register(self, replaces: str = "") -> Register:
        return Register(caller=self.caller, task=self.world.draw_id(), replaces=replaces)

    def _renew(self, lock: LockInfo) -> Routine:
        command = RenewLocks(self.caller, REPOSITORY, (lock.resource,), lock.fence)
        return (yield from self._ask(command))

    def _check(self, lock: LockInfo) -> Routine:
        return (yield Ask(CheckLocks(self.caller, REPOSITORY, (lock.resource,), fence=lock.fence)))

    def _release(self, resource: str, fence: int) -> Routine:
        return (yield from self._ask(ReleaseLocks(self.caller, REPOSITORY, (resource,), fence)))
