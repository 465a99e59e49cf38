"""The agents of a project: who belongs to it, and what each of them does."""

import msgspec
import pytest

from coord.core.brief.crew import READ_MAX
from coord.core.identity import ProcessState
from coord.core.sessions.identify import HEARTBEAT_QUIET_MS
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


def test_a_person_is_listed_while_it_has_something(crew: BriefHarness) -> None:
    """A terminal in which somebody typed a command is no member of the crew."""
    crew.people.add("ann")
    crew.beat("ann")
    assert "ann" not in {member.id for member in crew.brief("qa").crew}
    crew.lock("ann", "file:docs/plan.md")
    (ann,) = [member for member in crew.brief("qa").crew if member.id == "ann"]
    assert ann.locked_files == ["docs/plan.md"]
    assert crew.brief("ann").lead, "a person sees the project as a lead"


def test_other_projects_of_the_store_are_left_out(crew: BriefHarness) -> None:
    crew.projects["far"] = "elsewhere"
    crew.join("far", "developer")
    assert "far" not in {member.id for member in crew.brief("boss").crew}
    assert [member.id for member in crew.brief("far").crew] == []


def test_an_expired_lock_is_not_shown(crew: BriefHarness) -> None:
    crew.lock("dev", "file:a.py", ttl=1_000)
    crew.pass_time(1_000)
    assert [member.locked_files for member in crew.brief("boss").crew if member.id == "dev"] == [[]]


def test_questions_to_the_store_do_not_grow_with_the_crew(crew: BriefHarness) -> None:
    """A brief for many agents costs as many reads as one for a few."""

    def questions() -> int:
        crew.store.questions = 0
        crew.brief("boss")
        return crew.store.questions

    crew.lock("dev", "file:a.py")
    few = questions()
    for number in range(40):
        crew.join(f"agent-{number}", "developer")
        crew.lock(f"agent-{number}", f"file:src/{number}.py")
    assert questions() == few


def test_many_locks_are_read_agent_by_agent(crew: BriefHarness) -> None:
    """One agent with very many locks does not hide those of others."""
    crew.give("other", [f"file:a/{number}.py" for number in range(READ_MAX)])
    crew.lock("dev", "file:z.py")
    assert [member.locked_files for member in crew.brief("boss").crew if member.id == "dev"] == [["z.py"]]


def test_agents_are_described_in_eight_fields(crew: BriefHarness) -> None:
    """CTX-2, CTX-3: id, role, roleName, status, task, parentId, model, lockedFiles."""
    crew.add("impl-login", description="Implement login endpoint", files=("file:src/auth.ts",))
    crew.claim("dev", "impl-login")
    shown = msgspec.to_builtins(crew.brief("qa").crew)
    assert {member["id"]: member for member in shown}["dev"] == {
        "id": "dev",
        "role": "developer",
        "roleName": "Developer",
        "status": "running",
        "task": "impl-login",
        "parentId": "boss",
        "model": "claude-opus-4.6",
        "lockedFiles": ["src/auth.ts"],
    }
    assert crew.brief("qa").descriptions == {"impl-login": "Implement login endpoint"}


def test_a_silent_agent_whose_process_is_gone_has_crashed(crew: BriefHarness) -> None:
    """CTX-14: before any sweep has noticed it; one that was heard a moment ago is not looked at."""
    crew.pids["dev"] = 7
    crew.join("dev", "developer", parent="boss")
    crew.life[7] = ProcessState.DEAD

    def status() -> str:
        (dev,) = [member for member in crew.brief("qa").crew if member.id == "dev"]
        return dev.status

    assert status() == "idle"
    crew.pass_time(HEARTBEAT_QUIET_MS)
    assert status() == "crashed"
