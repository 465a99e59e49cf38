"""The CREW_UPDATE block, letter for letter, and what is cut when there is too much to say."""

from collections.abc import Sequence

import pytest

from coord.core.brief.commands import AgentContextInfo, Brief, Health
from coord.core.messages.commands import DelegationInfo
from coord.core.sessions.commands import SessionWait
from coord.sdk.brief.activity import RecentEvent
from coord.sdk.brief.crew_update import CHARS_MAX, crew_update

NOON = 1_700_050_000_000 - 1_700_050_000_000 % 86_400_000 + 12 * 3_600_000
"""A day at 12:00:00 UTC."""

LEAD = """\
<!-- CREW_UPDATE
== PROJECT HEALTH ==
✅ 78% complete · 3 active, 2 idle, 1 done · ⚠️ 1 decision pending (3 min)
0 blocked tasks
== YOUR AGENTS ==
- abc12345 — Developer [claude-opus-4.6] — running, task: Implement login endpoint
- def67890 — Code Reviewer [gemini-3-pro-preview] — idle
== RECENT ACTIVITY ==
- [13:45:02] Developer abc12345: Acquired lock on src/auth.ts
- [13:44:58] Architect ghi11111: Decision — use JWT for session tokens
CREW_UPDATE -->"""
SPECIALIST = """\
<!-- CREW_UPDATE
== CURRENT CREW STATUS ==
- Agent abc12345 (Developer) — running, Task: impl-login, Locked: src/auth.ts
- Agent def67890 (Reviewer) — idle, No task
== RECENT ACTIVITY ==
- [13:44:30] QA jkl22222: Completed task write-auth-tests
CREW_UPDATE -->"""


def agent(name: str, role: str = "Developer", status: str = "idle", **fields: object) -> AgentContextInfo:
    given = {"task": "", "parent_id": "", "model": "", "locked_files": [], **fields}
    return AgentContextInfo(name, role.lower(), role, status, **given)  # type: ignore[arg-type]


def at(clock: str, session: str, what: str) -> RecentEvent:
    hours, minutes, seconds = map(int, clock.split(":"))
    ms = NOON + ((hours - 12) * 3600 + minutes * 60 + seconds) * 1000
    return RecentEvent(1, ms, session, "", what)


def brief(crew: Sequence[AgentContextInfo] = (), **fields: object) -> Brief:
    given = {"now_ms": NOON, "session": "me", "project": "p", "lead": False, **fields}
    return Brief(crew=list(crew), **given)  # type: ignore[arg-type]


def test_lead_letter_for_letter() -> None:
    """CTX-4, CTX-5, CTX-6, CTX-7: the example of the founding documents."""
    crew = [
        agent(
            "abc12345-1111-4222-8333-444444444444",
            status="running",
            task="impl-login",
            model="claude-opus-4.6",
            parent_id="me",
        ),
        agent(
            "def67890-1111-4222-8333-444444444444",
            "Code Reviewer",
            model="gemini-3-pro-preview",
            parent_id="me",
        ),
    ]
    health = Health("✅", 78, 3, 2, 1, 1, NOON - 200_000, 0, 0)
    events = [
        at("13:45:02", crew[0].id, "Acquired lock on src/auth.ts"),
        at("13:44:58", "ghi11111-1111-4222-8333-444444444444", "Decision — use JWT for session tokens"),
    ]
    found = brief(
        crew,
        lead=True,
        own=2,
        health=health,
        descriptions={"impl-login": "Implement login endpoint"},
        ended=[agent("ghi11111-1111-4222-8333-444444444444", "Architect", "completed")],
    )
    assert crew_update(found, events) == LEAD


def test_specialist_letter_for_letter() -> None:
    """CTX-13: the example of the founding documents."""
    crew = [
        agent("abc12345", status="running", task="impl-login", locked_files=["src/auth.ts"]),
        agent("def67890", "Reviewer"),
    ]
    found = brief(crew, ended=[agent("jkl22222", "QA", "completed")])
    events = [at("13:44:30", "jkl22222", "Completed task write-auth-tests")]
    assert crew_update(found, events) == SPECIALIST


def test_other_crew_of_a_lead_has_a_section() -> None:
    """CTX-3: own agents and others, told apart."""
    text = crew_update(brief([agent("mine", parent_id="me"), agent("theirs")], lead=True, own=1))
    assert (
        "== YOUR AGENTS ==\n- mine — Developer — idle\n== OTHER CREW ==\n- theirs — Developer — idle" in text
    )


def test_without_plan_and_decisions_the_health_line_is_shorter() -> None:
    text = crew_update(brief(lead=True, health=Health("🔴", None, 1, 0, 0, 0, 0, 1, 2)))
    assert "\n🔴 1 active, 0 idle, 0 done\n1 blocked task, 2 failed\n" in text


def test_hours_and_plural_of_decisions() -> None:
    health = Health("⚠️", 5, 0, 0, 0, 2, NOON - 2 * 3_600_000)
    assert "⚠️ 2 decisions pending (2 h)" in crew_update(brief(lead=True, health=health))


def test_what_blocks_the_session_comes_before_the_crew() -> None:
    wait = SessionWait(("file:src/a.py",), NOON - 120_000, ["abc12345"], 1)
    text = crew_update(brief([agent("abc12345")], waits=[wait], messages=2, emergencies=1))
    assert text.split("\n")[1:5] == [
        "== FOR YOU ==",
        "- 1 emergency message: edits are stopped until `coord ack`",
        "- 2 messages waiting: `coord recv`",
        "- Waiting for src/a.py behind abc12345 (2 min)",
    ]


def test_after_compaction_delegations_and_rules_are_told() -> None:
    """CTX-15: roster, active delegations, coordination rules."""
    delegation = DelegationInfo("d-1", "boss", "me", "", "", "review the login", "", NOON)
    found = brief([agent("boss", "Lead")], delegations=[delegation], locks=["a.py"])
    text = crew_update(found, rules=True)
    assert "- Agent boss (Lead) — idle, No task" in text
    assert "== ACTIVE DELEGATIONS ==\n- d-1 from boss: review the login\n== COORDINATION RULES ==" in text
    assert "- This session holds a.py." in text
    assert "COORDINATION RULES" not in crew_update(found)


def test_a_part_of_the_crew_says_how_many_did_not_change() -> None:
    crew = [agent("one"), agent("two"), agent("three")]
    text = crew_update(brief(crew), only={"two"})
    assert "- Agent two (Developer) — idle, No task\n- 2 more agents: `coord brief`\n" in text
    assert "Agent one" not in text


def crowd(number: int) -> list[AgentContextInfo]:
    busy = [agent(f"busy-{each}", status="running", task=f"t{each}") for each in range(number)]
    idle = [agent(f"idle-{each}") for each in range(number)]
    holding = [agent(f"hold-{each}", status="running", locked_files=["src/a.py"]) for each in range(5)]
    return [*idle, *busy, *holding]


@pytest.mark.parametrize("lead", [True, False])
def test_a_block_is_short_and_whole_whatever_there_is_to_say(*, lead: bool) -> None:
    events = [at("13:00:00", "busy-1", "Acquired lock on " + "x" * 70)] * 50
    health = Health("✅", 78, 3, 2, 1)
    text = crew_update(brief(crowd(200), lead=lead, own=100, health=health), events, rules=True)
    assert len(text) <= CHARS_MAX
    assert text.startswith("<!-- CREW_UPDATE\n")
    assert text.endswith("\nCREW_UPDATE -->")
    assert "more: `coord peers`" in text


def test_idle_agents_are_cut_first_and_holders_last() -> None:
    text = crew_update(brief(crowd(40)))
    assert all(f"hold-{number}" in text for number in range(5))
    assert "idle-" not in text
    assert "busy-0" in text


def test_new_activity_outlives_old_activity_and_idle_agents() -> None:
    events = [at(f"13:00:0{5 - number}", "busy-1", f"Started task t{number}") for number in range(5)]
    text = crew_update(brief(crowd(40)), events)
    assert "Started task t0" in text
    assert "Started task t1" in text
    assert "Started task t4" not in text
