"""Agents that get nothing for a while, and how they did: through the engine, with a clock in hand."""

import pytest

from coord.core import keys
from coord.core.identity import Caller
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.sessions.commands import UpdateSession
from coord.core.tasks.agent_record import (
    FAILURES_TO_BLOCK,
    FORGIVE_MS,
    KEPT_MS,
    TRACK_RECORD_TASKS_MAX,
    TYPES_MAX,
)
from coord.core.tasks.commands import ReleaseClaim
from coord.core.tasks.schema import TrackRecord
from coord.core.tasks.types import ReleaseReason
from tests.support.agent_harness import AgentHarness
from tests.support.rule_harness import T0, RuleHarness

ANN, BOB = Caller("ann-1", agent="ann"), Caller("bob-1", agent="bob")
LEASE_MS = 60_000


def test_a_rate_limit_is_neither_success_nor_failure() -> None:
    """RTE-20: the claim goes back at once, nothing is counted, others take it; then it is back."""
    harness = AgentHarness("t")
    task, generation = harness.taken()
    outcome = harness.give_back(task, generation, limited_ms=30_000, note="429")
    assert outcome.event_tags == ["task.released", "agent.limited"]
    assert outcome.events[1]["until_ms"] == T0 + 30_000
    reply = harness.next(now=T0 + 29_001)
    assert (reply.outcome.value, reply.look_ms) == ("blocked", T0 + 30_000)
    assert reply.waiting_for == ["ann gets no task: rate limited for 1 s"]
    taken = harness.next(BOB, T0 + 1)
    assert (taken.task.task_id, taken.task.retries, taken.task.generation) == ("t", 0, 2)
    assert harness.keys("record/") == []
    harness.run(ReleaseClaim("local", "p", "t", "bob-1", 2), T0 + 2)
    assert harness.taken(now=T0 + 30_000) == ("t", 3)


def test_a_shorter_limit_does_not_end_a_longer_one() -> None:
    """RTE-20: two limits of one agent: the later end counts, and the record is kept until after it."""
    harness = AgentHarness("t", "u")
    both = [harness.taken(), harness.taken()]
    harness.give_back(*both[0], limited_ms=60_000)
    assert harness.give_back(*both[1], limited_ms=10_000).event_tags == ["task.released"]
    assert harness.record().limited_until_ms == T0 + 60_000
    assert harness.records[keys.agent("p", "ann")].index_key == keys.due(T0 + 60_000 + KEPT_MS)
    harness.sweep(now=T0 + 60_000 + KEPT_MS)
    assert harness.keys("agent/") == []


def test_where_nothing_is_left_nobody_waits_for_a_limit() -> None:
    """RTE-20: an agent that is held back still hears that all is done."""
    harness = AgentHarness("t")
    task, generation = harness.taken()
    harness.give_back(task, generation, limited_ms=60_000)
    harness.do(*harness.taken(BOB), session="bob-1")
    assert harness.next(now=T0 + 1).outcome.value == "done"


def test_failures_in_a_row_pause_an_agent_and_time_forgives() -> None:
    """RTE-20, RTE-22: after three failures it gets nothing for a minute; then one task, and again a pause."""
    harness = AgentHarness(*"abcdef")
    for _ in range(FAILURES_TO_BLOCK):
        harness.fail(*harness.taken())
    reply = harness.next(now=T0 + 1)
    assert (reply.outcome.value, reply.look_ms) == ("blocked", T0 + FORGIVE_MS)
    assert reply.waiting_for == ["ann gets no task: it failed 3 times in a row"]
    assert harness.next(BOB, T0 + 1).task is not None
    later = T0 + FORGIVE_MS
    harness.fail(*harness.taken(now=later), now=later)
    assert harness.next(now=later + 1).look_ms == later + FORGIVE_MS
    later += 3 * FORGIVE_MS
    assert harness.record().failures == FAILURES_TO_BLOCK
    harness.do(*harness.taken(now=later), now=later)
    assert harness.record().failures == 0, "a success ends the row"


def test_a_lost_lease_counts_as_a_failure_and_a_given_back_task_does_not() -> None:
    """RTE-18, RTE-22: who vanishes with its task failed; who gives it back did not."""
    harness = AgentHarness("t", type="api")
    harness.give_back(*harness.taken())
    assert (harness.keys("agent/"), harness.keys("record/")) == ([], [])
    harness.taken()
    harness.sweep(now=T0 + LEASE_MS)
    assert (harness.record().failures, harness.track_record()) == (1, {"api": TrackRecord(failed=1)})


def test_accepted_results_are_counted_by_type_with_their_pace() -> None:
    """RTE-18: done, time taken and time expected, per type; without an estimate the pace is no news."""
    harness = AgentHarness("a", type="doc", estimate_s=40)
    harness.run(AddTasks("p", (NewTask(task_id="b", type="doc"), NewTask(task_id="c", type="api"))))
    for _ in range(3):
        task, generation = harness.taken()
        outcome = harness.do(task, generation, now=T0 + 30_000)
        assert set(outcome.writes) == {
            f"task/p/{task}",
            f"result/p/{task}/00000001",
            f"by-session/ann-1/p/{task}",
            f"unfinished/p/{task}",
            f"working/p/{task}",
            "record/p/ann/ann-1",
        }, "one record more than without agents"
    assert harness.track_record() == {"doc": TrackRecord(2, 0, 60, 70), "api": TrackRecord(1, 0, 30, 30)}
    assert "agent/p/ann" not in harness.records


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
    harness = AgentHarness(*names, type="doc", estimate_s=1)
    for _ in names:
        harness.do(*harness.taken(), now=T0 + 1000)
    assert harness.track_record() == {"doc": TrackRecord(25, 0, 25.5, 25.5)}
    others = [NewTask(task_id=f"u{number}", type=f"kind{number}") for number in range(TYPES_MAX + 5)]
    harness.run(AddTasks("p", tuple(others)))
    for _ in others:
        harness.do(*harness.taken())
    assert (len(harness.track_record()), harness.track_record()[""].done) == (TYPES_MAX + 1, 6)


@pytest.mark.parametrize("status", ["crashed", "error", "stopping"])
def test_an_agent_that_says_it_is_unwell_gets_nothing(status: str) -> None:
    """RTE-22, STA-3, CFL-11: an agent flagged in its status is given nothing until it says otherwise."""
    harness = AgentHarness("t")
    harness.run(UpdateSession(caller=ANN, status=status))
    reply = harness.next()
    assert reply.outcome.value == "denied"
    assert "its state is" in reply.waiting_for[0]
    harness.run(UpdateSession(caller=ANN, status="idle"))
    assert harness.next().task is not None
