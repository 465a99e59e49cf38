"""The real Claude Code, Codex and Gemini CLI obey hooks: the ground that coord builds on."""

from pathlib import Path

import pytest

from tests.agents import stand_in_hook
from tests.agents.drive import TOOLS, running_agent
from tests.agents.recordings import recorded, shape
from tests.agents.script import Edit, Pause, Shell
from tests.agents.sessions import HELD, Place, make_place, work_of
from tests.servers.postgres import poll_until

BEFORE_TOOL = {"claude": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}
MARKED = "a session was here\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_hook_sees_everything_and_its_no_is_final(tool: str, place: Place) -> None:
    """INT-9, INT-10: a hook is asked before each tool, told after it and at both ends; its no is final."""
    outcome = place.run(tool, work_of(tool))
    assert outcome.exit_code == 0, outcome.errors
    assert place.read("new.txt") == "new\n"
    assert place.read(HELD) is None
    assert place.read("old.txt") == "two\n"
    assert place.read("by-shell.txt") == "shell\n"
    results = outcome.model.results()
    assert [stand_in_hook.REASON in result for result in results[:2]] == [False, True]
    assert stand_in_hook.GREETING in outcome.model.was_told()
    assert outcome.model.was_told().count(stand_in_hook.CONTEXT) >= 3

    poll_until(lambda: "SessionEnd" in place.payloads(), 10, "the end of the session is not told")
    seen, known = place.payloads(), recorded(tool)
    assert "SessionStart-startup" in seen
    assert {name: shape(event) for name, event in seen.items()} == {
        name: shape(known[name]) for name in seen if name in known
    }, "run: .venv/bin/python -m tests.agents.record"
    if tool == "claude":
        check_sub_agent(place)


def check_sub_agent(place: Place) -> None:
    assert place.read("part.txt") == "part\n"
    events = place.events()
    writers = {Path(e["tool_input"]["file_path"]).name: e for e in events if e.get("tool_name") == "Write"}
    assert writers["part.txt"]["session_id"] == writers["new.txt"]["session_id"]
    assert "agent_id" in writers["part.txt"]
    assert "agent_id" not in writers["new.txt"]


def test_claude_blocks_where_the_hook_program_is_missing_if_told_so(place: Place) -> None:
    """`onFailure: block` turns a hook that cannot run into a no."""
    hooks = stand_in_hook.hooks_for("claude", "no-such-program", ("PreToolUse",), onFailure="block")
    outcome = place.run("claude", (Edit("new.txt", "new\n"),), hooks=hooks)
    assert place.read("new.txt") is None
    assert "no-such-program" in outcome.model.results()[0]


def test_codex_skips_a_hook_that_nobody_trusts(place: Place) -> None:
    """An untrusted hook of Codex is not called and the edit lands; a trusted one of the same text denies."""
    place.run("codex", (Edit(HELD, "stolen\n"),), trusted=False)
    assert place.read(HELD) == "stolen\n"
    assert place.events() == []


def test_a_killed_agent_ends_where_it_stood(place: Place) -> None:
    """The test decides when the model goes on; a killed agent says no goodbye."""
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
