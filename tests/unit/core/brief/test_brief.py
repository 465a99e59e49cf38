"""What one session has to know: its crew, its messages, and what blocks it."""

import pytest

from coord.core.messages.commands import AddDelegation, SendMessage
from tests.support.brief_harness import BriefHarness


@pytest.fixture
def crew() -> BriefHarness:
    """A lead with two agents, and a reviewer that somebody else started."""
    harness = BriefHarness()
    harness.join("boss", "project-lead")
    harness.join("dev", "developer", model="claude-opus-4.6", parent="boss")
    harness.join("qa", "code_reviewer", model="gemini-3-pro-preview", parent="dev")
    harness.join("other", "QA")
    return harness


def test_own_agents_come_first_with_those_below_them(crew: BriefHarness) -> None:
    """CTX-3: the agents of an agent of mine are mine, too; nobody sees itself."""
    brief = crew.brief("boss")
    assert [member.id for member in brief.crew] == ["dev", "qa", "other"]
    assert (brief.own, brief.lead) == (2, True)
    assert [member.role_name for member in brief.crew] == ["Developer", "Code Reviewer", "QA"]
    assert crew.brief("other").own == 0


@pytest.mark.parametrize(("name", "lead"), [("boss", True), ("dev", True), ("qa", False), ("other", False)])
def test_a_session_with_agents_or_the_role_is_a_lead(crew: BriefHarness, name: str, *, lead: bool) -> None:
    assert crew.brief(name).lead is lead
    assert crew.brief(name, lead=not lead).lead is not lead


def test_parents_that_form_a_cycle_end_the_search(crew: BriefHarness) -> None:
    """Damaged records must not make a brief run for ever."""
    crew.join("one", parent="two")
    crew.join("two", parent="three")
    assert crew.brief("boss").own == 2


def test_what_blocks_the_session_is_part_of_its_brief(crew: BriefHarness) -> None:
    crew.lock("dev", "file:a.py")
    crew.wait("other", "file:a.py")
    brief = crew.brief("other")
    assert [(wait.resources, wait.behind) for wait in brief.waits] == [(("file:a.py",), ["dev"])]
    assert [member.status for member in crew.brief("boss").crew if member.id == "other"] == ["blocked"]


def test_messages_emergencies_delegations_and_locks_of_the_session(crew: BriefHarness) -> None:
    crew.engine.call(SendMessage(caller=crew.who("boss"), to="qa", kind="emergency", subject="stop"))
    crew.engine.call(AddDelegation(caller=crew.who("boss"), to="qa", what="review the login"))
    crew.lock("qa", "file:b.py", "name:deploy")
    brief = crew.brief("qa")
    assert (brief.messages, brief.emergencies, brief.locks) == (2, 1, ["b.py", "name:deploy"])
    assert [(each.from_session_id, each.what) for each in brief.delegations] == [("boss", "review the login")]
    assert crew.brief("other").delegations == []


def test_ended_agents_are_done_and_their_locks_gone(crew: BriefHarness) -> None:
    """CTX-9: the fleet counts those that completed."""
    crew.lock("other", "file:c.py")
    crew.leave("other")
    brief = crew.brief("boss")
    assert [member.id for member in brief.crew] == ["dev", "qa"]
    assert [(member.id, member.status) for member in brief.ended] == [("other", "completed")]
    assert brief.health is not None
    assert brief.health.done == 1


def test_the_digest_changes_with_facts_and_not_with_time(crew: BriefHarness) -> None:
    """A heartbeat, the time and running instead of idle change nothing; a lock does."""
    before = crew.brief("qa").digest
    crew.pass_time(60_000)
    crew.beat("dev")
    assert crew.brief("qa").digest == before
    crew.lock("dev", "file:a.py")
    locked = crew.brief("qa").digest
    assert locked != before
    crew.release("dev", "file:a.py")
    assert crew.brief("qa").digest == before
    crew.join("new", "developer")
    assert crew.brief("qa").digest not in (before, locked)


def test_the_digest_is_the_same_with_and_without_health(crew: BriefHarness) -> None:
    crew.add("t")
    assert crew.brief("qa", health=False).digest == crew.brief("qa").digest
    assert crew.brief("qa", health=False).health is None


def test_a_caller_without_a_session_sees_the_project(crew: BriefHarness) -> None:
    brief = crew.brief("nobody")
    assert (brief.lead, len(brief.crew), brief.messages) == (True, 4, 0)
