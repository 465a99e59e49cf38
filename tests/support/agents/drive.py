"""Drives a real coding agent without a key: its own home, a model that plays a script, a deadline."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.agents.codex_trust import trust_hooks
from tests.support.agents.model_api import Model, serving
from tests.support.agents.programs import command_of
from tests.support.agents.script import MAIN, Script, play_of
from tests.support.servers.server import end_with_parent, poll_until

TOOLS = ("claude", "codex", "gemini")
DEADLINE_S = 90
LINGER_S = 10
PATIENT = {"COORD_HOOK_DEADLINE": "60"}
"""Many tests run at once: a hook that is slow here would be in time where only agents work."""
PROMPT = f"Do your work. ({MAIN})"
Json = dict[str, Any]
Prepared = tuple[tuple[str, ...], dict[str, str]]
"""A tool's arguments, and what it needs in its environment."""

USER_SETTINGS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
}
CLAUDE_ARGUMENTS = (
    *("-p", "--output-format", "stream-json", "--verbose", "--include-hook-events"),
    *("--permission-mode", "bypassPermissions", "--model", "claude-sonnet-4-5"),
)
SUBCOMMAND = {"codex": ("exec",)}
CODEX_ARGUMENTS = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
BYPASS_TRUST = "--dangerously-bypass-hook-trust"
SANDBOX = (
    *("--sandbox", "workspace-write"),
    # Tests work below /tmp, which would be writable too.
    *("-c", "sandbox_workspace_write.exclude_slash_tmp=true"),
    *("-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"),
)
GEMINI_ARGUMENTS = ("--approval-mode", "yolo", "-m", "gemini-2.5-pro", "-o", "stream-json", "-p")


@dataclass
class Outcome:
    """What came of a run: how the agent ended, what it printed, and what its model was shown."""

    exit_code: int
    printed: str
    errors: str
    model: Model
    seconds: float

    def events(self) -> list[Json]:
        """The agent's own report, one object a line."""
        return [json.loads(line) for line in self.printed.splitlines() if line.startswith("{")]


@dataclass
class RunningAgent:
    """An agent at work."""

    process: subprocess.Popen[bytes]
    model: Model
    folder: Path
    started: float = field(default_factory=time.monotonic)

    def wait(self, deadline_s: float = DEADLINE_S) -> Outcome:
        """Wait for its end; one that takes too long is killed, and the test fails with all it said."""
        try:
            code = self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"no end after {deadline_s} s:\n{self._read('out')}\n{self._read('err')}"
            ) from None
        seconds = time.monotonic() - self.started
        with contextlib.suppress(ProcessLookupError, RuntimeError):
            # A tool need not wait for its last hook.
            poll_until(self._left_nothing_running, LINGER_S, "something still runs")
        return Outcome(code, self._read("out"), self._read("err"), self.model, seconds)

    def kill(self) -> None:
        """SIGKILL to the agent and all of its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _left_nothing_running(self) -> bool:
        os.killpg(self.process.pid, 0)
        return False

    def _read(self, name: str) -> str:
        return (self.folder / name).read_text(errors="replace")


def run_agent(tool: str, script: Script, repository: Path, home: Path, **options: Any) -> Outcome:
    """Run an agent from beginning to end; the options are those of `running_agent`."""
    with running_agent(tool, script, repository, home, **options) as agent:
        return agent.wait()


@contextlib.contextmanager
def running_agent(
    tool: str,
    script: Script,
    repository: Path,
    home: Path,
    hooks: Json | None = None,
    trust: Literal["bypassed", "recorded", "none"] = "bypassed",
    arguments: tuple[str, ...] = (),
    prompt: str = PROMPT,
    environment: dict[str, str] | None = None,
    sandboxed: bool = False,
) -> Iterator[RunningAgent]:
    """Start an agent in a repository, with hooks (in the tool's own form) in its user's settings.

    Without `hooks` they are left as they are, there and in the repository. `trust` is how Codex comes to
    trust its hooks, if at all. `arguments` are added to the tool's own. `sandboxed`: in the one of Codex.
    """
    program = command_of(tool)
    if program is None:
        pytest.skip("the coding agents are not installed (tools/setup agents)")
    model = Model(play_of(tool, script, repository))
    settings = home / USER_SETTINGS[tool]
    settings.parent.mkdir(parents=True, exist_ok=True)
    if hooks is not None:
        settings.write_text(json.dumps({"hooks": hooks}))
    with serving(model) as address:
        own, needs = PREPARE[tool](home, repository, address)
        if sandboxed:
            own = (*(word for word in own if word != CODEX_ARGUMENTS[-1]), *SANDBOX)
        if tool == "codex" and trust == "bypassed":
            own = (*own, BYPASS_TRUST)
        if tool == "codex" and trust == "recorded":
            trust_hooks(program, home, repository)
        plain = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        with (home / "out").open("wb") as out, (home / "err").open("wb") as err:
            process = subprocess.Popen(
                [*program, *SUBCOMMAND.get(tool, ()), *arguments, *own, prompt],
                cwd=repository,
                env=plain | PATIENT | needs | (environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 - it takes no lock and calls the kernel only
            )
        agent = RunningAgent(process, model, home)
        try:
            yield agent
        finally:
            agent.kill()


def _claude(home: Path, repository: Path, address: str) -> Prepared:
    needs = {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "sk-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",  # else it refuses to run unattended as root
    }
    return CLAUDE_ARGUMENTS, needs


def _codex(home: Path, repository: Path, address: str) -> Prepared:
    provider = f'name="script",base_url="{address}/v1",wire_api="responses",supports_websockets=false'
    settings = (
        'model="gpt-5.5"',  # the model decides which tools are offered
        'model_provider="script"',
        f"model_providers.script={{{provider},request_max_retries=0,stream_max_retries=0}}",
        f'projects={{"{repository}"={{trust_level="trusted"}}}}',
        "analytics.enabled=false",
    )
    options = [word for setting in settings for word in ("-c", setting)]
    return (*options, *CODEX_ARGUMENTS), {"CODEX_HOME": str(home / ".codex")}


def _gemini(home: Path, repository: Path, address: str) -> Prepared:
    defaults = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    settings = home / USER_SETTINGS["gemini"]
    existing = json.loads(settings.read_text()) if settings.exists() else {}
    settings.write_text(json.dumps(defaults | existing))
    needs = {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": address,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "NO_BROWSER": "1",
        # It would start itself a second time, with a bigger heap.
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }
    return GEMINI_ARGUMENTS, needs


PREPARE = {"claude": _claude, "codex": _codex, "gemini": _gemini}
