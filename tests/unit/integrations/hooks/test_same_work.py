"""After a failed command of git, gh or cargo, the hook names the peers that run the same program (SES-23)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coord.integrations.hooks.tools import claude, codex, gemini
from tests.support.hook_harness import HOOK_WAYS, HookHarness, answered_by

SHELLS = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command"}
FORMS = {"claude": claude, "codex": codex, "gemini": gemini}


class Agents(HookHarness):
    """Two agents in one repository; bob is in the middle of a command."""

    def run(self, session: str, line: str, event: str, tool: str = "claude", **more: Any) -> str:
        names = {"before": ("PreToolUse", "BeforeTool"), "after": ("PostToolUse", "AfterTool")}
        name = names.get(event, (event, event))[tool == "gemini"]
        payload: dict[str, Any] = {"session_id": session, "cwd": str(self.root), "hook_event_name": name}
        payload |= {"tool_name": SHELLS[tool], "tool_input": {"command": line}, "tool_use_id": "c", **more}
        return self.answer(FORMS[tool].parse(payload), payload).note


@pytest.fixture(params=HOOK_WAYS)
def agents(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Agents]:
    with answered_by(request.param, Agents(tmp_path)) as made:
        made.run("bob", "cd src && git fetch origin", "before")
        yield made


FAILED: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": ("PostToolUseFailure", {"error": "exit code 128"}),
    "codex": ("after", {"tool_response": "fatal: Unable to create '.git/index.lock': File exists.\n"}),
    "gemini": ("after", {"tool_response": {"llmContent": "Output: x\nExit Code: 1"}}),
}


@pytest.mark.parametrize("tool", FAILED)
def test_a_failed_command_names_the_peer_at_the_same(agents: Agents, tool: str) -> None:
    """SES-23: before the agent tries again, it knows who runs git now, and the command is quoted."""
    agents.run("ada", "git status", "before", tool)
    event, more = FAILED[tool]
    note = agents.run("ada", "git status", event, tool, **more)
    assert 'claude bob runs "cd src && git fetch origin"' in note
    assert "peers` shows when it is done" in note


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("git status", {"tool_response": {"stdout": "On branch main"}}),
        ("cargo build", {"tool_response": "error: could not compile"}),
        ("cat fatal.txt", {"tool_response": "fatal: x"}),
    ],
)
def test_nothing_is_said_without_a_failure_or_a_peer_at_the_same(
    agents: Agents, line: str, more: dict[str, Any]
) -> None:
    """SES-23: a success, another program, and a file that mentions an error are no reason to speak."""
    agents.run("ada", line, "before", "codex")
    assert "bob" not in agents.run("ada", line, "after", "codex", **more)


def test_a_peer_that_is_done_is_not_named(agents: Agents) -> None:
    """SES-23: only what runs now counts, and never the agent itself."""
    agents.run("bob", "cd src && git fetch origin", "after")
    agents.run("ada", "git push", "before", "codex")
    assert "bob" not in agents.run("ada", "git push", "after", "codex", tool_response="fatal: no remote")
