"""What is left behind is cleaned up, each act with its event and reason (SCH, REC), on the memory store."""

from collections.abc import Iterator
from typing import Any

import pytest

from coord.core.commands import Command
from coord.core.identity import Caller
from coord.core.plans.commands import AddTasks, ClaimNamed, ClaimNext, GetStuck, NewTask, RetryTask, SkipTask
from coord.core.sessions.commands import Heartbeat
from coord.core.sweep import Sweep
from coord.core.tasks.commands import (
    AsSession,
    GetTaskState,
    ListExpiredClaims,
    ReleaseClaim,
    RenewLease,
    ResetTask,
    SubmitResult,
)
from coord.core.tasks.types import ReleaseReason
from coord.engine.engine import Engine
from tests.support.store_harness import Actor, StoreHarness, open_store_harness

LEASE_MS = 60_000


@pytest.fixture
def harness() -> Iterator[StoreHarness]:
    with open_store_harness("memory:") as harness:
        yield harness


def add(harness: StoreHarness, task: str, *files: str, **described: Any) -> None:
    harness.call(AddTasks("p", (NewTask(task_id=task, files=files, repository="repo", **described),)))


def claim(actor: Actor, task: str = "t", **options: Any) -> Any:
    return actor.harness.call(
        ClaimNamed(caller=actor.caller, tenant="local", project="p", task=task, lease_ms=LEASE_MS, **options)
    )


def fail(actor: Actor, generation: int, *, final: bool = False) -> Any:
    asked = ReleaseClaim("local", "p", "t", "", generation, ReleaseReason.ERROR, "no network", final)
    return actor.harness.call(AsSession(actor.caller, asked))


def take_next(actor: Actor) -> str:
    command = ClaimNext(caller=actor.caller, tenant="local", project="p", lease_ms=LEASE_MS)
    return str(actor.harness.call(command).outcome.value)


def state(harness: StoreHarness, task: str = "t") -> str:
    return str(harness.call(GetTaskState("local", "p", task)).state.value)


def sweep(harness: StoreHarness) -> int:
    passed: int = harness.call(Sweep("local", 100)).passed
    return passed


def stuck(harness: StoreHarness) -> list[str]:
    return [task.task_id for task in harness.call(GetStuck("p")).tasks]


def test_a_killed_agent_gives_back_its_locks_and_tasks(harness: StoreHarness) -> None:
    """Its death is found and told with the evidence, and Otto proceeds.

    SCH-1, SCH-2, SCH-5, SCH-8, REC-1, REC-3, REC-25, PRB-31, PRB-32.
    """
    process = harness.process(7)
    beatrice, otto = harness.actor("beatrice", process=process), harness.actor("otto")
    add(harness, "t", "file:CONTRACTS.md")
    beatrice.register()
    assert claim(beatrice).success
    harness.kill(process)
    harness.pass_seconds(121)
    assert sweep(harness)
    (ended,) = harness.events("session.ended")
    assert (ended["session"], ended["end_reason"], ended["evidence"]) == ("beatrice", "dead", "pid 7 is dead")
    released = {event["end_reason"] for event in harness.events("lock.released")}
    assert released, "each lock that ends is told with how it ended"
    assert state(harness) == "ready"
    assert take_next(otto) == "task"


def test_a_waiter_whose_process_is_gone_leaves_the_line(harness: StoreHarness) -> None:
    """SCH-8, AUD-14: an orphaned request stands in nobody's way, and its end is told with the reason."""
    ann, bob, eve = (harness.actor(name) for name in ("ann", "bob", "eve"))
    waiter = harness.process(8)
    ann.take("file:a.py")
    bob.wait_for("file:a.py", waiter=waiter)
    harness.kill(waiter)
    ann.unlock("file:a.py")
    assert eve.lock("file:a.py").ok
    assert [event["session"] for event in harness.events("lock.withdrawn")] == ["bob"]
    assert all(event["reason"] for event in harness.events("lock.withdrawn"))


def test_a_frozen_agent_loses_what_it_does_not_renew(harness: StoreHarness) -> None:
    """DESIGN §5: silence frees by lease, never by guess; a new generation follows.

    SCH-4, SCH-9, REC-2, REC-4, REC-17, DLK-11, DLK-25.
    """
    frozen, otto = harness.actor("frozen", process=harness.process(9)), harness.actor("otto")
    add(harness, "t", "file:a.py")
    frozen.register()
    assert claim(frozen).success
    assert not otto.lock("file:a.py").ok
    harness.pass_seconds(LEASE_MS / 1000)
    assert sweep(harness)
    assert [event["task"] for event in harness.events("task.expired")] == ["t"]
    assert harness.events("session.ended") == [], "it lives: only its leases ended"
    assert claim(otto).claim.generation.generation == 2
    assert len(harness.call(ListExpiredClaims("local"))) == 0


def test_one_that_forgets_to_release_is_cleaned(harness: StoreHarness) -> None:
    """SCN-59, REC-28: what an error path left behind blocks no later run."""
    forgetful, later = harness.actor("forgetful"), harness.actor("later")
    for number in range(3):
        add(harness, f"t{number}", f"file:{number}.py")
        assert claim(forgetful, f"t{number}").success
    harness.pass_seconds(LEASE_MS / 1000)
    assert [claim.task_id for claim in harness.call(ListExpiredClaims("local"))] == [
        "t0",
        "t1",
        "t2",
    ]
    assert all(claim(later, f"t{number}").success for number in range(3))
    assert len(harness.events("task.expired")) == 3


def test_too_many_tries_are_surfaced(harness: StoreHarness) -> None:
    """Another try after 5, 20 and 80 s; then errored, and named to people.

    REC-6, REC-12, REC-13, CLM-6, SUP-7.
    """
    ann, bob = harness.actor("ann"), harness.actor("bob")
    add(harness, "t", retries_max=3)
    for generation, pause_s in ((1, 5), (2, 20), (3, 80)):
        assert claim(ann).success
        assert fail(ann, generation).success
        assert (take_next(ann), stuck(harness)) == ("blocked", [])
        harness.pass_seconds(pause_s)
    retried = harness.events("task.retried")
    assert [event["retries"] for event in retried] == [1, 2, 3]
    assert claim(ann).success
    assert fail(ann, 4).success
    (errored,) = harness.events("task.errored")
    assert (errored["retries"], errored["reason"]) == (4, "no network")
    assert (state(harness), stuck(harness), take_next(bob)) == ("errored", ["t"], "deadlocked")
    harness.call(RetryTask("local", "p", "t"))
    assert (stuck(harness), take_next(bob)) == ([], "task")


@pytest.mark.parametrize("way_out", ["retry", "skip", "reset"])
def test_what_failed_is_named_until_somebody_acts(harness: StoreHarness, way_out: str) -> None:
    """REC-6: failed for good is stuck as well; each way out takes it off the list."""
    ann = harness.actor("ann")
    add(harness, "t")
    assert claim(ann).success
    assert fail(ann, 1, final=True).success
    assert stuck(harness) == ["t"]
    ways: dict[str, Command] = {
        "retry": RetryTask("local", "p", "t"),
        "skip": SkipTask("local", "p", "t"),
        "reset": ResetTask("local", "p", "t"),
    }
    harness.call(ways[way_out])
    assert stuck(harness) == []


def test_two_who_think_they_hold_it(harness: StoreHarness) -> None:
    """The higher generation wins; renewal and result of the lower are refused.

    REC-18, REC-21, REC-22, REC-23.
    """
    cut_off, other = harness.actor("cut-off"), harness.actor("other")
    add(harness, "t")
    assert claim(cut_off).success
    harness.pass_seconds(LEASE_MS / 1000)
    assert claim(other).success
    asked = RenewLease("local", "p", "t", "", 1)
    assert harness.call(AsSession(cut_off.caller, asked)).reason == "GENERATION_MISMATCH"
    mine = SubmitResult("local", "p", "t", "", 1, b"{}", "wp-1")
    theirs = SubmitResult("local", "p", "t", "", 2, b"{}", "wp-2")
    assert harness.call(AsSession(cut_off.caller, mine)).reason == "STALE_GENERATION"
    assert harness.call(AsSession(other.caller, theirs)).reason == "ACCEPTED"
    assert harness.call(AsSession(other.caller, theirs)).reason == "TASK_ALREADY_COMPLETED"


def test_many_sweepers_pass_each_deadline_once(harness: StoreHarness) -> None:
    """SCH-9, SCH-20: processes that come by together do the same work once, a bounded part in each call."""
    ann = harness.actor("ann")
    for number in range(100):
        assert claim(ann, f"t{number}").success
    harness.pass_seconds(LEASE_MS / 1000)
    engines = [Engine(harness.database, "local", clock=lambda: harness.now) for _ in range(8)]
    for number, engine in enumerate(engines):
        before = len(harness.events("task.expired"))
        engine.call(Heartbeat(Caller(f"passer-by-{number}")))
        assert len(harness.events("task.expired")) - before <= 32
        engine.close()
    expired = [event["task"] for event in harness.events("task.expired")]
    assert (len(expired), len(set(expired))) == (100, 100)
