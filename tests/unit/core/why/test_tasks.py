"""Why a task is not done yet."""

import re

import pytest

from coord.core.errors import NotFound
from coord.core.identity import Caller
from coord.core.locks.commands import ReleaseLocks
from coord.core.messages.work_mode import Mode, SetWorkMode
from coord.core.plans.commands import AssignTask, SetTrack, SplitTask
from coord.core.routing.commands import EnableAgent
from coord.core.settings import ChangeSettings
from tests.support.why_harness import WhyHarness, remedy, texts

PERSON = Caller("tty-1", user="grace", person=True)


def test_dependencies_are_followed_to_the_claim_and_what_its_session_waits_for() -> None:
    harness = WhyHarness()
    harness.begin("a")
    harness.add("base")
    harness.add("middle", "base")
    harness.add("top", "middle")
    assert harness.take("a") == "base"
    question = harness.ask_person("a", "Delete it?")
    found = harness.why_task("top")
    assert found.answer == "top waits for other tasks"
    assert texts(found) == [
        (0, "it depends on middle, which is waiting"),
        (1, "it depends on base, which is in progress"),
        (2, "a works on base, generation 1"),
        (3, 'a asks a person: "Delete it?"'),
    ]
    assert remedy(found) == ["decide", question, "ANSWER"]
    assert found.reasons[2].until_ms > harness.now


def test_what_two_tasks_wait_for_is_explained_once() -> None:
    harness = WhyHarness()
    harness.begin("a")
    harness.add("base")
    harness.add("left", "base")
    harness.add("right", "base")
    harness.add("top", "left", "right")
    assert harness.take("a") == "base"
    found = [text for _, text in texts(harness.why_task("top"))]
    assert found.count("it depends on base, which is in progress") == 2
    assert found.count("a works on base, generation 1") == 1


def test_a_failed_dependency_is_retried() -> None:
    harness = WhyHarness()
    harness.begin("a")
    harness.add("base")
    harness.add("top", "base")
    harness.take("a")
    harness.fail("base", "a", final=True)
    found = harness.why_task("top")
    assert (1, "base failed") in texts(found)
    assert remedy(found) == ["task", "retry", "base"]


def test_a_ready_task_waits_for_files_that_others_hold() -> None:
    harness = WhyHarness()
    harness.begin("a", "b")
    harness.lock("a", "src", reason="rework")
    harness.add("t", files=("file:src/x.py",), repository="r")
    found = harness.why_task("t")
    assert found.answer == "t is ready, but its files are locked"
    assert re.fullmatch(r'a holds src \(write, fence [1-9]\d*\): "rework"', found.reasons[0].text)
    assert remedy(found)[:2] == ["preempt", "file:src"]
    harness.now += 599_000  # silent, and the lock is still there
    assert remedy(harness.why_task("t"))[:3] == ["steal", "file:src", "--force"]


def test_a_full_track_names_its_agents_and_can_be_widened() -> None:
    harness = WhyHarness()
    harness.begin("a", "b")
    harness.add("one", track="A")
    harness.add("two", track="A")
    assert harness.take("a") == "one"
    found = harness.why_task("two")
    assert found.answer == "two is ready, but its track is full"
    assert texts(found) == [
        (0, "track A is full: a (at most 1)"),
        (1, "a works on one, generation 1"),
    ]
    assert remedy(found) == ["track", "A", "--agents", "2"]
    harness.engine.call(SetTrack("p", "A", 2))
    assert harness.why_task("two").answer == "two is ready: an agent may take it now"


def test_each_agent_is_asked_why_it_does_not_take_a_task() -> None:
    harness = WhyHarness()
    harness.begin("able", capabilities={"internet": 1.0})
    harness.begin("other")
    harness.add("t", needs=("internet",))
    assert texts(harness.why_task("t")) == [(0, "able may take it"), (0, "other: it lacks internet")]
    harness.engine.call(EnableAgent("p", "able", enabled=False, reason="broken"))
    found = harness.why_task("t")
    assert found.answer == "t is ready, but no agent can take it"
    assert texts(found)[0] == (0, "able: disabled: broken")
    assert remedy(found) == ["agent", "enable", "able"]


def test_roles_and_other_work_keep_agents_from_a_task() -> None:
    harness = WhyHarness()
    harness.begin("a", role="tester")
    harness.begin("b", role="coder")
    harness.add("t", role="coder")
    harness.add("u", role="coder")
    assert harness.take("b", roles=("coder",)) == "t"
    found = harness.why_task("u")
    assert texts(found) == [
        (0, "a: the task is for a coder, it is a tester"),
        (0, "b: it works on something else"),
    ]
    assert remedy(found) == ["task", "claim", "u"]


def test_a_project_that_has_all_its_agents_may_get_one_more() -> None:
    harness = WhyHarness()
    harness.engine.call(ChangeSettings({"max_agents": 1}, "p"))
    harness.begin("a")
    harness.add("t")
    harness.add("u")
    harness.take("a")
    found = harness.why_task("u")
    assert (0, "project p has 1 agents and may have 1") in texts(found)
    assert remedy(found) == ["limits", "set", "max_agents=2"]


def test_without_an_agent_somebody_has_to_begin() -> None:
    harness = WhyHarness()
    harness.add("t")
    found = harness.why_task("t")
    assert texts(found) == [(0, "no agent works in project p")]
    assert remedy(found) == ["task", "claim", "t"]


def test_a_task_that_is_kept_for_another_says_so() -> None:
    harness = WhyHarness()
    harness.begin("a")
    harness.add("t")
    harness.engine.call(
        AssignTask(caller=harness.caller("a"), tenant="local", project="p", task="t", agent="a", for_ms=9_000)
    )
    assert texts(harness.why_task("t"))[0] == (0, "it is kept for a")


def test_parts_retries_and_ends() -> None:
    harness = WhyHarness()
    harness.begin("a")
    harness.add("t")
    harness.engine.call(SplitTask("local", "p", "t", 2))
    assert texts(harness.why_task("t"))[0] == (0, "its part t::1, which is ready")
    harness.add("u", priority=9)
    assert harness.take("a") == "u"
    harness.fail("u", "a")
    retried = harness.why_task("u")
    assert (retried.answer, retried.reasons[0].kind) == ("u waits for its next attempt", "retry")
    assert retried.reasons[0].until_ms > harness.now
    harness.add("v", priority=9)
    assert harness.take("a") == "v"
    harness.submit("v", "a")
    done = harness.why_task("v")
    assert (done.answer, done.reasons, done.remedy) == ("v is done", [], None)
    with pytest.raises(NotFound, match="no task nothing"):
        harness.why_task("nothing")


@pytest.mark.parametrize("mode", [Mode.PAUSED, Mode.DRAINING, Mode.STOPPED])
def test_a_ready_task_says_who_holds_all_agents_up(mode: Mode) -> None:
    harness = WhyHarness()
    harness.begin("a")
    harness.add("base")
    harness.engine.call(SetWorkMode(caller=PERSON, mode=mode, reason="the build is red"))
    for found, answer in (
        (harness.why_task("base"), "base is ready, but no agent gets a task"),
        (harness.why("a"), "a gets no task"),
    ):
        assert found.answer == answer
        assert 'all agents: "the build is red"' in texts(found)[0][1] or mode is Mode.DRAINING
        assert "grace" in texts(found)[0][1]
        assert remedy(found) == ["resume"]
    harness.engine.call(SetWorkMode(caller=PERSON, mode=Mode.ON))
    assert harness.why_task("base").answer == "base is ready: an agent may take it now"


def test_a_wait_for_a_free_lock_says_who_has_stopped_all_agents() -> None:
    harness = WhyHarness()
    harness.begin("a", "b")
    harness.lock("a", "x.py")
    harness.lock("b", "x.py", wait_ms=60_000)
    harness.engine.call(SetWorkMode(caller=PERSON, mode=Mode.PAUSED))
    assert remedy(harness.why("b")) == ["preempt", "file:x.py", "--priority", "9", "--reason", "REASON"]
    harness.engine.call(SetWorkMode(caller=PERSON, mode=Mode.STOPPED, reason="a key has leaked"))
    harness.engine.call(ReleaseLocks(harness.caller("a"), "r", ()))
    for found in (harness.why("b"), harness.why_lock("file:x.py")):
        assert any("grace has stopped all agents" in text for _, text in texts(found))
        assert remedy(found) == ["resume"]
