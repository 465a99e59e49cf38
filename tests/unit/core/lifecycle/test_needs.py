"""What needs a person: from every source, the most urgent first, the oldest among equals."""

from typing import Any

import pytest

from coord.core.identity import Caller, ProcessState
from coord.core.lifecycle.commands import NeedsYou, Register
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.questions.commands import AskQuestion
from coord.core.questions.schema import QuestionKind
from coord.core.routing.commands import EnableAgent
from coord.core.tasks.commands import ClaimTask, ReleaseClaim
from coord.core.tasks.types import ReleaseReason
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def needs(harness: LockHarness, project: str = "", limit: int = 100) -> Any:
    return harness.engine.call(NeedsYou(project=project, limit=limit))


def named(harness: LockHarness, project: str = "") -> list[tuple[str, str]]:
    return [(need.what, need.id) for need in needs(harness, project).needs]


def ask(harness: LockHarness, text: str, by: str = "ann", project: str = "p", **fields: Any) -> None:
    caller = Caller(by, agent=by, project=project)
    harness.engine.call(AskQuestion(caller=caller, text=text, **fields))


def fail(harness: LockHarness, task: str) -> None:
    harness.engine.call(AddTasks("p", (NewTask(task_id=task, retries_max=0),)))
    harness.engine.call(ClaimTask("local", "p", task, "rem", "s", 60_000))
    harness.engine.call(
        ReleaseClaim("local", "p", task, "s", 1, ReleaseReason.ERROR, "it <b>broke</b>\nNext: x")
    )


def test_all_that_needs_a_person_in_order(harness: LockHarness) -> None:
    """Questions before silent sessions, those before tasks, those before agents; each oldest first."""
    assert needs(harness).needs == []
    harness.engine.call(EnableAgent("p", "otto", enabled=False, reason="broken"))
    fail(harness, "t1")
    harness.lock("mute", "name:release")
    harness.engine.call(Register(caller=Caller("idle")))
    harness.pass_time(700_000)
    ask(harness, "first?")
    harness.pass_time(1_000)
    ask(harness, "make?", "bob", kind=QuestionKind.PERMISSION)
    assert named(harness) == [
        ("ask", "q1"),
        ("permission", "q2"),
        ("hung", "mute"),
        ("task errored", "t1"),
        ("agent disabled", "otto"),
    ]
    found = needs(harness)
    assert found.counts == {"question": 2, "session": 1, "task": 1, "agent": 1}
    assert found.now_ms - found.oldest_question_ms == 1_000
    first, permission, session, task, agent = found.needs
    assert (first.text, first.session_id, first.next) == ("first?", "ann", "coord decide q1 ANSWER")
    assert permission.next == "answer in its terminal"
    assert session.text == "mute has 1 lock"
    assert task.text == r'"it <b>broke</b>\nNext: x"'
    assert (agent.text, agent.next) == ('"disabled: broken"', "coord agent enable otto")
    assert len(needs(harness, limit=2).needs) == 2
    assert needs(harness, limit=2).counts == found.counts


def test_a_project_sees_its_own(harness: LockHarness) -> None:
    """A token of one project gets no texts of another one."""
    ask(harness, "mine?")
    ask(harness, "theirs?", "bob", "other")
    harness.engine.call(EnableAgent("other", "otto", enabled=False, reason=""))
    fail(harness, "t1")
    assert named(harness, "p") == [("ask", "q1"), ("task errored", "t1")]
    assert named(harness, "other") == [("ask", "q2"), ("agent disabled", "otto")]


def test_people_and_the_idle_are_not_needs(harness: LockHarness) -> None:
    """A silent terminal is none, nor is a silent session that holds nothing; a dead one that does is."""
    harness.engine.call(Register(caller=Caller("ida@host:1-1", person=True, terminal=True)))
    harness.pids = {"ann": 7}
    harness.lock("ann", "name:release")
    harness.engine.call(Register(caller=Caller("idle")))
    harness.pass_time(700_000)
    harness.life = {7: ProcessState.DEAD}
    assert named(harness) == [("dead", "ann")]
