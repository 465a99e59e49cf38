"""The rules of dependencies, turns, tracks and tries, one by one."""

import pytest

from coord.core.errors import CoordError, Refused
from coord.core.plans.commands import RetryTask, SetTrack, SkipTask
from coord.core.tasks.commands import ClaimTask
from coord.core.tasks.dependencies import LEVELS_MAX, UPDATES_MAX
from coord.core.tasks.planned import RETRY_MS, RETRY_MS_MAX
from coord.core.tasks.types import ClaimReason
from tests.support.plan_harness import LEASE_MS, PlanHarness


@pytest.fixture
def harness() -> PlanHarness:
    return PlanHarness()


# Dependencies.


def test_what_depends_on_something_waits_for_all_of_it(harness: PlanHarness) -> None:
    """TID-14: ready when everything it depends on is done or skipped, and not before."""
    harness.add_all({"a": (), "b": (), "c": ("a", "b")})
    assert harness.take() == "a"
    assert harness.submit("a")
    assert harness.states("c") == ["pending"]
    harness.engine.call(SkipTask("local", "p", "b"))
    assert harness.take() == "c"


def test_a_task_added_after_its_dependencies_is_ready(harness: PlanHarness) -> None:
    """TID-27: whether it was added before or after what it waits for does not matter."""
    harness.add("a")
    assert harness.take() == "a"
    assert harness.submit("a")
    harness.add("b", "a")
    assert harness.take() == "b"


def test_what_failed_blocks_all_below_it_until_it_is_retried(harness: PlanHarness) -> None:
    """CLM-15: blocked all the way down, and ready again when what failed comes back."""
    harness.add_all({"a": (), "b": ("a",), "c": ("b",)})
    assert harness.take() == "a"
    harness.fail("a", final=True)
    assert harness.states("a", "b", "c") == ["failed", "blocked", "blocked"]
    assert harness.take() == "deadlocked"
    harness.engine.call(RetryTask("local", "p", "a"))
    assert harness.states("a", "b", "c") == ["ready", "pending", "pending"]


def test_work_that_runs_is_not_pushed_back(harness: PlanHarness) -> None:
    """Lessons §4: what happens to a dependency changes neither what is worked on nor what is done."""
    harness.add_all({"a": (), "b": ("a",), "c": ("a",)})
    assert harness.take() == "a"
    assert harness.submit("a")
    assert (harness.take(), harness.take("bob")) == ("b", "c")
    assert harness.submit("c", "bob")
    harness.reset("a")
    assert harness.states("a", "b", "c") == ["ready", "in_progress", "done"]
    harness.release("b")
    assert harness.states("b") == ["pending"]


def test_what_is_given_back_behind_a_failure_blocks_what_waits_for_it(harness: PlanHarness) -> None:
    """CLM-15: whatever failed while a task was worked on blocks it, and all behind it, when it comes back."""
    harness.add_all({"a": (), "b": ("a",), "c": ("b",)})
    assert harness.take() == "a"
    assert harness.submit("a")
    assert harness.take() == "b"
    harness.reset("a")
    assert harness.take("bob") == "a"
    harness.fail("a", "bob", 2, final=True)
    assert harness.states("b", "c") == ["in_progress", "pending"]
    harness.pass_time(LEASE_MS)
    assert harness.states("b", "c") == ["blocked", "blocked"]


def test_many_dependents_are_updated_in_steps(harness: PlanHarness) -> None:
    """Issue 4: one change does a bounded amount of work, the sweep goes on, and it is not the end."""
    many = UPDATES_MAX + 600
    harness.add_all({"a": ()} | {f"t{number:04d}": ("a",) for number in range(many)})
    assert harness.take() == "a"
    harness.fail("a", final=True)
    assert UPDATES_MAX <= harness.counted("blocked") < many
    assert harness.take("bob") == "blocked"
    harness.pass_time()
    assert harness.counted("blocked") == many
    assert harness.take("bob") == "deadlocked"


def test_a_long_chain_is_updated_in_steps(harness: PlanHarness) -> None:
    """Issue 4: as deep as it is wide; each sweep goes a measure further down."""
    many = 2 * LEVELS_MAX + 5
    names = [f"t{number:03d}" for number in range(many)]
    harness.add_all({name: (names[at - 1],) if at else () for at, name in enumerate(names)})
    assert harness.take() == names[0]
    harness.fail(names[0], final=True)
    seen = [harness.counted("blocked")]
    for _ in range(2):
        harness.pass_time()
        seen.append(harness.counted("blocked"))
    assert seen == [LEVELS_MAX, 2 * LEVELS_MAX, many - 1]


def test_a_circle_is_named_by_its_path(harness: PlanHarness) -> None:
    """TID-14: also when an old task comes to depend on one that depends on it in turn."""
    harness.add_all({"a": (), "b": ("a",), "c": ("b",)})
    with pytest.raises(CoordError, match="a -> c -> b -> a"):
        harness.add("a", "c")
    with pytest.raises(CoordError, match="d -> d"):
        harness.add("d", "d")
    assert harness.states("a") == ["ready"]


def test_a_dependency_that_is_dropped_is_waited_for_no_more(harness: PlanHarness) -> None:
    """Issue 4, Plans: a changed plan is followed, also in the index of who depends on whom."""
    harness.add_all({"a": (), "b": ("a",)})
    harness.add("b")
    assert harness.states("b") == ["ready"]
    assert harness.take() == "a"
    harness.fail("a", final=True)
    assert harness.states("b") == ["ready"]


def test_a_task_that_is_changed_still_knows_that_it_is_followed(harness: PlanHarness) -> None:
    """TID-14, issue 6: what waits for a task is told, though only a task that is followed looks for it."""
    harness.add("a")
    assert harness.take() == "a"
    harness.add("b", "a")
    harness.add("a", description="put better")
    assert harness.submit("a")
    assert harness.take() == "b"


# Turns.


def test_turns_are_by_priority_that_ages_then_by_age(harness: PlanHarness) -> None:
    """CLM-8: Issue 4, Fairness: a step of priority is worth a minute."""
    harness.add("old")
    harness.now += 59_999
    harness.add("urgent", priority=1)
    harness.now += 1
    harness.add("late", priority=1)
    assert [harness.take(name) for name in ("ann", "bob", "cid")] == ["urgent", "late", "old"]


def test_classes_share_one_order(harness: PlanHarness) -> None:
    """Issue 4, Fairness: the turn counts, whatever type or track a task is of."""
    kinds = ("ui", "", "db", "ui", "db", "")
    for number, kind in enumerate(kinds):
        harness.now += 1
        harness.add(f"t{number}", type=kind)
    assert [harness.take() for _ in kinds] == [f"t{number}" for number in range(len(kinds))]


def test_a_batch_gives_each_task_once(harness: PlanHarness) -> None:
    """Issue 4, Proof: commands of one commit see what those before them took, and what they made ready."""
    names = [f"t{number:03d}" for number in range(70)]
    harness.add_all(dict.fromkeys(names, ()))
    replies = harness.engine.call_many([harness.next_command(f"agent-{number}") for number in range(69)])
    assert [reply.task.task_id for reply in replies] == names[:69]
    harness.add("zz", "t000")
    submitted, second, third = harness.engine.call_many(
        [harness.submission("t000", "agent-0"), harness.next_command("ann"), harness.next_command("bob")]
    )
    assert submitted.accepted
    assert (second.task.task_id, third.task.task_id) == ("t069", "zz")


def test_an_agent_gets_what_it_is_able_to_do(harness: PlanHarness) -> None:
    """Types, roles and tracks are choices, needs are conditions; what asks for nothing is for all.

    CLM-3, CLM-8.
    """
    harness.add("a", needs=("gpu",))
    harness.add("b", type="ui")
    harness.add("c", role="reviewer")
    assert harness.take(types=("db",), roles=("tester",)) == "blocked"
    assert harness.take(types=("ui",), roles=("tester",)) == "b"
    assert harness.take("bob", roles=("reviewer",)) == "c"
    assert harness.take("cid", has=("gpu", "x")) == "a"


def test_a_task_far_behind_a_hot_file_is_found(harness: PlanHarness) -> None:
    """Issue 4, Proof: no ready task is missed because the files of many before it are held."""
    harness.add("holder", files=("file:hot.py",))
    assert harness.take() == "holder"
    for number in range(150):
        harness.add(f"hot{number:03d}", files=("file:hot.py",))
    harness.add("zz-free", files=("file:other.py",))
    reply = harness.ask("bob", types=())
    assert reply.task is not None
    assert reply.task.task_id == "zz-free"
    blocked = harness.ask("cid")
    assert blocked.outcome.value == "blocked"
    assert blocked.waiting_for[0] == "hot000: file:hot.py is held by ann"


def test_why_the_queue_has_no_task(harness: PlanHarness) -> None:
    """Done, blocked by what, or deadlocked; and when it is worth looking again."""
    assert harness.take() == "done"
    harness.add_all({"a": (), "b": ("a",)})
    assert harness.take() == "a"
    blocked = harness.ask("bob")
    assert (blocked.outcome.value, blocked.waiting_for) == ("blocked", ["a is in progress (ann)"])
    assert blocked.look_ms == harness.now + 5_000
    harness.now += LEASE_MS - 1_000
    assert harness.ask("bob").look_ms == harness.now + 1_000
    harness.fail("a")
    paused = harness.ask("bob")
    assert (paused.outcome.value, paused.waiting_for) == ("blocked", ["a is retried soon"])
    harness.now += RETRY_MS
    assert harness.take("bob") == "a"
    harness.fail("a", "bob", 2, final=True)
    stuck = harness.ask("bob")
    assert (stuck.outcome.value, stuck.waiting_for) == ("deadlocked", ["a failed"])


# Tracks.


def test_a_track_has_one_agent_unless_said(harness: PlanHarness) -> None:
    """One agent may have several tasks of a track, another none; more where configured.

    TID-12, TID-13, TID-23.
    """
    for name in ("a", "b", "c"):
        harness.add(name, track="T")
    assert [harness.take(), harness.take("bob"), harness.take()] == ["a", "blocked", "b"]
    assert harness.submit("a")
    assert harness.take("bob") == "blocked"
    harness.engine.call(SetTrack("p", "T", 2))
    assert harness.take("bob") == "c"
    assert harness.on_track("T") == {"ann": 1, "bob": 1}


def test_a_task_that_changes_its_track_takes_its_agent_along(harness: PlanHarness) -> None:
    """TID-12: a changed plan leaves nobody counted where he no longer works."""
    harness.add("a", track="T")
    harness.add("t", track="T")
    assert harness.take() == "a"
    harness.add("a", track="U")
    assert (harness.on_track("T"), harness.on_track("U")) == ({}, {"ann": 1})
    assert harness.take("bob") == "t"
    assert harness.submit("a")
    assert harness.on_track("U") == {}


# Tries.


def test_a_failure_pauses_longer_each_time_and_then_needs_a_person(harness: PlanHarness) -> None:
    """REC: 5 s, 20 s, then errored where two retries are the most; what depends on it is blocked.

    CLM-4, CLM-6, CFL-34.
    """
    harness.add("a", retries_max=2)
    harness.add("b", "a")
    for generation, pause_ms in ((1, RETRY_MS), (2, 4 * RETRY_MS)):
        assert harness.take() == "a"
        harness.fail("a", generation=generation)
        harness.now += pause_ms - 1
        assert harness.take() == "blocked"
        harness.now += 1
    assert pause_ms < RETRY_MS_MAX
    assert harness.take() == "a"
    harness.fail("a", generation=3)
    assert harness.states("a", "b") == ["errored", "blocked"]
    harness.engine.call(RetryTask("local", "p", "a"))
    assert harness.take("bob") == "a"
    harness.fail("a", "bob", generation=4)
    assert harness.states("a") == ["pending"]


def test_what_is_given_back_is_no_failure(harness: PlanHarness) -> None:
    """Released, it is ready at once, and no try is counted."""
    harness.add("a", retries_max=0)
    assert harness.take() == "a"
    harness.release("a")
    assert harness.take("bob") == "a"


def test_a_lease_that_ran_out_counts_as_a_try(harness: PlanHarness) -> None:
    """REC: a lost worker's task is ready at once, but not for ever."""
    harness.add("a", retries_max=1)
    for _ in range(2):
        assert harness.take() == "a"
        harness.pass_time(LEASE_MS)
    assert harness.states("a") == ["errored"]


def test_a_claim_by_name_respects_what_became_of_the_dependencies(harness: PlanHarness) -> None:
    """Issue 4: a lease that ran out unnoticed opens no way around a dependency that was reset."""
    harness.add_all({"a": (), "b": ("a",)})
    assert harness.take() == "a"
    assert harness.submit("a")
    harness.pass_time()
    assert harness.take() == "b"
    harness.reset("a")
    harness.now += LEASE_MS  # and no sweep
    harness.engine._sweep_at = harness.now + 1
    reply = harness.engine.call(ClaimTask("local", "p", "b", "bob", "bob", LEASE_MS))
    assert (reply.success, reply.reason) == (False, ClaimReason.DENIED_NOT_READY)


def test_a_skip_ends_a_claim_that_ran_out_unnoticed(harness: PlanHarness) -> None:
    """Issue 4: its track and its locks are free, and its holder is told off."""
    harness.add("a", track="T", files=("file:a.py",))
    harness.add("b", track="T", files=("file:a.py",))
    assert harness.take() == "a"
    with pytest.raises(Refused):
        harness.engine.call(SkipTask("local", "p", "a"))
    harness.now += LEASE_MS
    harness.engine._sweep_at = harness.now + 1
    harness.engine.call(SkipTask("local", "p", "a"))
    assert harness.on_track("T") == {}
    assert harness.take("bob") == "b"
