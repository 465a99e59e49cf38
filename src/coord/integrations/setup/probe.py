"""Run a hook as its tool would, run the git gate, and ask Codex which hooks it trusts."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from coord.integrations.deadline import deadline_s
from coord.integrations.setup.tools import CODEX, FAILURE, Tool

ANSWER_S = 15
EDIT = {"claude": "Write", "codex": "apply_patch", "gemini": "write_file"}
"""The tool of each agent that writes a file."""
Message = Mapping[str, Any]


def probe_hook(tool: Tool, command: str, root: str, environ: Mapping[str, str]) -> str:
    """Send a hook a call that it must refuse; return the problem, or an empty text.

    The call would change the hook settings, which every hook refuses. It acquires no lock and writes nothing.
    """
    target = f"{root}/{tool.shared}"
    tool_input: dict[str, str] = {"file_path": target, "content": ""}
    if tool is CODEX:
        tool_input = {"command": f"*** Begin Patch\n*** Delete File: {target}\n*** End Patch\n"}
    event = {
        "hook_event_name": tool.before,
        "session_id": "coord-doctor",
        "cwd": root,
        "tool_name": EDIT[tool.name],
        "tool_use_id": "coord-doctor",
        "tool_input": tool_input,
    }
    began = time.monotonic()
    code, out, errors = run_bounded(["/bin/sh", "-c", command], root, environ, json.dumps(event).encode())
    took = time.monotonic() - began
    if code is None:
        return f"the hook did not answer within {ANSWER_S} s"
    words = errors.strip().splitlines()
    failure = next((line for line in words if line.startswith(FAILURE)), "")
    if failure:
        return failure.removeprefix("coord: ")
    if (code == 0 and b"deny" in out) or (code == 2 and words):
        return f"the hook takes {took:.1f} s, too long" if took > deadline_s() else ""
    return f"the hook does not refuse a forbidden call (exit {code}{f': {words[-1][:200]}' if words else ''})"


def probe_gate(command: list[str], root: str, environ: Mapping[str, str]) -> str:
    """Run the git gate without input; return the problem, or an empty text."""
    code, _, errors = run_bounded(command, root, environ, b"")
    if code is None:
        return f"the gate did not answer within {ANSWER_S} s"
    words = errors.strip().splitlines()
    return (
        "" if code == 0 and not words else f"the gate fails (exit {code}): {words[0][:200] if words else ''}"
    )


def codex_hooks(program: str, root: str, environ: Mapping[str, str]) -> list[Message] | None:
    """Ask Codex for its hooks in a folder and their trust; None: no answer."""
    questions: list[Message] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "coord", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [root]}},
    ]
    try:
        process = subprocess.Popen(
            [program, "app-server"],
            cwd=root,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    deadline = threading.Timer(ANSWER_S, _kill, [process])
    deadline.start()
    found: list[Message] | None = None
    try:
        with suppress(BrokenPipeError), process:  # it is closed with what a broken Codex did not read
            assert process.stdin is not None, "opened as a pipe"
            assert process.stdout is not None, "opened as a pipe"
            # Codex exits at the end of its input, so the pipe stays open until the answer.
            with suppress(OSError):
                process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in questions))
                process.stdin.flush()
            found = _answer(process.stdout)
            _kill(process)
    finally:
        deadline.cancel()
    return found


def _answer(lines: Any) -> list[Message] | None:
    for line in lines:
        try:
            message = json.loads(line)
            if message.get("id") == 2:
                return [hook for folder in message["result"]["data"] for hook in folder["hooks"]]
        except (ValueError, AttributeError, KeyError, TypeError):
            continue
    return None


def run_bounded(
    command: list[str], root: str, environ: Mapping[str, str], stdin: bytes
) -> tuple[int | None, bytes, str]:
    """Return exit code, standard output and errors of a command; code None: a timeout."""
    process = subprocess.Popen(
        command,
        cwd=root,
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, errors = process.communicate(stdin, timeout=ANSWER_S)
    except subprocess.TimeoutExpired:
        _kill(process)
        process.communicate()
        return None, b"", ""
    return process.returncode, out, errors.decode("utf-8", "replace")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
