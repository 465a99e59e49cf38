"""The real Claude Code, Codex and Gemini CLI obey hooks, which coord depends on."""

from pathlib import Path

import pytest

from tests.support.agents import stand_in_hook
from tests.support.agents.drive import TOOLS, Outcome, running_agent
from tests.support.agents.recordings import recorded, shape
from tests.support.agents.script import Edit, Pause, Read, Shell
from tests.support.agents.sessions import HELD, WORK, Place, make_place
from tests.support.servers.server import poll_until

HOOK_S = 10
EDIT_TOOLS = {"Write", "apply_patch", "write_file"}
BLOCKING_FAILURES = {
    "claude": {"exit-2.txt", "exit-2-in-silence.txt"},
    "codex": {"exit-2.txt"},
    "gemini": {"exit-2.txt", "exit-3.txt"},
}
"""Any other failure of a hook lets the edit pass."""
WHOLE, PART = "new.txt", "part.txt"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_hook_sees_everything_and_its_no_is_final(tool: str, place: Place) -> None:
    """INT-9, INT-10: a hook runs before and after each tool, at start and end; its refusal is final."""
    outcome = place.run(tool, WORK)
    assert outcome.exit_code == 0, outcome.errors
    check_files(place)
    assert {name for name in stand_in_hook.FAILURES if place.read(name) is None} == BLOCKING_FAILURES[tool]
    check_model(outcome)
    poll_until(lambda: "SessionEnd" in place.payloads(), HOOK_S, "the end of the session is not told")
    check_payloads(tool, place)
    check_sub_agent(tool, place)


def check_files(place: Place) -> None:
    """All edits happened except the denied one, and the agent continued when asked."""
    landed = {"new.txt": "new\n", "old.txt": "two\n", "by-shell.txt": "shell\n", "part.txt": "part\n"}
    assert {name: place.read(name) for name in landed} == landed
    assert place.read(HELD) is None
    assert place.read("more.txt") == "more\n"


def check_model(outcome: Outcome) -> None:
    """The model reads the hook's texts: at the start, for a refusal, after a tool, and at a stop."""
    told, results = outcome.model.was_told(), outcome.model.results()
    assert stand_in_hook.GREETING in told
    assert [stand_in_hook.REASON in result for result in results[:2]] == [False, True]
    assert told.count(stand_in_hook.CONTEXT) >= 3
    assert stand_in_hook.REMINDER in told


def check_payloads(tool: str, place: Place) -> None:
    """The files in tests/support/agents/payloads have the fields that hooks get."""
    seen, known = place.payloads(), recorded(tool)
    assert "SessionStart-startup" in seen
    now = {name: shape(event) for name, event in seen.items()}
    assert now == {name: shape(known.get(name)) for name in seen}, (
        "run: python -m tests.support.agents.record"
    )


def check_sub_agent(tool: str, place: Place) -> None:
    """A sub-agent has the session id; Claude and Codex add an agent id, Gemini does not."""
    edits = [event for event in place.events() if event.get("tool_name") in EDIT_TOOLS]
    by_file = {name: event for event in edits for name in (WHOLE, PART) if name in str(event["tool_input"])}
    part, whole = by_file[PART], by_file[WHOLE]
    assert part["session_id"] == whole["session_id"]
    assert "agent_id" not in whole
    assert ("agent_id" in part) == (tool != "gemini")


def test_claude_blocks_where_the_hook_program_is_missing_if_told_so(place: Place) -> None:
    """With `onFailure: block` a hook that cannot run refuses the call."""
    hooks = stand_in_hook.hooks_for("claude", "no-such-program", ("PreToolUse",), onFailure="block")
    outcome = place.run("claude", (Edit("new.txt", "new\n"),), hooks=hooks)
    assert place.read("new.txt") is None
    assert "no-such-program" in outcome.model.results()[0]


def test_codex_skips_a_hook_that_nobody_trusts(place: Place) -> None:
    """Codex skips an untrusted hook; with its hash in the configuration the same hook denies."""
    steal = (Edit(HELD, "stolen\n"),)
    place.run("codex", steal, trust="none")
    assert place.read(HELD) == "stolen\n"
    assert place.events() == []
    (place.repository / HELD).unlink()
    place.run("codex", steal, trust="recorded")
    assert place.read(HELD) is None


def test_a_killed_agent_ends_where_it_stood(place: Place) -> None:
    """The test decides when the model continues; a killed agent sends no SessionEnd."""
    pause = Pause()
    hooks = stand_in_hook.hooks_for("codex", place.hook_command("codex"), ("PreToolUse", "SessionEnd"))
    script = (Shell("echo a > a"), pause, Shell("echo b > b"))
    with running_agent("codex", script, place.repository, place.home, hooks=hooks) as agent:
        assert pause.reached.wait(60)
        assert place.read("a") == "a\n"
        agent.kill()
        pause.go.set()
    assert place.read("b") is None
    assert [event["hook_event_name"] for event in place.events()] == ["PreToolUse"]


def test_two_agents_meet_in_a_known_order(place: Place) -> None:
    """Without coord the later agent overwrites the file of the other."""
    mine, yours = Pause(), Pause()
    first = (Edit("file.txt", "mine\n"), mine, Read("file.txt"))
    second = (yours, Read("file.txt"), Edit("file.txt", "yours\n"))
    with (
        running_agent("codex", first, place.repository, place.home / "first") as one,
        running_agent("claude", second, place.repository, place.home / "second") as other,
    ):
        assert mine.reached.wait(60)
        yours.go.set()
        assert "mine" in other.wait().model.results()[0]
        mine.go.set()
        assert "yours" in one.wait().model.results()[1]
