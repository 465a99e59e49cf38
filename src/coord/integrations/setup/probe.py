"""Asking whether hooks answer: a hook is played as its tool would, and Codex is asked what it trusts."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from coord.integrations.setup.tools import CLAUDE, CODEX, Tool

ANSWER_S = 15
EDIT = {"claude": "Write", "codex": "apply_patch", "gemini": "write_file"}
"""With which of its tools each would write a file."""
Payload = Mapping[str, Any]


def play(tool: Tool, command: str, root: str, environ: Mapping[str, str]) -> str:
    """Play a call that has to be refused whoever holds what; return what is wrong, or nothing.

    It would change the settings of the hooks themselves. No lock is taken for it, and nothing is written.
    """
    target = f"{root}/{tool.shared}"
    given: dict[str, str] = {"file_path": target, "content": ""}
    if tool is CODEX:
        given = {"command": f"*** Begin Patch\n*** Delete File: {target}\n*** End Patch\n"}
    payload = {
        "hook_event_name": tool.before,
        "session_id": "coord-doctor",
        "cwd": root,
        "tool_name": EDIT[tool.name],
        "tool_use_id": "coord-doctor",
        "tool_input": given,
    }
    code, out, said = _run(["/bin/sh", "-c", command], root, environ, json.dumps(payload).encode())
    if code is None:
        return f"its hook did not answer within {ANSWER_S} s"
    if (code == 0 and b"deny" in out) or (code == 2 and said.strip()):
        return ""
    words = said.strip().splitlines()
    return (
        f"its hook lets through what has to be refused (exit {code}{f': {words[-1][:200]}' if words else ''})"
    )


def run_gate(command: list[str], root: str, environ: Mapping[str, str]) -> str:
    """Run the program of git's gates on nothing; return what is wrong, or nothing."""
    code, _, said = _run(command, root, environ, b"")
    if code is None:
        return f"the gate did not answer within {ANSWER_S} s"
    words = said.strip().splitlines()
    return (
        "" if code == 0 and not words else f"the gate fails (exit {code}): {words[0][:200] if words else ''}"
    )


def codex_hooks(program: str, root: str, environ: Mapping[str, str]) -> list[Payload] | None:
    """Ask Codex for its hooks in a folder, each with whether it is trusted; None: it does not say."""
    questions: list[Payload] = [
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
    deadline = threading.Timer(ANSWER_S, _end, [process])
    deadline.start()
    try:
        with process:
            assert process.stdin is not None, "it was asked for"
            assert process.stdout is not None, "it was asked for"
            # Left open until the answer is there: at the end of its input it ends, answered or not.
            with suppress(OSError):
                process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in questions))
                process.stdin.flush()
            found = _answer(process.stdout)
            _end(process)
            return found
    finally:
        deadline.cancel()


def _answer(lines: Any) -> list[Payload] | None:
    for line in lines:
        try:
            payload = json.loads(line)
            if payload.get("id") == 2:
                return [hook for folder in payload["result"]["data"] for hook in folder["hooks"]]
        except (ValueError, AttributeError, KeyError, TypeError):
            continue
    return None


def disabled(tool: Tool, settings: Payload) -> str:
    """Return by which setting a tool does not run its hooks, or nothing."""
    if tool is CLAUDE:
        return next(
            (name for name in ("disableAllHooks", "allowManagedHooksOnly") if settings.get(name) is True), ""
        )
    if tool is CODEX:
        features = settings.get("features")
        return "features.hooks" if isinstance(features, dict) and features.get("hooks") is False else ""
    switches = settings.get("hooksConfig")
    if not isinstance(switches, dict):
        return ""
    if switches.get("enabled") is False:
        return "hooksConfig.enabled"
    named = switches.get("disabled")
    return "hooksConfig.disabled" if isinstance(named, list) and "coord" in named else ""


def _run(
    command: list[str], root: str, environ: Mapping[str, str], stdin: bytes
) -> tuple[int | None, bytes, str]:
    """Run a command; the code is None if it takes too long."""
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
        out, said = process.communicate(stdin, timeout=ANSWER_S)
    except subprocess.TimeoutExpired:
        _end(process)
        process.communicate()
        return None, b"", ""
    return process.returncode, out, said.decode("utf-8", "replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
