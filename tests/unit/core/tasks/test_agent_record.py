"""Agents that get nothing for a while, and how they did: through the engine, with a clock in hand."""

from typing import Any

import pytest

from coord.core import keys
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.plans.commands import AddTasks, ClaimNext, NewTask
from coord.core.routing.commands import EnableAgent, GetAgents
from coord.core.sessions.commands import UpdateSession
from coord.core.tasks.agent_record import (
    FAILURES_TO_BLOCK,
    FORGIVE_MS,
    KEPT_MS,
    TRACK_RECORD_TASKS_MAX,
    TYPES_MAX,
)
from coord.core.tasks.commands import ReleaseClaim, SubmitResult
from coord.core.tasks.schema import AgentRecord, AgentTrackRecords, TrackRecord
from coord.core.tasks.types import ReleaseReason
from tests.support.rule_harness import T0, RuleHarness

ANN, BOB = Caller("ann-1", agent="ann"), Caller("bob-1", agent="bob")
LEASE_MS = 60_000


class Shop(RuleHarness):
    """A harness with tasks that were added."""

    def __init__(self, *names: str, **fields: Any) -> None:
        super().__init__()
        self.run(AddTasks("p", tuple(NewTask(task_id=name, **fields) for name in names)))

    def next(self, caller: Caller = ANN, now: int = T0, **choice: Any) -> Any:
        command = ClaimNext(caller=caller, tenant="local", project="p", lease_ms=LEASE_MS, **choice)
        return self.run(command, now).reply

    def taken(self, caller: Caller = ANN, now: int = T0) -> tuple[str, int]:
        reply = self.next(caller, now)
        assert reply.task is not None, reply.waiting_for
        return reply.task.task_id, reply.task.generation

    def give_back(self, task: str, generation: int, *, now: int = T0, **fields: Any) -> Any:
        command = ReleaseClaim("local", "p", task, "ann-1", generation, **fields)
        return self.run(command, now)

    def fail(self, task: str, generation: int, *, now: int = T0) -> None:
        assert self.give_back(task, generation, now=now, reason=ReleaseReason.ERROR).reply.success

    def do(self, task: str, generation: int, *, now: int = T0, session: str = "ann-1") -> Any:
        outcome = self.run(SubmitResult("local", "p", task, session, generation, b"{}", "wp"), now)
        assert outcome.reply.accepted
        return outcome

    def record(self, agent: str = "ann") -> AgentRecord:
        return self.read(keys.agent("p", agent), AgentRecord)

    def track_record(self, agent: str = "ann") -> dict[str, TrackRecord]:
        return self.read(keys.track_record("p", agent, f"{agent}-1"), AgentTrackRecords).types


def test_a_rate_limit_is_neither_success_nor_failure() -> None:
    """RTE-20: the claim goes back at once, nothing is counted, others take it; then it is back."""
    shop = Shop("t")
    task, generation = shop.taken()
    outcome = shop.give_back(task, generation, limited_ms=30_000, note="429")
    assert outcome.event_tags == ["agent.limited", "task.released"]
    assert outcome.events[0]["until_ms"] == T0 + 30_000
    reply = shop.next(now=T0 + 29_001)
    assert (reply.outcome.value, reply.look_ms) == ("blocked", T0 + 30_000)
    assert reply.waiting_for == ["ann gets nothing: rate limited for 1 s"]
    taken = shop.next(BOB, T0 + 1)
    assert (taken.task.task_id, taken.task.retries, taken.task.generation) == ("t", 0, 2)
    assert shop.keys("record/") == []
    shop.run(ReleaseClaim("local", "p", "t", "bob-1", 2), T0 + 2)
    assert shop.taken(now=T0 + 30_000) == ("t", 3)


def test_a_shorter_limit_does_not_end_a_longer_one() -> None:
    """RTE-20: two limits of one agent: the later end counts, and the record is kept until after it."""
    shop = Shop("t", "u")
    both = [shop.taken(), shop.taken()]
    shop.give_back(*both[0], limited_ms=60_000)
    assert shop.give_back(*both[1], limited_ms=10_000).event_tags == ["task.released"]
    assert shop.record().limited_until_ms == T0 + 60_000
    assert shop.records[keys.agent("p", "ann")].index_key == keys.due(T0 + 60_000 + KEPT_MS)
    shop.sweep(now=T0 + 60_000 + KEPT_MS)
    assert shop.keys("agent/") == []


def test_where_nothing_is_left_nobody_waits_for_a_limit() -> None:
    """RTE-20: an agent that is held back still hears that all is done."""
    shop = Shop("t")
    task, generation = shop.taken()
    shop.give_back(task, generation, limited_ms=60_000)
    shop.do(*shop.taken(BOB), session="bob-1")
    assert shop.next(now=T0 + 1).outcome.value == "done"


def test_failures_in_a_row_pause_an_agent_and_time_forgives() -> None:
    """RTE-20, RTE-22: after three failures it gets nothing for a minute; then one task, and again a pause."""
    shop = Shop(*"abcdef")
    for _ in range(FAILURES_TO_BLOCK):
        shop.fail(*shop.taken())
    reply = shop.next(now=T0 + 1)
    assert (reply.outcome.value, reply.look_ms) == ("blocked", T0 + FORGIVE_MS)
    assert reply.waiting_for == ["ann gets nothing: it failed 3 times in a row"]
    assert shop.next(BOB, T0 + 1).task is not None
    later = T0 + FORGIVE_MS
    shop.fail(*shop.taken(now=later), now=later)
    assert shop.next(now=later + 1).look_ms == later + FORGIVE_MS
    later += 3 * FORGIVE_MS
    assert shop.record().failures == FAILURES_TO_BLOCK
    shop.do(*shop.taken(now=later), now=later)
    assert shop.record().failures == 0, "a success ends the row"


def test_a_lost_lease_counts_as_a_failure_and_a_given_back_task_does_not() -> None:
    """RTE-18, RTE-22: who vanishes with its task failed; who gives it back did not."""
    shop = Shop("t", type="api")
    shop.give_back(*shop.taken())
    assert (shop.keys("agent/"), shop.keys("record/")) == ([], [])
    shop.taken()
    shop.sweep(now=T0 + LEASE_MS)
    assert (shop.record().failures, shop.track_record()) == (1, {"api": TrackRecord(failed=1)})


def test_accepted_results_are_counted_by_type_with_their_pace() -> None:
    """RTE-18: done, time taken and time expected, per type; without an estimate the pace is no news."""
    shop = Shop("a", type="doc", estimate_s=40)
    shop.run(AddTasks("p", (NewTask(task_id="b", type="doc"), NewTask(task_id="c", type="api"))))
    for _ in range(3):
        task, generation = shop.taken()
        outcome = shop.do(task, generation, now=T0 + 30_000)
        assert set(outcome.writes) == {
            f"task/p/{task}",
            f"result/p/{task}/00000001",
            f"by-session/ann-1/p/{task}",
            f"unfinished/p/{task}",
            f"working/p/{task}",
            "record/p/ann/ann-1",
        }, "one record more than without agents"
    assert shop.track_record() == {"doc": TrackRecord(2, 0, 60, 70), "api": TrackRecord(1, 0, 30, 30)}
    assert "agent/p/ann" not in shop.records


def test_a_task_that_was_only_claimed_says_nothing_of_its_agent() -> None:
    """RTE-18: only tasks that were added are counted."""
    harness = RuleHarness()
    harness.claim()
    harness.release(reason=ReleaseReason.ERROR)
    harness.claim()
    harness.submit(generation=2)
    assert (harness.keys("agent/"), harness.keys("record/")) == ([], [])


def test_the_past_fades_and_stays_small() -> None:
    """RTE-18: at fifty tasks of a type all is halved; types beyond the twentieth are counted together."""
    names = [f"t{number:02d}" for number in range(TRACK_RECORD_TASKS_MAX + 1)]
    shop = Shop(*names, type="doc", estimate_s=1)
    for _ in names:
        shop.do(*shop.taken(), now=T0 + 1000)
    assert shop.track_record() == {"doc": TrackRecord(25, 0, 25.5, 25.5)}
    others = [NewTask(task_id=f"u{number}", type=f"kind{number}") for number in range(TYPES_MAX + 5)]
    shop.run(AddTasks("p", tuple(others)))
    for _ in others:
        shop.do(*shop.taken())
    assert (len(shop.track_record()), shop.track_record()[""].done) == (TYPES_MAX + 1, 6)


@pytest.mark.parametrize("status", ["crashed", "error", "stopping"])
def test_an_agent_that_says_it_is_unwell_gets_nothing(status: str) -> None:
    """RTE-22, STA-3, CFL-11: an agent flagged in its status is given nothing until it says otherwise."""
    shop = Shop("t")
    shop.run(UpdateSession(caller=ANN, status=status))
    reply = shop.next()
    assert reply.outcome.value == "denied"
    assert "its state is" in reply.waiting_for[0]
    shop.run(UpdateSession(caller=ANN, status="idle"))
    assert shop.next().task is not None


def test_sessions_of_one_agent_are_counted_together() -> None:
    """What an agent has in hand and how it did is the sum over its sessions.

    RTE-14, RTE-18, CFL-9, SES-42, STA-7.
    """
    shop = Shop(*"abcd", type="doc")
    twin = Caller("ann-2", agent="ann", project="p")
    shop.run(Register(caller=Caller("ann-1", agent="ann", project="p"), capabilities={"doc": 2.0}))
    shop.do(*shop.taken())
    shop.do(*shop.taken(twin), session="ann-2")
    shop.taken()
    shop.taken(twin)
    (ann,) = shop.run(GetAgents("p", "ann")).reply
    assert (ann.sessions, ann.claims, ann.track_record["doc"].done, ann.liveness) == (2, 2, 2, "live")
    assert ann.capabilities == {"doc": 2.0}
    assert shop.run(GetAgents("p"), T0 + 10 * FORGIVE_MS).reply[0].liveness == "hung"
    assert shop.run(GetAgents("elsewhere")).reply == []


def test_enabled_again_an_agent_begins_afresh() -> None:
    """RTE-22: disabled it is kept on record for good; enabled, its limits are forgotten; again is no news."""
    shop = Shop("t")
    shop.give_back(*shop.taken(), limited_ms=60_000)
    off, on = (EnableAgent("p", "ann", enabled) for enabled in (False, True))
    assert shop.run(off).event_tags == ["agent.enabled"]
    assert shop.run(off).event_tags == []
    assert shop.records[keys.agent("p", "ann")].index_key == ""
    assert shop.next(now=T0 + 60_000).outcome.value == "denied"
    assert shop.run(on).reply.blocked_reason == ""
    assert shop.taken() == ("t", 2)
