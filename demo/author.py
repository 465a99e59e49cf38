"""An agent of the last act, as the director controls it: its session, its worktree and its tool calls."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from demo.git_agent import Answer, Order
from demo.plan import PROJECT

ROOT = Path(__file__).resolve().parent.parent
COORD = (sys.executable, "-m", "coord.transports.cli.main")
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "XDG_STATE_HOME")


class Broken(Exception):
    """Something went differently than planned."""


def environment() -> dict[str, str]:
    """Return the environment of a command: without the caller's agent and without its git settings."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "COORD_PROJECT": PROJECT, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class Author:
    """A session that works in a separate worktree."""

    def __init__(self, name: str, folder: Path, hook: str, errors: int) -> None:
        self.name, self.session, self.branch = name, f"{name}-1", f"agent/{name}"
        self.folder = folder
        self._hook, self._calls = hook, 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "demo.git_agent"],
            cwd=ROOT,
            env={**environment(), "COORD_SESSION_ID": self.session},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            process_group=0,  # Ctrl-C reaches only the director, which ends this process
        )

    def enter(self) -> None:
        """Create a worktree, and work there from now on."""
        self.folder = Path(self.coord("worktree", "add", self.name)["path"])

    def run(self, *command: str, folder: Path | None = None, given: str = "") -> Answer:
        """Run a command in the process of this session, and return its answer."""
        order = Order(list(command), str(folder or self.folder), given)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Broken(f"{self.session} is gone") from None
        line = self._process.stdout.readline()
        if not line:
            raise Broken(f"{self.session} broke at {' '.join(command[-3:])}")
        return msgspec.json.decode(line, type=Answer)

    def coord(self, *words: str) -> Any:
        """Run a command of coord, and return its reply; a refused merge also counts as a reply."""
        answer = self.run(*COORD, "--json", *words)
        reply = json.loads(answer.out or "{}")
        if answer.code and "branches" not in reply:
            raise Broken(f"{self.session}: coord {' '.join(words)}: {answer.err.strip()}")
        return reply

    def write(self, path: str, text: str) -> None:
        """Write a file of the worktree; the hook runs before and after."""
        given = {"file_path": str(self.folder / path), "content": text}
        call = self._call("Write", given, self.folder)
        if said := self._tell("PreToolUse", call):
            raise Broken(f"{self.session} may not write {path}: {said}")
        (self.folder / path).write_text(text)
        self._tell("PostToolUse", call)

    def shell(self, line: str, folder: Path) -> str:
        """Run a shell command in a folder, with the hook before and after; return the last hook's text."""
        call = self._call("Bash", {"command": line}, folder)
        if said := self._tell("PreToolUse", call):
            raise Broken(f"{self.session} may not run {line}: {said}")
        self.run("sh", "-c", line, folder=folder)
        return self._tell("PostToolUse", call)

    def _call(self, tool: str, given: Mapping[str, str], folder: Path) -> dict[str, Any]:
        self._calls += 1
        call = f"{self.session}-{self._calls}"
        return {"tool_name": tool, "tool_input": given, "tool_use_id": call, "cwd": str(folder)}

    def _tell(self, event: str, call: Mapping[str, Any]) -> str:
        """Call the hook as Claude Code does, and return its text."""
        told = {"session_id": self.session, "hook_event_name": event, **call}
        answer = self.run("sh", "-c", self._hook, folder=Path(call["cwd"]), given=json.dumps(told))
        if answer.code:
            return answer.err or f"the hook exits with {answer.code}"
        said = json.loads(answer.out or "{}").get("hookSpecificOutput", {})
        return str(said.get("permissionDecisionReason") or said.get("additionalContext") or "")

    def end(self) -> None:
        """Kill the process and its children, and reap it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
