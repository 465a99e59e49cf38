"""What the simulation found, one scene each: the same without chance."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from coord.core.errors import Unavailable
from coord.core.limits import SetLimits
from coord.core.tasks.commands import ClaimTask, GetSessionClaims, ListExpiredClaims, ReleaseClaim, ResetTask
from coord.core.tasks.types import ClaimReason, ReleaseOutcome
from coord.engine.engine import Engine
from coord.stores.contract import Head, Loaded
from coord.stores.database import Database
from coord.stores.memory import MemoryDatabase

NOW = 1_700_000_000_000


class InterruptedStore:
    """One process's view of a store; something can be made to happen just before a later call of it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.clock = NOW
        self.seen = Head(0, 0)
        self.plans: list[tuple[str, int, Callable[[], object]]] = []

    def before(self, call: str, nth: int, happens: Callable[[], object]) -> None:
        """Let something happen just before the nth next call of this kind."""
        self.plans.append((call, nth, happens))

    def load(self, keys: Iterable[str], *more: Any, **how: Any) -> Loaded:
        return self._meet("load", lambda: self._inner.load(keys, *more, **how))

    def _meet(self, call: str, then: Callable[[], Any]) -> Any:
        waiting, self.plans = self.plans, []
        for kind, nth, happens in waiting:
            if kind != call:
                self.plans.append((kind, nth, happens))
            elif nth > 1:
                self.plans.append((kind, nth - 1, happens))
            else:
                happens()
        result = then()
        self.seen = self._inner.seen
        return result

    def commit(self, commit: Any) -> int:
        return self._meet("commit", lambda: self._inner.commit(commit))

    def now(self) -> int:
        return self.clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class InterruptedDatabase(Database[InterruptedStore]):
    """The database of one process over a store that others use too."""

    def __init__(self, memory: MemoryDatabase) -> None:
        super().__init__("memory:", "shared")
        self._memory = memory

    def _open_log(self, tenant: str) -> InterruptedStore:
        return InterruptedStore(self._memory.log(tenant))


class Pair:
    """Two processes on one store; the first can be interrupted by the second."""

    def __init__(self, tenant: str) -> None:
        memory = MemoryDatabase("memory:", "shared")
        self.tenant = tenant
        databases = [InterruptedDatabase(memory), InterruptedDatabase(memory)]
        self.store, self.other_store = (database.log(tenant) for database in databases)
        self.one, self.other = (Engine(database, tenant) for database in databases)

    def names(self, task: str) -> tuple[str, str, str]:
        return self.tenant, "shop", task

    def claim(self, engine: Engine, task: str, session: str, lease_ms: int = 60_000) -> int:
        reply = engine.call(ClaimTask(*self.names(task), "agent", session, lease_ms))
        return int(reply.claim.generation)

    def release(self, engine: Engine, task: str, session: str, generation: int) -> ReleaseOutcome:
        reply = engine.call(ReleaseClaim(*self.names(task), session, generation))
        reason: ReleaseOutcome = reply.reason
        return reason

    def pass_time(self, ms: int) -> None:
        self.store.clock += ms
        self.other_store.clock += ms

    def events(self) -> list[str]:
        return [json.loads(event)["event"] for entry in self.store.tail(0, 1000) for event in entry.events]


def test_a_lease_that_ran_out_is_written_down_by_the_next_command() -> None:
    """Each command sweeps: the sweep was dropped as late before it was ever decided."""
    pair = Pair("local")
    pair.claim(pair.one, "first", "alice")
    pair.pass_time(60_000)
    pair.claim(pair.one, "second", "bob")
    assert pair.events() == ["task.claimed", "task.expired", "task.claimed"]


def test_a_command_that_failed_on_reads_of_two_moments_is_decided_again() -> None:
    """CLM-60: counts that were read after the claim had ended made a command fail as a defect of coord."""
    pair = Pair("acme")
    generation = pair.claim(pair.one, "first", "alice")
    pair.store.before("load", 2, lambda: pair.release(pair.other, "first", "alice", generation))
    reply = pair.one.call(ResetTask(*pair.names("first")))
    assert (reply.success, reply.generation) == (True, generation)
    assert not pair.store.plans, "nothing came between two reads"
    assert pair.events() == ["task.claimed", "task.released", "task.reset"]


def test_a_claim_that_ends_while_a_session_is_looked_at_is_not_listed() -> None:
    """CLM-56: released between the scan of the index and the read of the task, it was listed as active."""
    pair = Pair("local")
    generation = pair.claim(pair.one, "first", "alice")
    pair.store.before("load", 2, lambda: pair.release(pair.other, "first", "alice", generation))
    assert pair.one.call(GetSessionClaims("local", "alice")) == []
    assert not pair.store.plans, "nothing came between two reads"


def test_a_session_that_changes_tasks_never_seems_to_hold_none() -> None:
    """CLM-56: it takes the second task before it gives the first away, so it always holds one."""
    pair = Pair("local")
    generation = pair.claim(pair.one, "first", "alice")

    def change() -> None:
        pair.claim(pair.other, "second", "alice")
        pair.release(pair.other, "first", "alice", generation)

    pair.store.before("load", 2, change)
    held = pair.one.call(GetSessionClaims("local", "alice"))
    assert [claim.task_id for claim in held] == ["second"]
    assert not pair.store.plans, "nothing came between two reads"


def test_an_expired_claim_that_is_swept_while_it_is_looked_for_is_told() -> None:
    """`list_expired_claims` does not depend on sweeping: not even on a sweep in the middle of it."""
    pair = Pair("local")
    pair.claim(pair.one, "first", "alice")
    pair.pass_time(60_000)
    pair.store.before("load", 2, lambda: pair.claim(pair.other, "second", "bob"))
    expired = pair.one.call(ListExpiredClaims("local"))
    assert [claim.task_id for claim in expired] == ["first"]
    assert not pair.store.plans, "nothing came between two reads"


def test_who_was_refused_for_the_clock_goes_on_when_somebody_accepts_it() -> None:
    """A process that only writes looked at its own old head for ever."""
    pair = Pair("local")
    pair.store.clock = NOW + 600_000
    pair.claim(pair.one, "first", "alice")
    pair.store.clock = NOW
    pair.other_store.load(["anything"])
    with pytest.raises(Unavailable, match="ahead of the clock"):
        pair.claim(pair.other, "second", "bob")
    pair.one.accept_clock()
    assert pair.claim(pair.other, "second", "bob") == 1


def test_a_scan_that_showed_what_was_dropped_is_made_again() -> None:
    """A claim granted in the draft hid an expired one from the list; decided again, it was denied."""
    pair = Pair("acme")
    pair.one.call(SetLimits(limits={"max_concurrent_claims": 1}))
    pair.claim(pair.one, "first", "alice")
    pair.pass_time(60_000)
    pair.release(pair.one, "second", "bob", pair.claim(pair.one, "second", "bob"))
    pair.store.before("commit", 1, lambda: pair.claim(pair.other, "third", "carol"))
    claim = ClaimTask(*pair.names("first"), "agent", "bob", 60_000)
    denied, expired = pair.one.call_many([claim, ListExpiredClaims("acme")])
    assert denied.reason is ClaimReason.DENIED_LIMIT_CONCURRENT_CLAIMS
    assert [each.task_id for each in expired] == ["first"]
