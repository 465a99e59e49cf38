"""The rules of dependencies, turns, tracks and tries, one by one."""

import pytest

from coord.core.commands import ClaimTask
from coord.core.errors import CoordError, Refused
from coord.core.plans.commands import RetryTask, SetTrack, SkipTask
from coord.core.tasks.dependencies import LEVELS_MOST, SETTLED_MOST
from coord.core.tasks.planned import RETRY_MS, RETRY_MS_MAX
from coord.core.tasks.types import ClaimReason
from tests.support.plan_harness import LEASE_MS, WorkDesk


@pytest.fixture
def desk() -> WorkDesk:
    return WorkDesk()


# Dependencies.


def test_what_depends_on_something_waits_for_all_of_it(desk: WorkDesk) -> None:
    """TID-14: ready when everything it depends on is done or skipped, and not before."""
    desk.add_all({"a": (), "b": (), "c": ("a", "b")})
    assert desk.take() == "a"
    assert desk.submit("a")
    assert desk.states("c") == ["pending"]
    desk.engine.call(SkipTask("local", "p", "b"))
    assert desk.take() == "c"


def test_a_task_added_after_its_dependencies_is_ready(desk: WorkDesk) -> None:
    """TID-27: whether it was added before or after what it waits for does not matter."""
    desk.add("a")
    assert desk.take() == "a"
    assert desk.submit("a")
    desk.add("b", "a")
    assert desk.take() == "b"


def test_what_failed_blocks_all_below_it_until_it_is_retried(desk: WorkDesk) -> None:
    """CLM-15: blocked all the way down, and ready again when what failed comes back."""
    desk.add_all({"a": (), "b": ("a",), "c": ("b",)})
    assert desk.take() == "a"
    desk.fail("a", final=True)
    assert desk.states("a", "b", "c") == ["failed", "blocked", "blocked"]
    assert desk.take() == "deadlocked"
    desk.engine.call(RetryTask("local", "p", "a"))
    assert desk.states("a", "b", "c") == ["ready", "pending", "pending"]


def test_work_that_runs_is_not_pushed_back(desk: WorkDesk) -> None:
    """Lessons §4: what happens to a dependency changes neither what is worked on nor what is done."""
    desk.add_all({"a": (), "b": ("a",), "c": ("a",)})
    assert desk.take() == "a"
    assert desk.submit("a")
    assert (desk.take(), desk.take("bob")) == ("b", "c")
    assert desk.submit("c", "bob")
    desk.reset("a")
    assert desk.states("a", "b", "c") == ["ready", "in_progress", "done"]
    desk.release("b")
    assert desk.states("b") == ["pending"]


def test_what_is_given_back_behind_a_failure_blocks_what_waits_for_it(desk: WorkDesk) -> None:
    """CLM-15: whatever failed while a task was worked on blocks it, and all behind it, when it comes back."""
    desk.add_all({"a": (), "b": ("a",), "c": ("b",)})
    assert desk.take() == "a"
    assert desk.submit("a")
    assert desk.take() == "b"
    desk.reset("a")
    assert desk.take("bob") == "a"
    desk.fail("a", "bob", 2, final=True)
    assert desk.states("b", "c") == ["in_progress", "pending"]
    desk.pass_time(LEASE_MS)
    assert desk.states("b", "c") == ["blocked", "blocked"]


def test_a_reset_withdraws_everything_that_waits_for_it_at_once(desk: WorkDesk) -> None:
    """Issue 4: none runs before its dependencies, however many depend on one that is opened again."""
    many = SETTLED_MOST + 600
    desk.add_all({"a": ()} | {f"t{number:04d}": ("a",) for number in range(many)})
    assert desk.take() == "a"
    assert desk.submit("a")
    for _ in range(3):
        desk.pass_time()
    assert desk.counted("ready") == many
    desk.reset("a")
    assert desk.counted("ready") == 1
    assert desk.take() == "a"


def test_many_followers_are_settled_in_steps(desk: WorkDesk) -> None:
    """Issue 4: one change does a bounded amount of work, the sweep goes on, and it is not the end."""
    many = SETTLED_MOST + 600
    desk.add_all({"a": ()} | {f"t{number:04d}": ("a",) for number in range(many)})
    assert desk.take() == "a"
    desk.fail("a", final=True)
    assert SETTLED_MOST <= desk.counted("blocked") < many
    assert desk.take("bob") == "blocked"
    desk.pass_time()
    assert desk.counted("blocked") == many
    assert desk.take("bob") == "deadlocked"


def test_a_long_chain_is_settled_in_steps(desk: WorkDesk) -> None:
    """Issue 4: as deep as it is wide; each sweep goes a measure further down."""
    many = 2 * LEVELS_MOST + 5
    names = [f"t{number:03d}" for number in range(many)]
    desk.add_all({name: (names[at - 1],) if at else () for at, name in enumerate(names)})
    assert desk.take() == names[0]
    desk.fail(names[0], final=True)
    seen = [desk.counted("blocked")]
    for _ in range(2):
        desk.pass_time()
        seen.append(desk.counted("blocked"))
    assert seen == [LEVELS_MOST, 2 * LEVELS_MOST, many - 1]


def test_a_circle_is_named_by_its_path(desk: WorkDesk) -> None:
    """TID-14: also when an old task comes to depend on one that depends on it in turn."""
    desk.add_all({"a": (), "b": ("a",), "c": ("b",)})
    with pytest.raises(CoordError, match="a -> c -> b -> a"):
        desk.add("a", "c")
    with pytest.raises(CoordError, match="d -> d"):
        desk.add("d", "d")
    assert desk.states("a") == ["ready"]


def test_a_dependency_that_is_dropped_is_waited_for_no_more(desk: WorkDesk) -> None:
    """Issue 4, Plans: a changed plan is followed, also in the index of who depends on whom."""
    desk.add_all({"a": (), "b": ("a",)})
    desk.add("b")
    assert desk.states("b") == ["ready"]
    assert desk.take() == "a"
    desk.fail("a", final=True)
    assert desk.states("b") == ["ready"]


def test_a_task_that_is_changed_still_knows_that_it_is_followed(desk: WorkDesk) -> None:
    """TID-14, issue 6: what waits for a task is told, though only a task that is followed looks for it."""
    desk.add("a")
    assert desk.take() == "a"
    desk.add("b", "a")
    desk.add("a", description="put better")
    assert desk.submit("a")
    assert desk.take() == "b"


# Turns.


def test_turns_are_by_priority_that_ages_then_by_age(desk: WorkDesk) -> None:
    """CLM-8: Issue 4, Fairness: a step of priority is worth a minute."""
    desk.add("old")
    desk.now += 59_999
    desk.add("urgent", priority=1)
    desk.now += 1
    desk.add("late", priority=1)
    assert [desk.take(name) for name in ("ann", "bob", "cid")] == ["urgent", "late", "old"]


def test_classes_share_one_order(desk: WorkDesk) -> None:
    """Issue 4, Fairness: the turn counts, whatever type or track a task is of."""
    kinds = ("ui", "", "db", "ui", "db", "")
    for number, kind in enumerate(kinds):
        desk.now += 1
        desk.add(f"t{number}", type=kind)
    assert [desk.take() for _ in kinds] == [f"t{number}" for number in range(len(kinds))]


def test_a_batch_gives_each_task_once(desk: WorkDesk) -> None:
    """Issue 4, Proof: commands of one commit see what those before them took, and what they made ready."""
    names = [f"t{number:03d}" for number in range(70)]
    desk.add_all(dict.fromkeys(names, ()))
    replies = desk.engine.call_many([desk.next_command(f"agent-{number}") for number in range(69)])
    assert [reply.task.task_id for reply in replies] == names[:69]
    desk.add("zz", "t000")
    submitted, second, third = desk.engine.call_many(
        [desk.submission("t000", "agent-0"), desk.next_command("ann"), desk.next_command("bob")]
    )
    assert submitted.accepted
    assert (second.task.task_id, third.task.task_id) == ("t069", "zz")


def test_an_agent_gets_what_it_is_able_to_do(desk: WorkDesk) -> None:
    """Types, roles and tracks are choices, needs are conditions; what asks for nothing is for all.

    CLM-3, CLM-8.
    """
    desk.add("a", needs=("gpu",))
    desk.add("b", type="ui")
    desk.add("c", role="reviewer")
    assert desk.take(types=("db",), roles=("tester",)) == "blocked"
    assert desk.take(types=("ui",), roles=("tester",)) == "b"
    assert desk.take("bob", roles=("reviewer",)) == "c"
    assert desk.take("cid", has=("gpu", "x")) == "a"


def test_a_task_far_behind_a_hot_file_is_found(desk: WorkDesk) -> None:
    """Issue 4, Proof: no ready task is missed because the files of many before it are held."""
    desk.add("holder", files=("file:hot.py",))
    assert desk.take() == "holder"
    for number in range(150):
        desk.add(f"hot{number:03d}", files=("file:hot.py",))
    desk.add("zz-free", files=("file:other.py",))
    reply = desk.ask("bob", types=())
    assert reply.task is not None
    assert reply.task.task_id == "zz-free"
    blocked = desk.ask("cid")
    assert blocked.outcome.value == "blocked"
    assert blocked.waiting_for[0] == "hot000: file:hot.py is held by ann"


def test_which_nothing_there_is(desk: WorkDesk) -> None:
    """Done, blocked by what, or deadlocked; and when it is worth looking again."""
    assert desk.take() == "done"
    desk.add_all({"a": (), "b": ("a",)})
    assert desk.take() == "a"
    blocked = desk.ask("bob")
    assert (blocked.outcome.value, blocked.waiting_for) == ("blocked", ["a is worked on by ann"])
    assert blocked.look_ms == desk.now + 5_000
    desk.now += LEASE_MS - 1_000
    assert desk.ask("bob").look_ms == desk.now + 1_000
    desk.fail("a")
    paused = desk.ask("bob")
    assert (paused.outcome.value, paused.waiting_for) == ("blocked", ["a is tried again soon"])
    desk.now += RETRY_MS
    assert desk.take("bob") == "a"
    desk.fail("a", "bob", 2, final=True)
    stuck = desk.ask("bob")
    assert (stuck.outcome.value, stuck.waiting_for) == ("deadlocked", ["a failed"])


# Tracks.


def test_a_track_has_one_agent_unless_said(desk: WorkDesk) -> None:
    """One agent may have several tasks of a track, another none; more where configured.

    TID-12, TID-13, TID-23.
    """
    for name in ("a", "b", "c"):
        desk.add(name, track="T")
    assert [desk.take(), desk.take("bob"), desk.take()] == ["a", "blocked", "b"]
    assert desk.submit("a")
    assert desk.take("bob") == "blocked"
    desk.engine.call(SetTrack("p", "T", 2))
    assert desk.take("bob") == "c"
    assert desk.on_track("T") == {"ann": 1, "bob": 1}


def test_a_task_that_changes_its_track_takes_its_agent_along(desk: WorkDesk) -> None:
    """TID-12: a changed plan leaves nobody counted where he no longer works."""
    desk.add("a", track="T")
    desk.add("t", track="T")
    assert desk.take() == "a"
    desk.add("a", track="U")
    assert (desk.on_track("T"), desk.on_track("U")) == ({}, {"ann": 1})
    assert desk.take("bob") == "t"
    assert desk.submit("a")
    assert desk.on_track("U") == {}


# Tries.


def test_a_failure_pauses_longer_each_time_and_then_needs_a_person(desk: WorkDesk) -> None:
    """REC: 5 s, 20 s, then errored where two retries are the most; what depends on it is blocked.

    CLM-4, CLM-6, CFL-34.
    """
    desk.add("a", retries_max=2)
    desk.add("b", "a")
    for generation, pause_ms in ((1, RETRY_MS), (2, 4 * RETRY_MS)):
        assert desk.take() == "a"
        desk.fail("a", generation=generation)
        desk.now += pause_ms - 1
        assert desk.take() == "blocked"
        desk.now += 1
    assert pause_ms < RETRY_MS_MAX
    assert desk.take() == "a"
    desk.fail("a", generation=3)
    assert desk.states("a", "b") == ["errored", "blocked"]
    desk.engine.call(RetryTask("local", "p", "a"))
    assert desk.take("bob") == "a"
    desk.fail("a", "bob", generation=4)
    assert desk.states("a") == ["pending"]


def test_what_is_given_back_is_no_failure(desk: WorkDesk) -> None:
    """Released, it is ready at once, and no try is counted."""
    desk.add("a", retries_max=0)
    assert desk.take() == "a"
    desk.release("a")
    assert desk.take("bob") == "a"


def test_a_lease_that_ran_out_counts_as_a_try(desk: WorkDesk) -> None:
    """REC: a lost worker's task is ready at once, but not for ever."""
    desk.add("a", retries_max=1)
    for _ in range(2):
        assert desk.take() == "a"
        desk.pass_time(LEASE_MS)
    assert desk.states("a") == ["errored"]


def test_a_claim_by_name_respects_what_became_of_the_dependencies(desk: WorkDesk) -> None:
    """Issue 4: a lease that ran out unnoticed opens no way around a dependency that was reset."""
    desk.add_all({"a": (), "b": ("a",)})
    assert desk.take() == "a"
    assert desk.submit("a")
    desk.pass_time()
    assert desk.take() == "b"
    desk.reset("a")
    desk.now += LEASE_MS  # and no sweep
    desk.engine._sweep_at = desk.now + 1
    reply = desk.engine.call(ClaimTask("local", "p", "b", "bob", "bob", LEASE_MS))
    assert (reply.success, reply.reason) == (False, ClaimReason.DENIED_NOT_READY)


def test_a_skip_ends_a_claim_that_ran_out_unnoticed(desk: WorkDesk) -> None:
    """Issue 4: its track and its locks are free, and its holder is told off."""
    desk.add("a", track="T", files=("file:a.py",))
    desk.add("b", track="T", files=("file:a.py",))
    assert desk.take() == "a"
    with pytest.raises(Refused):
        desk.engine.call(SkipTask("local", "p", "a"))
    desk.now += LEASE_MS
    desk.engine._sweep_at = desk.now + 1
    desk.engine.call(SkipTask("local", "p", "a"))
    assert desk.on_track("T") == {}
    assert desk.take("bob") == "b"
