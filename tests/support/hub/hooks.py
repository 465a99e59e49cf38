"""Hooks as an agent's tool runs them, answered by the hook itself or through a hub."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from coord.integrations.hooks import main as hook_main

PROGRAM = [sys.executable, "-I", "-S", hook_main.__file__]
ONLY_THROUGH_HUB = [
    sys.executable,
    "-c",
    (
        "import sys\n"
        "from coord.integrations.hooks import hook\n"
        "def fell_back(*_): raise AssertionError('the hook fell back')\n"
        "hook.Hook._parse_event = fell_back\n"
        "hook.run(sys.argv[1:])"
    ),
]
"""The same program, which fails if the hub does not answer it."""
PATIENCE_S = 60


class Printed(NamedTuple):
    """What a hook printed, and its exit code."""

    code: int
    out: str
    said: str

    @property
    def reason(self) -> str:
        return str(json.loads(self.out)["hookSpecificOutput"]["permissionDecisionReason"])


def run_hook(
    environ: Mapping[str, str],
    payload: Mapping[str, Any] | bytes,
    tool: str = "claude",
    *of: str,
    program: list[str] = PROGRAM,
) -> Printed:
    """Run a hook to its end."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = subprocess.run(
        [*program, tool, *of],
        input=data,
        env=dict(environ),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Printed(done.returncode, done.stdout.decode(), done.stderr.decode())


def answered_hooks(path: str) -> dict[str, int]:
    """Return how many hooks the hub at a socket has answered, and how many it left to them."""
    with socket.socket(socket.AF_UNIX) as hub:
        hub.connect(path)
        hub.sendall(b"GET /v1/hook HTTP/1.1\r\nHost: coord\r\nConnection: close\r\n\r\n")
        with hub.makefile("rb") as answer:
            found: dict[str, int] = json.loads(answer.read().partition(b"\r\n\r\n")[2])
    return found


def edit(repository: Path, session: str, path: str = "new.txt", **more: Any) -> dict[str, Any]:
    """Return the event before an edit."""
    return {
        "session_id": session,
        "cwd": str(repository),
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": str(repository / path), "content": "x"},
        "tool_use_id": f"call-{session}-{path}",
        **more,
    }


def shell(repository: Path, session: str, line: str, **more: Any) -> dict[str, Any]:
    """Return the event before a shell command."""
    call = {"tool_name": "Bash", "tool_input": {"command": line}, "tool_use_id": f"call-{session}-{line}"}
    return {"session_id": session, "cwd": str(repository), "hook_event_name": "PreToolUse", **call, **more}


def masked(printed: Printed, repository: Path) -> Printed:
    """Return an answer without what differs from run to run: the folder, times and ids."""

    def plain(text: str) -> str:
        text = text.replace(str(repository), "REPOSITORY")
        text = re.sub(r"\d\d:\d\d:\d\d UTC", "TIME", text)
        text = re.sub(r"\d+m\d\ds|\b\d+s\b", "SPAN", text)
        return re.sub(r"\b\d{13}-\d+\b", "MESSAGE", text)

    return Printed(printed.code, plain(printed.out), plain(printed.said))
