"""The real locks and the naive ones side by side: what happens to one happens to both; all is compared."""

import copy
import pickle
from collections import Counter
from itertools import combinations
from typing import Any

import msgspec

from coord.core import keys
from coord.core.commands import Command
from coord.core.identity import Caller, Evidence, Process, ProcessState
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.locks.commands import (
    AcquireLocks,
    CheckLocks,
    ConfirmWait,
    PreemptLock,
    ReleaseLocks,
    RenewLocks,
    StealLock,
    WithdrawWait,
)
from coord.core.locks.resources import parse_resource
from coord.core.locks.schema import EndedLock, Guard, Lock, LockRef, LockRequest, SessionWaits, WaitState
from coord.core.records import Stored, decode
from coord.core.sweep import Sweep
from coord.core.transaction import Written
from coord.engine.batch import Batch
from coord.engine.engine import Engine
from coord.engine.pending import PendingCommand
from coord.stores.open import open_store
from tests.support.models.naive_lock_commands import NaiveLocks, Refusal
from tests.support.models.naive_locks import Link, files, meet
from tests.support.models.naive_locks import Lock as NaiveHold

START_MS = 1_700_000_000_000
REPOSITORY = "r"
PARENTS = {"kid": "ann", "sib": "ann"}
SESSIONS = ("ann", "bob", "cid", "kid", "sib")
"""Cid never says which process it lives in; kid and sib are sub-agents of ann."""
RESOURCES = ("file:x", "file:d", "file:d/y", "file:d/*", "file:*/z", "name:n")
PATHS = tuple(resource for resource in RESOURCES if resource.startswith("file:") and "*" not in resource)
"""Those that may be single files."""
KINDS: dict[str, type[Stored]] = {
    "lock": Lock,
    "held": LockRef,
    "guard": Guard,
    "wait": LockRequest,
    "denied": LockRequest,
    "waits": SessionWaits,
    "ended": EndedLock,
}


class WatchedEngine(Engine):
    """An engine that remembers in which order commands took effect, and what each told.

    Its sweeps pass all that is due, so that the model knows what they did.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.carried_out: list[tuple[PendingCommand, list[dict[str, Any]], dict[str, tuple[str, ...]]]] = []

    def _with_sweep(self, jobs: list[PendingCommand], now: int) -> list[PendingCommand]:
        found = super()._with_sweep(jobs, now)
        if isinstance(found[0].command, Sweep):
            found[0].command = Sweep(self.tenant, 100_000)
        return found

    def _commit(self, batch: Batch, now: int) -> None:
        completed = [
            (job, [msgspec.json.decode(event) for event in tx.events], refusals(tx.writes))
            for job, tx in batch.completed
        ]
        super()._commit(batch, now)
        self.carried_out += completed


def shown(locks: list[Any]) -> set[tuple[object, ...]]:
    return {
        (k.resource, k.owner, k.mode, k.expires_ms, k.provisional, k.preempted_by, k.exact) for k in locks
    }


def refusals(writes: dict[str, Written]) -> dict[str, tuple[str, ...]]:
    """The waits that a command refused, each with its cycle; one that is deleted may have had any."""
    found: dict[str, tuple[str, ...]] = {}
    for key, item in writes.items():
        if item.value is None:
            found[key] = ()
        elif isinstance(item.value, LockRequest) and item.value.state is WaitState.REFUSED:
            found[key] = item.value.cycle
    return found


def deadlocks(events: list[dict[str, Any]], refused: dict[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """The deadlocks that a command met.

    Each with what its victim lost, what it was asked for and by whom, and the waits that the command refused.
    """
    found: list[dict[str, Any]] = []
    asked: set[tuple[str, str]] = set()
    for event in events:
        if event["event"] == "lock.preemption_asked":
            asked.add((event["resource"], event["by"]))
        elif event["event"] == "lock.deadlock":
            found.append({**event, "lost": set(), "asked": asked, "refused": refused})
            asked = set()
        elif event["event"] == "lock.released" and event["end_reason"] == "deadlock":
            found[-1]["lost"].add(event["resource"])
    return found


def alike(ended: list[tuple[str, str, str, int]], expected: list[tuple[str, str, str, int]]) -> bool:
    """Whether the same holds ended in the same way.

    One that ends for two reasons at once may name either: it stood under a lock that ended, or was stolen
    from an owner whose death ends it anyway.
    """
    either = [{"stolen", "owner_dead"}]
    return len(ended) == len(expected) and all(
        one[:2] == other[:2]
        and (one[2:] == other[2:] or "parent_ended" in {one[2], other[2]} or {one[2], other[2]} in either)
        for one, other in zip(ended, expected, strict=True)
    )


class LockComparison:
    """Five sessions and six resources, on the memory store and in the model."""

    def __init__(self) -> None:
        self.now = START_MS
        self.naive = NaiveLocks(self.now)
        self.database = open_store("memory:")
        self.store = self.database.log("local")
        self.engine = WatchedEngine(self.database, "local", clock=lambda: self.now, probe=self.probe)
        self.pids = {name: number for number, name in enumerate(SESSIONS, 100) if name != "cid"}
        self.granted: list[NaiveHold] = []
        self.waits = 0
        self.about_to_wait: list[tuple[str, tuple[str, ...]]] = []
        self.ended = 0
        self.met: Counter[str] = Counter()

    def close(self) -> None:
        self.engine.close()
        self.database.close()

    def probe(self, process: Process) -> Evidence:
        dead = process.pid in self.naive.dead_pids
        return Evidence(ProcessState.DEAD if dead else ProcessState.ALIVE, f"pid {process.pid}")

    # What can happen.

    def caller(self, session: str) -> Caller:
        """A dead process asks nothing any more: whoever comes in its name is a new one."""
        pid = self.pids.get(session, 0)
        if pid in self.naive.dead_pids:
            pid = self.pids[session] = pid + 10
        return Caller(session, parent=PARENTS.get(session, ""), process=Process(pid, 1) if pid else None)

    def kill(self, session: str) -> None:
        if session in self.pids:
            self.naive.dead_pids.add(self.pids[session])

    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.naive.now = self.now

    def a_deadline_comes(self) -> None:
        """Go to where something ends next; at least as far as the engine looks for it again."""
        deadlines = [hold.due() for hold in self.naive.holds] + [r.due() for r in self.naive.requests]
        coming = [at for at in deadlines if self.now < at < self.now + 1_000_000]
        self.time_passes(max(250, min(coming, default=self.now) - self.now))

    def may_wait(self, session: str, resources: tuple[str, ...]) -> bool:
        """Whether this meets no other wait of the session: which one is served first would not be settled."""
        waits = [(r.session, r.resources) for r in self.naive.line()] + self.about_to_wait
        free = not any(
            name == session and any(files(one) & files(other) for one in theirs for other in resources)
            for name, theirs in waits
        )
        if free:
            self.about_to_wait.append((session, resources))
        return free

    def wait_id(self, drawn: int) -> str:
        """An id that no other request has; those of one moment stand in the order that was drawn."""
        self.waits += 1
        return f"{drawn:02d}-{self.waits}"

    def run(self, *asked: Command) -> None:
        """Carry commands out in one go, then in the model in the order in which they took effect."""
        self.about_to_wait.clear()
        self.engine.carried_out.clear()
        jobs = self.engine._call_all(list(asked), 60.0, "")
        done = {id(job) for job, _, _ in self.engine.carried_out}
        failed = [(job.command, job.error) for job in jobs if id(job) not in done]
        assert not failed, f"a batch failed: {failed}"
        for job, events, refused in self.engine.carried_out:
            self._compare(job, events, refused)
        self._fill_in_fences()
        self.check()

    # Comparing.

    def _compare(
        self, job: PendingCommand, events: list[dict[str, Any]], refused: dict[str, tuple[str, ...]]
    ) -> None:
        trial: NaiveLocks = pickle.loads(pickle.dumps(self.naive))  # a copy, many times as quick as deepcopy
        trial.dead_pids = self.naive.dead_pids
        found = deadlocks(events, refused)
        self.met.update("resolved" if event["resolved"] else "told" for event in found)
        refusal, expected = "", {}
        try:
            expected = trial.answer(job.command, found)
        except Refusal as expected_refusal:
            refusal = str(expected_refusal)
        code = job.error.code if job.error else ""
        assert code == refusal, f"{job.command}: {refusal or expected} expected, got {job.error or job.reply}"
        if refusal:
            self.met[refusal] += 1
            return
        assert not found, f"{job.command}: these were no deadlocks: {found}"
        self._agree(job, expected)
        ended = [
            (event["resource"], event["session"], event["end_reason"], event["until_ms"])
            for event in events
            if event["event"] == "lock.released"
        ]
        assert alike(sorted(ended), sorted(trial.ended)), f"{job.command}: {ended} ended, not {trial.ended}"
        self.met.update(end_reason for _, _, end_reason, _ in trial.ended)
        self.met["widened"] += isinstance(job.command, AcquireLocks) and "released" in str(trial.ended)
        self.ended += len(trial.ended)
        trial.ended.clear()
        self.naive = trial

    def _agree(self, job: PendingCommand, expected: dict[str, Any]) -> None:
        reply = job.reply
        got: dict[str, Any] = {}
        match job.command:
            case AcquireLocks() | ConfirmWait() | StealLock():
                got = self._outcome(reply, expected)
                self.met[reply.outcome.value] += 1
            case WithdrawWait():
                got = {"reply": reply}
            case ReleaseLocks() | Deregister():
                got = {"released": set(reply.released)}
            case RenewLocks():
                got = {"locks": shown(reply.locks)}
            case CheckLocks():
                got = {"free": reply.free, "shown": shown(reply.holders)}
            case PreemptLock():
                got = {"asked": set(reply.asked), "until": reply.until_ms}
            case Register():
                got = {"new": reply.new}
        assert got == expected, f"{job.command}: {got}, but {expected} was expected"

    def _outcome(self, reply: Any, expected: dict[str, Any]) -> dict[str, Any]:
        """Return the reply as the model gives it; one of several right answers stands for all."""
        got = {"outcome": reply.outcome.value}
        if reply.ok:
            return got | {"locks": shown(reply.locks)}
        if "holders" in expected:
            holder = shown([reply.holder] if reply.holder else [])
            fits = holder <= expected["holders"] and bool(holder) == bool(expected["holders"])
            got |= {"holders": expected["holders"] if fits else holder, "place": reply.position}
        if "cycles" in expected:
            cycle = {tuple(reply.cycle)} if reply.cycle else set()
            fits = cycle <= expected["cycles"] and bool(cycle) == bool(expected["cycles"])
            got |= {"cycles": expected["cycles"] if fits else cycle}
        return got

    # What must always be true of the records.

    def records(self, kind: str) -> dict[str, Any]:
        found = self.store.scan(f"{kind}/", by="key", limit=100_000)
        return {r.key: decode(r.value or b"", KINDS[kind], r.key) for r in found}

    def _fill_in_fences(self) -> None:
        """Compare what is held with the model; the fence of a new grant is above all that it meets."""
        real = {}
        for key, hold in self.records("lock").items():
            fence = hold.fence or self.store.load([key])[key].version
            real[hold.resource, hold.owner] = (hold, fence)
        held = {(hold.resource, hold.owner) for hold in self.naive.holds}
        assert real.keys() == held, f"{set(real)} stand, not {held}"
        new = []
        for naive in self.naive.holds:
            hold, fence = real[naive.resource, naive.owner]
            assert (hold.mode, hold.exact, hold.expires_ms, hold.provisional, hold.under) == (
                naive.mode,
                naive.exact,
                naive.expires,
                naive.provisional,
                naive.under,
            )
            if naive.fence:
                assert fence == naive.fence, f"the fence of {naive} changed"
            else:
                naive.fence = fence
                new.append(naive)
        for naive in sorted(new, key=lambda hold: hold.fence):
            self._check_new_fence(naive)

    def _check_new_fence(self, new: NaiveHold) -> None:
        for earlier in self.granted:
            if (
                meet(earlier.thing, new.thing)
                and earlier.owner != new.owner
                and not earlier.mode == new.mode == "read"
            ):
                above, below = self.naive.above(new.owner), self.naive.above(earlier.owner)
                family = earlier.owner in above or new.owner in below  # one commit may serve both
                assert new.fence > earlier.fence - family, f"{new} came after {earlier}"
        self.granted.append(copy.copy(new))

    def check(self) -> None:
        self._check_exclusion()
        self._check_line()
        self._check_index()
        self._check_grants()

    def _check_exclusion(self) -> None:
        """No two holds that exclude each other stand; none granted under another outlives it."""
        standing = [hold for hold in self.naive.holds if not hold.ended(self.now)]
        for one, other in combinations(standing, 2):
            family = {one.owner, *self.naive.above(one.owner)} & {other.owner, *self.naive.above(other.owner)}
            nested = one.owner in family or other.owner in family
            apart = not meet(one.thing, other.thing)
            assert nested or apart or one.mode == other.mode == "read", f"{one} and {other}"
        for hold in self.naive.holds:
            lent = [h for h in self.naive.holds if h.owner == hold.under]
            assert not hold.under or any(meet(h.thing, hold.thing) for h in lent)

    def _check_line(self) -> None:
        """Whoever waits is really in somebody's way, and no circle of waits is left."""
        line = self.naive.line()
        for request in line:
            held_up = self.naive.ahead_of(request) or self.naive.blockers(request)
            assert held_up or not self.naive.alive(request) or self._unswept(), f"{request} could be granted"
            for circle in self.naive.circles(request):
                allowed = any(link.request.denied or self._does_more(link) for link in circle)
                assert allowed, f"they wait for each other: {circle}"

    def _does_more(self, link: Link) -> bool:
        """Whether the session is not blocked by this wait: it asked for more, or got more, meanwhile.

        What its lead got is seen when it confirms its wait.
        """
        request = link.request
        waits = [r for r in self.naive.line() if r.session == request.session]
        since = {link.session: request.renewed, request.session: request.since}
        return len(waits) > 1 or any(
            h.acquired >= since.get(h.owner, h.acquired + 1) for h in self.naive.holds
        )

    def _unswept(self) -> bool:
        """Whether time has ended something that no commit has written down yet."""
        return any(hold.ended(self.now) for hold in self.naive.holds) or any(
            not self.naive.alive(request) for request in self.naive.line()
        )

    def _check_index(self) -> None:
        holds, index = self.records("lock"), self.records("held")
        assert sorted(index) == sorted(keys.session_lock(hold.owner, key) for key, hold in holds.items())
        waiting = {key: r for key, r in self.records("wait").items() if r.state is WaitState.WAITING}
        counts: Counter[str] = Counter()
        for request in waiting.values():
            counts.update({parse_resource(text, request.repository)[0].guard for text in request.resources})
        assert {key: g.waiters for key, g in self.records("guard").items() if g.waiters} == dict(counts)
        listed = [(key.partition("/")[2], w.keys) for key, w in self.records("waits").items()]
        everything = waiting | self.records("denied")
        assert sorted(everything) == sorted(key for _, found in listed for key in found)
        assert all(everything[key].session == session for session, found in listed for key in found)
        for session, waits in ((key.partition("/")[2], w) for key, w in self.records("waits").items()):
            below = {r.session for r in everything.values() if session in self.naive.above(r.session)}
            assert set(waits.below) == below, f"{session} lists {waits.below}, not {below}"
        assert sorted(waiting) == [request.key for request in self.naive.line()]

    def _check_grants(self) -> None:
        """Every hold that ended is on record."""
        assert len(self.records("ended")) == self.ended
