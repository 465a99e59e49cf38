"""What holds a session up is followed to the one that could go on."""

import pytest

from coord.core.identity import ProcessState
from coord.core.routing.commands import EnableAgent
from coord.core.why import chain
from coord.core.why.chain import Chain
from coord.core.why.commands import WhySession
from tests.support.rule_harness import T0
from tests.support.why_harness import WhyHarness, remedy, texts

WAIT_MS = 60_000


def test_a_chain_of_waits_ends_at_the_question_that_a_person_has_to_answer() -> None:
    harness = WhyHarness()
    harness.begin("a", "b", "c")
    harness.lock("a", "x.py")
    harness.lock("b", "y.py")
    assert not harness.lock("b", "x.py", wait_ms=WAIT_MS)
    assert not harness.lock("c", "y.py", wait_ms=WAIT_MS)
    question = harness.ask_person("a", "Which port?")
    found = harness.why("c")
    assert texts(found) == [
        (0, "c waits for y.py"),
        (1, "b holds y.py"),
        (2, "b waits for x.py"),
        (3, "a holds x.py"),
        (4, 'a asks a person: "Which port?"'),
    ]
    assert (found.answer, remedy(found)) == ("c is held up", ["decide", question, "ANSWER"])
    assert [reason.subject for reason in found.reasons][:2] == ["file:y.py", "b"]


def test_a_question_of_another_project_is_named_and_not_quoted() -> None:
    """A token of one project reads no question of another one."""
    harness = WhyHarness()
    harness.begin("a")
    harness.ask_person("a", "The password is x?")
    for project, quoted in (("", True), ("p", True), ("other", False)):
        (reason,) = harness.engine.call(WhySession("a", project)).reasons
        assert ("password" in reason.text) is quoted
        assert reason.subject == "q1"


def test_a_live_holder_that_waits_for_nothing_is_asked() -> None:
    harness = WhyHarness()
    harness.begin("a", "b")
    harness.lock("a", "x.py")
    harness.lock("b", "x.py", wait_ms=WAIT_MS)
    assert remedy(harness.why("b"))[:2] == ["preempt", "file:x.py"]
    idle = harness.why("a")
    assert (idle.answer, idle.reasons[0].kind, idle.remedy) == ("a is idle", "free", None)


def test_a_session_with_a_claim_works_on_it() -> None:
    harness = WhyHarness()
    harness.begin("a")
    harness.add("t")
    assert harness.take("a") == "t"
    found = harness.why("a")
    assert found.answer == "a works"
    assert texts(found) == [(0, "a works on t, generation 1")]


def test_silent_sessions_and_disabled_agents_are_named() -> None:
    harness = WhyHarness()
    harness.begin("a", "b")
    harness.engine.call(EnableAgent("p", "b", enabled=False, reason="its key has expired"))
    found = harness.why("b")
    assert (found.answer, found.reasons[0].kind) == ("b gets no task", "agent")
    assert "its key has expired" in found.reasons[0].text
    assert remedy(found) == ["agent", "enable", "b"]
    harness.now += 700_000
    silent = harness.why("a")
    assert texts(silent) == [(0, "a gives no sign of life")]
    assert remedy(silent) == ["register", "--replaces", "a"]


def test_a_dead_session_is_ended() -> None:
    harness = WhyHarness()
    harness.begin("a", process=True)
    harness.lock("a", "x.py")
    harness.life = ProcessState.DEAD
    found = harness.why("a")
    assert texts(found) == [(0, "the process of a is gone")]
    assert remedy(found) == ["dereg", "a"]


def test_an_answer_comes_before_all_others_and_the_nearest_among_equals() -> None:
    """The order of remedies is that of what they cost."""
    found = Chain(None, T0)  # type: ignore[arg-type]
    for rank, depth in (
        (chain.ASK, 0),
        (chain.TAKE, 0),
        (chain.ANSWER, 5),
        (chain.ANSWER, 3),
        (chain.REPEAT, 0),
    ):
        found.offer(rank, depth, f"{rank} {depth}", "x")
    reply = found.reply("")
    assert reply.remedy is not None
    assert reply.remedy.text == f"{chain.ANSWER} 3"


def test_a_long_chain_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "REASONS_MAX", 2)
    found = Chain(None, T0)  # type: ignore[arg-type]
    for number in range(5):
        found.add("task", str(number), 0)
    assert [reason.text for reason in found.reasons] == ["0", "1"]
    assert not found.follow("task", "t", 0)
