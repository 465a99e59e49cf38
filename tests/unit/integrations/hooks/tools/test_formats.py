"""What each tool tells its hooks, as recorded from the real ones, and how it is answered."""

import json
from typing import Any

import pytest

from coord.integrations.hooks.events import ALLOW, Answer, Event, Kind, ToolOutput
from coord.integrations.hooks.tools import claude, codex, gemini
from coord.integrations.hooks.tools.codex_patch import patched_files
from tests.support.agents.recordings import recorded

FORMS: dict[str, Any] = {"claude": claude, "codex": codex, "gemini": gemini}
SESSION = "00000000-0000-4000-8000-000000000001"


def read(tool: str, payload: str) -> Event:
    event: Event = FORMS[tool].parse(recorded(tool)[payload])
    return event


@pytest.mark.parametrize("tool", FORMS)
def test_every_recorded_event_is_understood(tool: str) -> None:
    """INT-9: whatever a real tool has told is parsed, with its session and its place."""
    for name, told in recorded(tool).items():
        event = FORMS[tool].parse(told)
        assert (event.session, event.cwd, event.name) == (
            told["session_id"],
            "/repository",
            told["hook_event_name"],
        )
        assert (event.kind is Kind.OTHER) == name.startswith(
            ("Pre" + "Compact", "PostCompact", "PreCompress", "PostToolBatch")
        )


@pytest.mark.parametrize(
    ("tool", "payload", "writes", "command"),
    [
        ("claude", "PreToolUse-Write", ("/repository/new.txt",), None),
        ("claude", "PreToolUse-Edit", ("/repository/old.txt",), None),
        ("claude", "PreToolUse-Read", (), None),
        ("claude", "PreToolUse-Agent", (), None),
        ("claude", "PreToolUse-Bash", (), "echo shell > by-shell.txt"),
        ("claude", "PostToolUseFailure-Bash", (), "false"),
        ("codex", "PreToolUse-apply_patch", ("new.txt",), None),
        ("codex", "PreToolUse-Bash", (), "cat old.txt"),
        ("codex", "PreToolUse-spawn_agent", (), None),
        ("gemini", "BeforeTool-write_file", ("/repository/new.txt",), None),
        ("gemini", "BeforeTool-replace", ("/repository/old.txt",), None),
        ("gemini", "BeforeTool-read_file", (), None),
        ("gemini", "BeforeTool-run_shell_command", (), "echo shell > by-shell.txt"),
    ],
)
def test_what_a_call_writes(tool: str, payload: str, writes: tuple[str, ...], command: str | None) -> None:
    """INT-5: the files of an edit and the line of a shell command are found in each tool's form."""
    event = read(tool, payload)
    assert (event.writes, event.command) == (writes, command)
    assert event.changes_files == bool(writes or command is not None)


@pytest.mark.parametrize(
    ("tool", "payload", "reads"),
    [
        ("claude", "PostToolUse-Read", ("/repository/old.txt",)),
        ("claude", "PreToolUse-Read", ()),
        ("claude", "PostToolUse-Write", ()),
        ("gemini", "AfterTool-read_file", ("/repository/old.txt",)),
        ("gemini", "BeforeTool-read_file", ()),
    ],
)
def test_what_a_call_read(tool: str, payload: str, reads: tuple[str, ...]) -> None:
    """AUD-5: after the call; Codex reads by shell commands."""
    assert read(tool, payload).reads == reads


@pytest.mark.parametrize("tool", ["claude", "codex"])
def test_a_sub_agent_is_its_own_owner(tool: str) -> None:
    """The owner of an edit is (session, sub-agent)."""
    editor = "Write" if tool == "claude" else "apply_patch"
    event = read(tool, f"PreToolUse-{editor}-subagent")
    assert event.session == SESSION
    assert event.owner == f"{SESSION}.{event.agent}" != SESSION
    assert read(tool, f"PreToolUse-{editor}").owner == SESSION


def test_a_call_of_gemini_is_known_again_after_it() -> None:
    """Gemini CLI numbers no calls: the same input before and after makes the same name."""
    before, after = (read("gemini", f"{when}-write_file") for when in ("BeforeTool", "AfterTool"))
    assert before.call == after.call != read("gemini", "BeforeTool-replace").call != ""


def test_an_edit_in_an_unknown_form_is_checked_by_its_effects() -> None:
    """A tool may rename its fields: then the file is found in another way, or the effects are looked at."""
    patch = "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"
    forms: list[tuple[Any, str, Any, tuple[str, ...]]] = [
        (claude, "Write", {"path": "a.py"}, ("a.py",)),
        (claude, "Edit", {}, ()),
        (gemini, "write_file", {"absolute_path": "/r/a.py"}, ("/r/a.py",)),
        (gemini, "replace", {"file_path": ["a.py"]}, ("a.py",)),
        (codex, "apply_patch", {"input": patch}, ("a.py",)),
        (codex, "apply_patch", {"input": "another format"}, ()),
    ]
    for tool, name, given, writes in forms:
        payload = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": given}
        event = tool.parse(payload)
        assert (event.writes, event.changes_files) == (writes, True), (name, given)
        assert event.opaque or writes


def test_how_long_a_command_may_take() -> None:
    """The tool's own timeout counts; without one the usual."""
    told = recorded("claude")["PreToolUse-Bash"]
    assert claude.parse(told).timeout_s == 600
    told = {**told, "tool_input": {**told["tool_input"], "timeout": 7_200_000}}
    assert claude.parse(told).timeout_s == 7200


def test_tools_of_servers_that_write_are_told_by_their_names() -> None:
    """An MCP server's `write_file` is an edit like any other, its `read_file` is not."""
    told = recorded("claude")["PreToolUse-Write"]
    for name, field, writes in (
        ("mcp__files__write_file", {"path": "/r/a"}, ("/r/a",)),
        ("mcp__files__move_file", {"source": "/r/a", "destination": "/r/b"}, ("/r/a", "/r/b")),
        ("mcp__files__read_file", {"path": "/r/a"}, ()),
        ("mcp__files__edit_many", {"paths": ["/r/a", 7, "file:///r/b"]}, ("/r/a", "/r/b")),
    ):
        assert claude.parse({**told, "tool_name": name, "tool_input": field}).writes == writes


@pytest.mark.parametrize("tool", FORMS)
@pytest.mark.parametrize("wrong", [None, 7, [], {"a": "b"}, "x" * 5000])
def test_fields_of_another_kind_are_taken_for_absent(tool: str, wrong: object) -> None:
    """A field that is no text is none; nothing fails on it."""
    names = {"PreToolUse", "BeforeTool"}
    for told in recorded(tool).values():
        for field in told:
            event = FORMS[tool].parse({**told, field: wrong})
            assert event.tool == tool
            assert field != "hook_event_name" or event.name not in names


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n", ("a",)),
        (
            "*** Begin Patch\n*** Update File: a b.txt\n*** Move to: c/d.txt\n@@\n-x\n+y\n",
            ("a b.txt", "c/d.txt"),
        ),
        ("*** Begin Patch\n*** Delete File: 'q'\n*** Update File: ../up\n", ("'q'", "../up")),
        ("*** Begin Patch\n*** Add File: a\n+*** Add File: no\n*** End Patch", ("a",)),
        ("cat <<'EOF' | apply_patch\n*** Begin Patch\n*** Update File: a\n@@\n*** End Patch\nEOF\n", ("a",)),
        ("apply_patch $'*** Begin Patch\\n*** Update File: a\\n@@\\n*** End Patch'", ("a",)),
        ("*** Begin Patch\r\n*** Update File: a\r\n", ("a",)),
        ("*** Update File: a", ()),
        ("", ()),
    ],
)
def test_the_files_of_a_patch(text: str, files: tuple[str, ...]) -> None:
    """INT-5: what Codex changes by a patch stands in the patch, also inside a command line."""
    found = patched_files(text)
    assert set(files) <= set(found)
    assert "no" not in found
    assert bool(found) == bool(files)


DENIED = {
    "claude": {"permissionDecision": "deny", "permissionDecisionReason": "no"},
    "codex": {"permissionDecision": "deny", "permissionDecisionReason": "no"},
}
BEFORE = {"claude": "PreToolUse-Write", "codex": "PreToolUse-apply_patch", "gemini": "BeforeTool-write_file"}
AFTER = {"claude": "PostToolUse-Write", "codex": "PostToolUse-apply_patch", "gemini": "AfterTool-write_file"}
STOP = {"claude": "Stop", "codex": "Stop", "gemini": "AfterAgent"}


@pytest.mark.parametrize("tool", FORMS)
def test_answers_have_the_form_of_their_tool(tool: str) -> None:
    """A no, a word and a reason to go on, as each tool was seen to obey them."""
    form = FORMS[tool]
    before, after, stop = (read(tool, names[tool]) for names in (BEFORE, AFTER, STOP))
    no = {"decision": "deny", "reason": "no"}
    if tool != "gemini":
        no = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **DENIED[tool]}}  # type: ignore[dict-item]
    assert form.output_of(before, Answer(deny="no")) == ToolOutput(no)
    said = {"hookEventName": after.name, "additionalContext": "word"}
    assert form.output_of(after, Answer(note="word")) == ToolOutput({"hookSpecificOutput": said})
    on = {"decision": "deny" if tool == "gemini" else "block", "reason": "more"}
    assert form.output_of(stop, Answer(keep_going="more")) == ToolOutput(on)
    assert form.output_of(before, ALLOW) == ToolOutput()
    assert json.dumps(form.output_of(before, Answer(deny="no")).out)


def test_changed_settings_are_refused_by_exit_code() -> None:
    """The way that Claude Code was seen to obey at ConfigChange."""
    event = read("claude", "ConfigChange-local_settings")
    assert event.kind is Kind.SETTINGS
    assert claude.output_of(event, Answer(deny="no")) == ToolOutput(None, 2, "no")
