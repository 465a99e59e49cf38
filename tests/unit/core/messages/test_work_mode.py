"""Pause, drain and stop all agents: who may, what each mode refuses, and what goes on."""

from typing import Any

import msgspec
import pytest

from coord.core import keys
from coord.core.errors import Invalid, Refused
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, BeginToolCall, Outcome
from coord.core.messages.work_mode import GetWorkMode, Mode, SetWorkMode, WorkModeInfo
from coord.core.plans.commands import ClaimNamed, Runnable
from coord.core.tasks.commands import ClaimTask, ClaimTasks
from coord.core.tasks.types import ClaimReason
from tests.support.lock_harness import LockHarness
from tests.support.plan_harness import PlanHarness

PERSON = Caller("tty-1", user="grace", person=True)
HELD = [Mode.PAUSED, Mode.DRAINING, Mode.STOPPED]


def set_mode(
    harness: Any, mode: Mode, reason: str = "the build is red", caller: Caller = PERSON
) -> WorkModeInfo:
    reply: WorkModeInfo = harness.engine.call(SetWorkMode(caller=caller, mode=mode, reason=reason))
    return reply


def called(harness: LockHarness, caller: Caller, *files: str, **options: Any) -> Any:
    return harness.engine.call(BeginToolCall(caller, "r", files, call="c1", lease_ms=60_000, **options))


@pytest.mark.parametrize("mode", HELD)
def test_a_person_holds_the_agents_up_and_lets_them_go_on(mode: Mode) -> None:
    """The log says who, and why; nothing is left behind; the same again writes nothing."""
    harness = LockHarness()
    done = set_mode(harness, mode)
    assert (done.mode, done.by, done.reason, done.before) == (mode, "grace", "the build is red", Mode.ON)
    (event,) = harness.events("work.held")
    assert (event["mode"], event["by"], event["reason"]) == (mode.value, "grace", "the build is red")
    assert harness.written_by(lambda: set_mode(harness, mode)) == []
    assert harness.engine.call(GetWorkMode()).mode is mode
    assert set_mode(harness, Mode.ON, "mended").before is mode
    (event,) = harness.events("work.resumed")
    assert (event["before"], event["by"], event["reason"]) == (mode.value, "grace", "mended")
    assert harness.store.load([keys.HELD_WORK])[keys.HELD_WORK].value is None
    assert harness.written_by(lambda: set_mode(harness, Mode.ON)) == []


def test_only_people_may_and_a_stop_says_why() -> None:
    """An agent whose calls are stopped would otherwise resume itself."""
    harness = LockHarness()
    set_mode(harness, Mode.STOPPED)
    for mode in Mode:
        with pytest.raises(Refused, match="only people") as caught:
            set_mode(harness, mode, caller=harness.who("ann"))
        assert caught.value.hint
    with pytest.raises(Invalid, match="requires a reason"):
        set_mode(harness, Mode.STOPPED, "")
    assert harness.engine.call(GetWorkMode()).mode is Mode.STOPPED


@pytest.mark.parametrize("mode", HELD)
def test_no_agent_gets_a_task_whatever_way_it_asks(mode: Mode) -> None:
    """Asked for the next one, by name, alone or many: denied with who and why; a person may."""
    harness = PlanHarness()
    harness.add("t")
    set_mode(harness, mode)
    asked = harness.ask()
    assert asked.outcome is (Runnable.DRAINING if mode is Mode.DRAINING else Runnable.BLOCKED)
    assert "grace" in asked.waiting_for[0]
    assert "the build is red" in asked.waiting_for[0]
    ann = Caller("ann", agent="ann", project="p")
    fields: dict[str, Any] = {"tenant": "local", "project": "p", "lease_ms": 60_000}
    one = harness.engine.call(ClaimTask("local", "p", "t", "ann", "ann", 60_000))
    (many,) = harness.engine.call(ClaimTasks("local", "ann", "ann", 60_000, (("p", "t"),)))
    named = harness.engine.call(ClaimNamed(caller=ann, repository="r", task="t", **fields))
    for denied in (one, many, named):
        assert denied.reason is ClaimReason.DENIED_NOT_READY
        assert "grace" in denied.detail
    by_person = harness.engine.call(ClaimNamed(caller=PERSON, repository="r", task="t", **fields))
    assert by_person.reason is ClaimReason.GRANTED


def test_what_agents_have_goes_on_and_an_empty_queue_is_done() -> None:
    """A held-up agent renews and submits: what it has counts."""
    harness = PlanHarness()
    harness.add("t")
    assert harness.take() == "t"
    set_mode(harness, Mode.STOPPED)
    assert harness.submit("t")
    assert harness.ask().outcome is Runnable.DONE
    set_mode(harness, Mode.ON)
    harness.add("u")
    assert harness.take() == "u"


def test_only_a_stop_refuses_locks_and_tool_calls() -> None:
    harness = LockHarness()
    ann = harness.who("ann")
    for mode in (Mode.PAUSED, Mode.DRAINING):
        set_mode(harness, mode)
        assert called(harness, ann, "file:a.py").ok
        assert harness.lock("ann", f"name:{mode}").ok
    set_mode(harness, Mode.STOPPED, "a key has leaked")
    stopped = called(harness, ann, "file:b.py")
    assert stopped.outcome is Outcome.STOPPED
    assert "grace has stopped all agents: " in stopped.held_up
    assert "a key has leaked" in stopped.held_up
    assert not called(harness, ann).ok, "a command without files is stopped, too"
    assert called(harness, ann, despite_emergency=True).ok
    for refused in (lambda: harness.lock("ann", "name:n"), lambda: harness.steal("bob", "name:paused")):
        with pytest.raises(Refused, match="grace has stopped all agents"):
            refused()
    assert called(harness, msgspec.structs.replace(PERSON), "file:c.py").ok
    assert ("ann", "file:a.py") in harness.held(), "agents keep what they have"
    set_mode(harness, Mode.ON)
    assert called(harness, ann, "file:b.py").ok


def test_a_wait_ends_when_the_agents_go_on() -> None:
    """A session that waits for a task asks again soon, whoever holds it up."""
    harness = PlanHarness()
    harness.add("t")
    set_mode(harness, Mode.PAUSED)
    assert harness.ask(wait_ms=60_000).look_ms > 0
    set_mode(harness, Mode.ON)
    assert harness.take() == "t"


def test_who_waits_for_a_lock_keeps_its_place_during_a_stop_and_gets_it_after() -> None:
    """A stop means that no agent gets a lock; the commit that ends it grants what became free, in order."""
    harness = LockHarness()
    harness.lock("ann", "file:a.py", "file:b.py")
    first, behind = harness.wait("bob", "file:a.py"), harness.wait("cid", "file:a.py")
    other = harness.wait("dan", "file:b.py")
    set_mode(harness, Mode.STOPPED)
    harness.release("ann")
    assert harness.held() == set()
    for name, waiting, position in (("bob", first, 1), ("cid", behind, 2), ("dan", other, 1)):
        reply = harness.confirm(name, waiting)
        assert (reply.outcome, reply.position) == (Outcome.WAITING, position)
    set_mode(harness, Mode.ON)
    assert harness.held() == {("bob", "file:a.py"), ("dan", "file:b.py")}
    assert harness.confirm("bob", first).ok
    assert harness.confirm("cid", behind).outcome is Outcome.WAITING


def test_each_repository_gets_what_became_free_during_a_stop() -> None:
    """A name means another file in each of them."""
    harness = LockHarness()
    for number, repository in enumerate(("r", "r2")):
        what = (repository, ("file:a.py",))
        assert harness.engine.call(AcquireLocks(harness.who(f"ann{number}"), *what)).ok
        waits = AcquireLocks(
            harness.who(f"bob{number}"), *what, wait_ms=60_000, wait_id=f"w{number}", leased=False
        )
        harness.engine.call(waits)
    set_mode(harness, Mode.STOPPED)
    for number in range(2):
        harness.release(f"ann{number}")
    assert harness.held() == set()
    set_mode(harness, Mode.ON)
    assert harness.held() == {("bob0", "file:a.py"), ("bob1", "file:a.py")}


@pytest.mark.parametrize("mode", [Mode.PAUSED, Mode.DRAINING])
def test_locks_are_granted_again_when_a_stop_becomes_a_pause(mode: Mode) -> None:
    harness = LockHarness()
    harness.lock("ann", "file:a.py")
    harness.wait("bob", "file:a.py")
    set_mode(harness, Mode.STOPPED)
    harness.release("ann")
    set_mode(harness, Mode.STOPPED, "still")
    assert harness.held() == set()
    set_mode(harness, mode)
    assert harness.held() == {("bob", "file:a.py")}


def test_who_gave_up_or_died_during_a_stop_gets_nothing_after_it() -> None:
    harness = LockHarness()
    harness.lock("ann", "file:a.py", "file:b.py")
    harness.wait("bob", "file:a.py", wait_ms=5_000)
    given_up = harness.wait("cid", "file:a.py", "file:b.py")
    harness.wait("dan", "file:b.py")
    set_mode(harness, Mode.STOPPED)
    harness.release("ann")
    harness.pass_time(6_000)
    harness.withdraw("cid", given_up)
    set_mode(harness, Mode.ON)
    assert harness.held() == {("dan", "file:b.py")}


def test_a_hand_off_that_lapsed_is_not_granted_again_during_a_stop() -> None:
    harness = LockHarness()
    harness.lock("ann", "file:a.py")
    waiting = harness.wait("bob", "file:a.py")
    harness.release("ann")
    set_mode(harness, Mode.STOPPED)
    harness.pass_time(16_000)
    again = harness.confirm("bob", waiting)
    assert again.outcome is Outcome.WAITING
    assert harness.held() == set()
    set_mode(harness, Mode.ON)
    assert harness.confirm("bob", again).ok


def test_a_person_passes_the_agents_that_are_stopped() -> None:
    """Whoever mends what went wrong waits for holders, and for nobody who is held up."""
    harness = LockHarness()
    harness.lock("ann", "file:a.py", "file:b.py")
    harness.wait("bob", "file:a.py", "file:b.py")
    set_mode(harness, Mode.STOPPED)
    waiting = harness.engine.call(
        AcquireLocks(PERSON, "r", ("file:a.py",), wait_ms=60_000, wait_id="p1", leased=False)
    )
    assert (waiting.outcome, waiting.position) == (Outcome.WAITING, 1)
    harness.release("ann")
    assert harness.held() == {("tty-1", "file:a.py")}
    assert harness.engine.call(AcquireLocks(PERSON, "r", ("file:b.py",))).ok
    set_mode(harness, Mode.ON)
    assert harness.held() == {("tty-1", "file:a.py"), ("tty-1", "file:b.py")}


def test_a_person_who_waits_behind_an_agent_passes_it_when_the_stop_begins() -> None:
    harness = LockHarness()
    harness.lock("ann", "file:a.py")
    harness.wait("bob", "file:a.py", "file:b.py")
    harness.pass_time(1)
    waiting = AcquireLocks(PERSON, "r", ("file:b.py",), wait_ms=60_000, wait_id="p1", leased=False)
    assert harness.engine.call(waiting).outcome is Outcome.WAITING
    set_mode(harness, Mode.STOPPED)
    assert harness.held() == {("ann", "file:a.py"), ("tty-1", "file:b.py")}


def test_a_deadlock_through_a_place_in_the_queue_is_found_during_a_stop() -> None:
    """Ann has a place behind bob, who waits for the person: nobody would look again after the stop."""
    harness = LockHarness()
    harness.engine.call(AcquireLocks(PERSON, "r", ("file:p.py",)))
    harness.lock("cid", "file:x.py")
    harness.lock("ann", "file:q.py")
    harness.wait("bob", "file:x.py", "file:p.py")
    harness.wait("ann", "file:x.py")
    set_mode(harness, Mode.STOPPED)
    harness.release("cid")
    harness.engine.call(AcquireLocks(PERSON, "r", ("file:q.py",), wait_ms=60_000, wait_id="p1", leased=False))
    (event,) = harness.events("lock.deadlock")
    assert set(event["cycle"]) == {"tty-1", "ann", "bob"}
