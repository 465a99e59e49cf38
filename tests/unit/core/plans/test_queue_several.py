"""Several tasks taken in one step, and several results handed in: as if one by one, in fewer commits."""

from typing import Any

import msgspec
import pytest

from coord.core.identity import Caller
from coord.core.limits import SetLimits
from coord.core.locks.commands import AcquireLocks, ListLocks, ReleaseLocks
from coord.core.locks.resources import REQUEST_RESOURCES_MAX
from coord.core.plans.commands import AddTasks, ClaimNext, NewTask, SetTrack
from coord.core.tasks.commands import ReleaseClaim, SubmitResult, SubmitResults
from coord.core.tasks.types import ReleaseReason, SubmissionReason
from coord.engine.engine import Engine
from coord.stores.open import open_store
from tests.support.plan_harness import LEASE_MS, PlanHarness
from tests.support.stores.stand_in import StandInDatabase

EVERYTHING = 1000


@pytest.fixture
def harness() -> PlanHarness:
    return PlanHarness()


def names_of(reply: Any) -> list[str]:
    """What a step gave."""
    return [each.task.task_id for each in (reply, *reply.more)]


def held(harness: PlanHarness) -> list[str]:
    return [lock.resource for lock in harness.engine.call(ListLocks(Caller("ann", agent="ann")))]


def records_and_events(harness: PlanHarness) -> tuple[list[Any], list[bytes]]:
    """All records and events of a store, whatever commits they came in."""
    store = harness.database.log("local")
    records = [
        (record.key, record.value, record.index_key) for record in store.scan("", by="key", limit=EVERYTHING)
    ]
    return records, [event for entry in store.tail(0, EVERYTHING) for event in entry.events]


def test_several_at_once_are_recorded_as_one_by_one() -> None:
    """CLM-13, issue 6: the same tasks in the same order, with the same records and events."""
    harnesses = [PlanHarness(), PlanHarness()]
    for each in harnesses:
        for number in range(6):
            each.add(f"t{number}", priority=number % 3, track="AB"[number % 2], type="test" * (number > 3))
    together = names_of(harnesses[0].ask(limit=4))
    one_by_one = [harnesses[1].take() for _ in range(4)]
    assert together == one_by_one == ["t2", "t5", "t1", "t4"]
    assert records_and_events(harnesses[0]) == records_and_events(harnesses[1])
    results = tuple(harnesses[0].submission(name, "") for name in together)
    replies = harnesses[0].engine.call(SubmitResults(Caller("ann", agent="ann"), results))
    assert (
        [reply.accepted for reply in replies]
        == [harnesses[1].submit(name) for name in one_by_one]
        == [True] * 4
    )
    assert records_and_events(harnesses[0]) == records_and_events(harnesses[1])


def test_who_asks_for_several_gets_as_many_as_there_are(harness: PlanHarness) -> None:
    """CLM-15, issue 6: fewer where there are fewer; where there is none, which nothing it is."""
    harness.add_all({"a": (), "b": (), "c": ("a",)})
    assert names_of(harness.ask(limit=200)) == ["a", "b"]
    assert harness.take(limit=200) == "blocked"
    assert harness.submit("a")
    assert names_of(harness.ask(limit=200)) == ["c"]
    assert harness.submit("b")
    assert harness.submit("c")
    assert harness.take(limit=200) == "done"


def test_a_track_of_others_is_passed_over_by_who_takes_several(harness: PlanHarness) -> None:
    """Issue 6: one agent on a track, however many of its tasks that one takes in a step."""
    for name in ("a1", "a2", "b1", "b2"):
        harness.add(name, track=name[0].upper())
    assert names_of(harness.ask("bob", tracks=("A",), limit=2)) == ["a1", "a2"]
    assert names_of(harness.ask("ann", limit=4)) == ["b1", "b2"]
    assert (harness.on_track("A"), harness.on_track("B")) == ({"bob": 2}, {"ann": 2})
    harness.engine.call(SetTrack("p", "A", 2))
    assert harness.take("cid", limit=4) == "blocked"


def test_each_claim_of_a_step_has_locks_of_its_own(harness: PlanHarness) -> None:
    """CLM-12: the locks of each end with its claim; tasks whose files meet are not taken in one step."""
    files = {"a": "file:src/a.py", "b": "file:src/b.py", "c": "file:src/*.py", "d": "file:d.py"}
    for name, file in files.items():
        harness.add(name, files=(file,))
    reply = harness.ask(limit=4)
    assert names_of(reply) == ["a", "b"]
    assert [[lock.resource for lock in each.locks] for each in (reply, *reply.more)] == [
        ["file:src/a.py"],
        ["file:src/b.py"],
    ]
    assert all(lock.fence for each in (reply, *reply.more) for lock in each.locks)
    assert harness.submit("a")
    assert held(harness) == ["file:src/b.py"]
    assert harness.submit("b")
    assert names_of(harness.ask(limit=4)) == ["c", "d"]


def test_a_limit_ends_a_step() -> None:
    """TEN-7: as many as the tenant may have, and then the limit that stands against more."""
    engine = Engine(open_store("memory:"), "limited", clock=lambda: 1_700_000_000_000)
    engine.call(SetLimits("limited", {"max_concurrent_claims": 2}, by="test"))
    engine.call(AddTasks("p", tuple(NewTask(task_id=f"t{number}") for number in range(4))))
    command = ClaimNext(caller=Caller("ann"), tenant="limited", project="p", lease_ms=LEASE_MS, limit=3)
    assert names_of(engine.call(command)) == ["t0", "t1"]
    denied = engine.call(command)
    assert (denied.outcome.value, denied.more) == ("denied", [])
    assert "2 claims are active" in denied.waiting_for[0]


@pytest.mark.parametrize("limit", [1, 3])
def test_a_task_that_was_claimed_too_often_is_in_nobodys_way(limit: int) -> None:
    """TEN-10: it waits for a person, those behind it are taken."""
    engine = Engine(open_store("memory:"), "limited", clock=lambda: 1_700_000_000_000)
    engine.call(SetLimits("limited", {"max_generations_per_task": 1}, by="test"))
    engine.call(AddTasks("p", tuple(NewTask(task_id=name) for name in ("a", "b"))))
    command = ClaimNext(caller=Caller("ann"), tenant="limited", project="p", lease_ms=LEASE_MS)
    assert names_of(engine.call(command)) == ["a"]
    engine.call(ReleaseClaim("limited", "p", "a", "ann", 1, ReleaseReason.VOLUNTARY))
    assert names_of(engine.call(msgspec.structs.replace(command, limit=limit))) == ["b"]
    reply = engine.call(command)
    assert (reply.outcome.value, "GENERATIONS" in reply.waiting_for[0]) == ("blocked", True)


def test_each_result_of_a_step_is_judged_by_itself(harness: PlanHarness) -> None:
    """Issue 6: one that does not count is rejected, the others are accepted."""
    harness.add_all({"a": (), "b": ()})
    assert names_of(harness.ask(limit=2)) == ["a", "b"]
    results = tuple(SubmitResult("local", "p", name, "", 1, b"{}", "wp") for name in ("a", "a", "b", "none"))
    replies = harness.engine.call(SubmitResults(Caller("ann", agent="ann"), results))
    assert [reply.reason for reply in replies] == [
        SubmissionReason.ACCEPTED,
        SubmissionReason.TASK_ALREADY_COMPLETED,
        SubmissionReason.ACCEPTED,
        SubmissionReason.NO_CLAIM,
    ]
    assert harness.states("a", "b") == ["done", "done"]


@pytest.mark.parametrize("limit", [1, 2])
def test_files_of_one_name_in_two_repositories_are_two_files(harness: PlanHarness, limit: int) -> None:
    """CLM-12: what is free, or held, in one repository says nothing of the other."""
    for name in ("one", "two"):
        harness.add(name, files=("file:a.py",), repository=f"of {name}")
    caller = Caller("bob", agent="bob")
    for free, repository in (("one", "of two"), ("two", "of one")):
        lock = AcquireLocks(caller=caller, resources=("file:a.py",), repository=repository, ttl_ms=LEASE_MS)
        assert harness.engine.call(lock).ok
        assert names_of(harness.ask(limit=limit)) == [free]
        harness.release(free)
        harness.engine.call(ReleaseLocks(caller, repository, ("file:a.py",)))


def test_the_locks_of_a_step_are_looked_for_together() -> None:
    """CLM-12, issue 6: few readings however many tasks, and no more files than one request may lock."""
    database = StandInDatabase(open_store("memory:"))
    engine, store = Engine(database, "local", clock=lambda: 1_700_000_000_000), database.log("local")
    new = [NewTask(task_id=f"t{number:03d}", files=(f"file:{number}/a.py",)) for number in range(100)]
    engine.call(AddTasks("p", tuple(new)))
    store.start_counting()
    reply = engine.call(PlanHarness.next_command("ann", limit=100))
    assert names_of(reply) == [task.task_id for task in new[:REQUEST_RESOURCES_MAX]]
    assert store.calls["load"] < 10


def test_a_step_is_no_larger_than_its_answer_and_its_commit_may_be(harness: PlanHarness) -> None:
    """CLM-13, issue 6: with a command id the answer is one record; asked again, it is the same."""
    text = "x" * 2000
    for number in range(250):
        harness.add(f"t{number:03d}", description=text)
    command = harness.next_command("ann", limit=250)
    reply = harness.engine.call(command, command_id="once")
    assert 50 < len(names_of(reply)) < 250
    assert harness.engine.call(command, command_id="once") == reply
    taken = names_of(reply)
    while (reply := harness.ask(limit=250)).ok:
        taken += names_of(reply)
    assert taken == [f"t{number:03d}" for number in range(250)]
