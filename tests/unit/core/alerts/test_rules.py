"""The conditions of every rule, at their thresholds, and how each alert ends by itself."""

import pytest

from coord.core import keys
from coord.core.git_log import OVERWRITES_MAX, Overwrite, Overwrites, RecordRestore
from coord.core.identity import Caller
from coord.core.lifecycle.commands import NeedsYou
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.questions.commands import AnswerQuestion, AskQuestion, WithdrawQuestion
from coord.core.questions.schema import QuestionKind
from coord.core.records import decode, encode
from coord.core.tasks.commands import ClaimTask
from coord.core.usage.schema import UsageState
from coord.stores.contract import Commit, Put
from tests.support.alert_harness import MINUTE, AlertHarness


@pytest.fixture
def harness() -> AlertHarness:
    return AlertHarness()


# The context.


@pytest.mark.parametrize(
    ("percent", "severity"),
    [(85, None), (85.5, "warning"), (95, "warning"), (96, "critical"), ("96", None), (True, None)],
)
def test_context_pressure(harness: AlertHarness, percent: object, severity: str | None) -> None:
    """ALR-3: above 85 % a warning, above 95 % critical; what is no number is nothing."""
    harness.start("ann")
    harness.fill("ann", percent)
    harness.look()
    assert [each.severity for each in harness.listed().alerts] == ([severity] if severity else [])


def test_a_fuller_context_is_announced_again_and_an_empty_one_ends_it(harness: AlertHarness) -> None:
    harness.start("ann")
    for percent, open_count in ((90, 1), (97, 1), (83, 1), (20, 0)):
        harness.fill("ann", percent)
        harness.watch(1)
        assert len(harness.open()) == open_count
    raised = harness.events("alert.raised")
    assert [(each["id"], each["severity"]) for each in raised] == [("a1", "warning"), ("a1", "critical")]
    assert harness.outcomes() == [("context_pressure", "true")]


def test_what_a_tool_counted_comes_before_what_a_session_says(harness: AlertHarness) -> None:
    """The usage that a tool reports knows how full a context is."""
    harness.start("ann")
    harness.fill("ann", 10)
    state = UsageState(context_tokens=96_000, context_window=100_000)
    key = keys.usage_state("ann")
    harness.store.commit(Commit({key: 0}, {key: Put(encode(state))}, at=harness.now))
    harness.look()
    assert [(each.rule, each.severity) for each in harness.listed().alerts] == [
        ("context_pressure", "critical")
    ]


# Files that several want.


def test_duplicate_file_edit(harness: AlertHarness) -> None:
    """ALR-4: somebody is denied a file that another one has; a short wait is how locks work."""
    harness.start("ann")
    harness.start("bob")
    harness.lock("ann", "file:a.py", ttl=3_600_000)
    harness.wait("bob", "file:a.py")
    harness.look()
    assert harness.open() == []
    harness.watch(1)
    assert harness.open() == [("duplicate_file_edit", "file:a.py")]
    (alert,) = harness.listed().alerts
    assert (alert.text, alert.agents) == ("a.py is locked by ann; wanted by bob", ["ann", "bob"])


def test_agents_of_one_name_are_told_apart(harness: AlertHarness) -> None:
    """Every session of Claude Code is the agent `claude`."""
    harness.start("ann", agent="claude")
    harness.start("bob", agent="claude")
    harness.lock("ann", "file:a.py")
    harness.lock("bob", "file:a.py")
    harness.look()
    (alert,) = harness.listed().alerts
    assert alert.text == "a.py is locked by claude (session ann); wanted by claude (session bob)"


def test_a_denied_request_counts_at_once_and_a_lock_by_name_never(harness: AlertHarness) -> None:
    harness.lock("ann", "file:a.py", "name:release")
    harness.lock("bob", "file:a.py")
    harness.lock("bob", "name:release")
    harness.look()
    assert harness.open() == [("duplicate_file_edit", "file:a.py")]


def test_a_file_is_left_alone(harness: AlertHarness) -> None:
    """It stays one alert while a denied agent tries again, and ends five minutes after the last try."""
    harness.start("ann")
    harness.start("bob")
    for _ in range(3):
        harness.lock("ann", "file:a.py", ttl=3_600_000)
        harness.pass_time(MINUTE // 2)
        harness.lock("bob", "file:a.py")
        harness.pass_time(-MINUTE // 2)
        harness.watch(3)
    assert [each.id for each in harness.listed().alerts if each.rule == "duplicate_file_edit"] == ["a1"]
    harness.beat("ann")
    harness.beat("bob")
    harness.watch(6)
    assert harness.outcomes() == [("duplicate_file_edit", "true")]


def test_those_who_wanted_a_file_ended(harness: AlertHarness) -> None:
    harness.lock("ann", "file:a.py")
    harness.lock("bob", "file:a.py")
    harness.look()
    harness.leave("bob")
    harness.watch(6)
    assert harness.outcomes() == [("duplicate_file_edit", "false")]


def overwrite(harness: AlertHarness, by: str, *files: str) -> None:
    command = RecordRestore(harness.who(by), files=files, file_count=len(files), holders=("ann",))
    harness.engine.call(command)


def overwritten(harness: AlertHarness) -> dict[str, Overwrite]:
    value = harness.store.load([keys.OVERWRITES])[keys.OVERWRITES].value
    assert value is not None
    return decode(value, Overwrites, keys.OVERWRITES).files


def test_a_file_that_was_overwritten_and_restored_was_edited_twice(harness: AlertHarness) -> None:
    """ALR-4: locks do not stop every command, so this is what two edits of a file look like."""
    harness.start("ann")
    harness.start("bob")
    overwrite(harness, "bob", "a.py", "b.py")
    harness.look()
    assert harness.open() == [("duplicate_file_edit", "file:a.py"), ("duplicate_file_edit", "file:b.py")]
    (alert, _) = harness.listed().alerts
    assert (alert.text, alert.agents) == (
        "a.py of ann was overwritten by bob, and restored",
        ["ann", "bob"],
    )
    harness.leave("bob")
    harness.leave("ann")
    harness.watch(11)
    assert harness.open() == []
    assert harness.outcomes() == [("duplicate_file_edit", "true")] * 2, "it happened, whoever ended since"


def test_overwritten_files_are_few_and_new(harness: AlertHarness) -> None:
    """The record is bounded; a file that is overwritten again stays one alert; 0 switches the rule off."""
    overwrite(harness, "bob", *(f"old{number}" for number in range(OVERWRITES_MAX)))
    harness.set(alert_duplicate_seconds=0)
    harness.look()
    assert harness.open() == []
    harness.set(alert_duplicate_seconds=60)
    harness.pass_time(6 * MINUTE)
    for _ in range(2):
        overwrite(harness, "bob", "a.py")
        harness.watch(1)
    assert harness.open() == [("duplicate_file_edit", "file:a.py")]
    kept = overwritten(harness)
    assert (len(kept), "old0" in kept, "old1" in kept) == (OVERWRITES_MAX, False, True)
    harness.pass_time(31 * MINUTE)
    overwrite(harness, "bob", "c.py")
    assert list(overwritten(harness)) == ["c.py"]


# Idle agents.


def test_idle_agents_ready_tasks(harness: AlertHarness) -> None:
    """ALR-5: only for information, and only after two minutes."""
    harness.start("ann", status="idle")
    harness.engine.call(AddTasks("p", (NewTask(task_id="t1"),)))
    harness.watch(1)
    assert harness.open() == []
    harness.watch(1)
    (alert,) = harness.listed().alerts
    assert (alert.rule, alert.subject, alert.severity) == ("idle_agents_ready_tasks", "p", "info")
    assert harness.engine.call(NeedsYou()).needs == []
    harness.engine.call(ClaimTask("local", "p", "t1", "ann", "ann", 600_000))
    harness.watch(1)
    assert harness.outcomes() == [("idle_agents_ready_tasks", "true")]


def test_idle_agents_without_tasks_or_of_another_project(harness: AlertHarness) -> None:
    harness.start("ann", status="idle")
    harness.engine.call(AddTasks("q", (NewTask(task_id="t1"),)))
    harness.watch(10)
    assert harness.open() == []


def test_idle_agents_that_ended(harness: AlertHarness) -> None:
    harness.start("ann", status="idle")
    harness.engine.call(AddTasks("p", (NewTask(task_id="t1"),)))
    harness.watch(2)
    harness.leave("ann")
    harness.watch(1)
    assert harness.outcomes() == [("idle_agents_ready_tasks", "false")]


# Decisions.


def ask(harness: AlertHarness, kind: QuestionKind = QuestionKind.DECISION) -> None:
    caller = Caller("ann", agent="ann", project="p")
    harness.engine.call(AskQuestion(caller=caller, text="which?", kind=kind, ttl_ms=60 * MINUTE))


def test_stale_decision(harness: AlertHarness) -> None:
    """ALR-6: after ten minutes; the question is the need of a person, not the alert about it."""
    ask(harness)
    harness.watch(9)
    assert harness.open() == []
    harness.watch(1)
    assert harness.open() == [("stale_decision", "q1")]
    assert [need.kind for need in harness.engine.call(NeedsYou()).needs] == ["question"]
    person = Caller("eve@h:1-1", user="eve", person=True)
    harness.engine.call(AnswerQuestion(caller=person, id="q1", answer="a"))
    harness.watch(1)
    assert harness.outcomes() == [("stale_decision", "true")]


def test_a_withdrawn_decision_needed_nobody(harness: AlertHarness) -> None:
    ask(harness)
    harness.watch(10)
    harness.engine.call(WithdrawQuestion(caller=Caller("ann"), id="q1", reason="it expired"))
    harness.watch(1)
    assert harness.outcomes() == [("stale_decision", "false")]


def test_an_expired_decision_needed_somebody(harness: AlertHarness) -> None:
    ask(harness)
    harness.watch(61)
    assert ("stale_decision", "true") in harness.outcomes()


def test_a_tool_that_waits_for_its_user_is_no_decision(harness: AlertHarness) -> None:
    ask(harness, QuestionKind.ATTENTION)
    harness.watch(20)
    assert harness.open() == []
