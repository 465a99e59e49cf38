"""What the obvious lock manager answers to each command.

An answer is a dict. Where more than one answer is right, it holds the set of all right ones: `holders` (those
that stay longest in the way) and `cycles`.
"""

from collections.abc import Callable
from typing import Any

from coord.core.commands import Command
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.locks.commands import (
    AcquireLocks,
    CheckLocks,
    ConfirmWait,
    PreemptLock,
    ReleaseLocks,
    RenewLocks,
    ResourceCommand,
    StealLock,
    WithdrawWait,
)
from coord.core.sessions.commands import Heartbeat
from coord.core.sweep import Sweep
from tests.support.models.naive_locks import PROFILES, Books, Lock, LockRequest, Refusal, Thing, meet

__all__ = ["NaiveLocks", "Refusal"]

Answer = dict[str, Any]


def shown(holds: list[Lock]) -> set[tuple[object, ...]]:
    return {(h.resource, h.owner, h.mode, h.expires, h.provisional, h.preempted_by, h.exact) for h in holds}


def named(command: ResourceCommand) -> Thing:
    (resource,) = command.resources
    return resource, resource in command.exact


class NaiveLocks(Books):
    """The obvious lock manager."""

    def answer(self, command: Command, found: list[dict[str, Any]]) -> Answer:
        """Carry a command out; `found` are the deadlocks that the real one found on the way."""
        if isinstance(command, AcquireLocks):
            return self.acquire(command, found)
        if isinstance(command, ConfirmWait):
            return self.confirm(command, found)
        rules: dict[type[Command], Callable[[Any], Answer]] = {
            WithdrawWait: self.withdraw,
            ReleaseLocks: self.release,
            RenewLocks: self.renew,
            CheckLocks: self.check,
            StealLock: self.steal,
            PreemptLock: self.preempt,
            Deregister: self.deregister,
            Register: self.register,
            Heartbeat: self.beat,
            Sweep: self.pass_deadlines,
        }
        return rules[type(command)](command)

    def beat(self, command: Heartbeat) -> Answer:
        self.ensure_session(command.caller)
        return {}

    def pass_deadlines(self, _: Sweep) -> Answer:
        self.sweep()
        return {}

    # Asking.

    def acquire(self, command: AcquireLocks, found: list[dict[str, Any]]) -> Answer:
        session = self.ensure_session(command.caller)
        request = LockRequest(
            session,
            tuple(dict.fromkeys(command.resources)),
            command.mode,
            command.profile,
            command.ttl_ms,
            command.priority,
            command.preemptible,
            self.now,
            self.now,
            self.now + command.wait_ms,
            denied=not command.wait_ms,
            exact=tuple(sorted(command.exact)),
        )
        if command.wait_ms:
            request.key = f"wait/{request.rank:015d}/{command.wait_id}"
        return self.attempt(request, found)

    def attempt(self, request: LockRequest, found: list[dict[str, Any]]) -> Answer:
        self.expire_blockers(request)
        ahead = self.ahead_of_bid(request) if request.denied else self.ahead_of(request)
        owned = [(self.own(request.session, name), exact) for name, exact in request.things()]
        if all(hold and not hold.ended(self.now) and not (hold.exact and not exact) for hold, exact in owned):
            ahead = []
        in_way = self.blockers(request)
        if not in_way and not ahead:
            return self.granted(request)
        if request.denied:
            return self.refuse(request, in_way, len(ahead) + 1, found)
        self.requests.append(request)
        self.break_deadlocks(request, found)
        return self.state(request, found)

    def expire_blockers(self, request: LockRequest) -> None:
        for thing, mode in self.wanted(request):
            for hold in list(self.holds):
                if hold not in self.holds or not meet(hold.thing, thing):
                    continue
                if hold.ended(self.now):
                    self.end(hold, hold.ended(self.now))
                elif hold.owner != request.session and not mode == hold.mode == "read":
                    self.end_if_owner_gone(hold)
        for other in self.line():
            if request.conflicts_with(other) and not self.alive(other):
                self.drop(other)
        self.serve()

    def granted(self, request: LockRequest) -> Answer:
        asked = set(request.resources)
        self.requests = [
            other
            for other in self.requests
            if not (other.denied and other.session == request.session and asked.issuperset(other.resources))
        ]
        return {"outcome": "granted", "locks": shown(self.grant(request))}

    def refuse(
        self, request: LockRequest, in_way: list[Lock], place: int, found: list[dict[str, Any]]
    ) -> Answer:
        what = (request.session, set(request.resources))
        bids = [other for other in self.requests if other.denied]
        before = next((denied for denied in bids if (denied.session, set(denied.resources)) == what), None)
        denied = request
        if before is not None:
            request.since = before.since
        same = before is not None and (before.mode, before.exact) == (request.mode, request.exact)
        if before is not None and same and self.now - before.renewed < 5_000:
            denied = before
        else:
            self.requests = [other for other in self.requests if other is not before] + [denied]
        self.break_deadlocks(denied, found)
        if denied.cycles:  # perhaps one was broken in favour of this request
            in_way = self.blockers(request)
            if not in_way and not self.ahead_of_bid(request):
                return self.granted(request)
        holders = self.longest(in_way)
        return {"outcome": "held", "holders": holders, "place": place, "cycles": set(denied.cycles)}

    def ahead_of_bid(self, request: LockRequest) -> list[LockRequest]:
        return [
            other for other in self.line() if other.rank <= request.rank and request.conflicts_with(other)
        ]

    def longest(self, in_way: list[Lock]) -> set[tuple[object, ...]]:
        last = max((hold.expires for hold in in_way), default=0)
        return shown([hold for hold in in_way if hold.expires == last])

    def state(self, request: LockRequest, found: list[dict[str, Any]]) -> Answer:
        if request not in self.requests:
            return {"outcome": "withdrawn"}
        if request.state == "refused":
            self.requests.remove(request)
            return {"outcome": "deadlock", "cycles": set(request.cycles)}
        if request.state == "granted":
            return self.take_over(request, found)
        place = len(self.ahead_of(request)) + 1
        return {"outcome": "waiting", "holders": self.longest(self.blockers(request)), "place": place}

    def take_over(self, request: LockRequest, found: list[dict[str, Any]]) -> Answer:
        self.requests.remove(request)
        holds = [self.own(request.session, resource) for resource in request.resources]
        standing = [hold for hold in holds if hold is not None and not hold.ended(self.now)]
        if len(standing) < len(holds) and self.now >= request.until:
            return {"outcome": "withdrawn"}
        if len(standing) < len(holds):
            request.state, request.renewed = "waiting", self.now
            return self.attempt(request, found)
        for hold in standing:
            hold.provisional, hold.expires = False, self.now + hold.ttl
            hold.look = hold.due()
        return {"outcome": "granted", "locks": shown(standing)}

    def find_request(self, session: str, key: str) -> LockRequest | None:
        mine = [request for request in self.requests if request.session == session and request.key == key]
        return mine[0] if mine else None

    def confirm(self, command: ConfirmWait, found: list[dict[str, Any]]) -> Answer:
        request = self.find_request(self.ensure_session(command.caller), command.wait_key)
        if request is None:
            return {"outcome": "withdrawn"}
        if request.state == "waiting":
            if self.now - request.renewed >= 4_000:
                request.renewed = self.now
            self.expire_blockers(request)
            if self.above(request.session):  # its lead may have got what others wait for
                self.break_deadlocks(request, found)
        return self.state(request, found)

    def withdraw(self, command: WithdrawWait) -> Answer:
        request = self.find_request(command.caller.session, command.wait_key)
        if request is None:
            return {"reply": False}
        self.drop(request)
        for resource in request.resources if request.state == "granted" else ():
            hold = self.own(request.session, resource)
            if hold is not None and hold.provisional:
                self.end(hold, "lapsed")
        self.serve()
        return {"reply": True}

    # Holding.

    def mine(self, command: ReleaseLocks | RenewLocks, session: str) -> list[Lock]:
        if not command.resources:
            return [hold for hold in self.holds if hold.owner == session and not hold.ended(self.now)]
        (resource,) = command.resources
        hold = self.own(session, resource)
        if hold is None:
            others = any(o.resource == resource and not o.ended(self.now) for o in self.holds)
            raise Refusal("not_owner" if others else "not_found")
        if (command.fence and command.fence != hold.fence) or hold.ended(self.now):
            raise Refusal("lost")
        return [hold]

    def release(self, command: ReleaseLocks) -> Answer:
        holds = self.mine(command, self.ensure_session(command.caller))
        released = {hold.resource for hold in holds}
        for hold in holds:
            self.end(hold, "released")
        self.serve()
        return {"released": released}

    def renew(self, command: RenewLocks) -> Answer:
        holds = self.mine(command, self.ensure_session(command.caller))
        if any(hold.preempted_by for hold in holds):
            raise Refusal("lost")
        for hold in holds:
            hold.ttl = command.ttl_ms or hold.ttl
            hold.expires = self.now + hold.ttl
            hold.look = hold.due()
        return {"locks": shown(holds)}

    def check(self, command: CheckLocks) -> Answer:
        session, (resource,) = command.caller.session, command.resources
        mode = command.mode or PROFILES[resource.partition(":")[0]][2]
        own = self.own(session, resource)
        thing = own.thing if own is not None and command.fence else named(command)
        holders = [hold for hold in self.in_way(session, thing, mode) if not self.death(hold)]
        proven = own is not None and own.fence == command.fence and not own.ended(self.now)
        return {"free": not holders and (not command.fence or proven), "shown": shown(holders)}

    # Taking.

    def steal(self, command: StealLock) -> Answer:
        thief, once = self.ensure_session(command.caller), (self.now, self.now, self.now)
        request = LockRequest(thief, command.resources, "", "", command.ttl_ms, 0, False, *once, denied=False)
        request.exact = command.exact
        in_way = self.blockers(request)
        if not in_way:
            raise Refusal("not_found")
        if not all(self.may_steal(hold, command) for hold in in_way):
            raise Refusal("not_stealable")
        for hold in in_way:
            self.end(hold, "stolen")
            if command.dead_owner:
                self.declare_dead(hold.owner)
        answer = {"outcome": "granted", "locks": shown(self.grant(request))}
        self.serve()
        return answer

    def may_steal(self, hold: Lock, command: StealLock) -> bool:
        life = self.life(hold.owner)
        if command.force:
            return True
        if command.dead_owner:
            return life in {"gone", "dead"}
        stale = life in {"gone", "dead"} or self.now - self.seats[hold.owner].beat >= 300_000
        return stale and self.now >= hold.expires and self.now >= hold.acquired + 600_000

    def preempt(self, command: PreemptLock) -> Answer:
        session, (resource,) = self.ensure_session(command.caller), command.resources
        in_way = self.in_way(session, named(command), PROFILES[resource.partition(":")[0]][2])
        if not in_way:
            raise Refusal("not_found")
        if any(hold.priority >= command.priority for hold in in_way):
            raise Refusal("refused")
        asked = [hold for hold in in_way if not hold.preempted_by]
        for hold in asked:
            hold.preempted_by, hold.preempt_at = session, self.now + command.grace_ms
            hold.look = hold.due()
        return {"asked": {hold.owner for hold in asked}, "until": max(hold.preempt_at for hold in in_way)}

    # Sessions.

    def deregister(self, command: Deregister) -> Answer:
        session = command.caller.session
        if self.life(session) == "gone":
            raise Refusal("not_found")
        holds = [hold for hold in self.holds if hold.owner == session]
        self.end_session(session, "left")
        for hold in holds:
            self.end(hold, "session_ended")
        self.terminate_children(session)
        self.serve()
        return {"released": {hold.resource for hold in holds}}

    def register(self, command: Register) -> Answer:
        caller = command.caller
        seat = self.seats.get(caller.session)
        if seat is not None and seat.doomed:
            self.terminate(caller.session)
        self.seats.pop(caller.session, None)
        if seat is not None and seat.state == "dead":
            for hold in [hold for hold in self.holds if hold.owner == caller.session]:
                self.end(hold, "owner_dead")
        self.ensure_session(caller)
        if seat is not None:
            self.seats[caller.session].children = seat.children
        self.serve()
        return {"new": seat is None or seat.state != "here"}
