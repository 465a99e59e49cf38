"""Hooks as an agent's tool runs them, answered by the hook itself or through a hub."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from coord.host.runtime.environment import act_for
from coord.integrations.hooks import main as hook_main
from coord.integrations.hooks.events import Answer
from coord.integrations.hooks.handler import HookHandler
from coord.transports.hub.hooks.answers import HookAnswers, HookRun
from coord.transports.hub.hooks.exchange import HookCall, NotHere
from coord.transports.hub.stores import HubStores
from tests.support.hub.in_process import NOWHERE

Value = TypeVar("Value")

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


class HookHub:
    """The part of a hub that answers hooks: it has the stores open, and the handler uses them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="hook-hub", daemon=True)
        self._thread.start()
        self._stores, self._answers = self._in_loop(self._open(environ))

    async def _open(self, environ: Mapping[str, str]) -> tuple[HubStores, HookAnswers]:
        stores = HubStores(environ, NOWHERE)
        return stores, HookAnswers(stores)

    def handle(
        self, new_handler: Callable[..., HookHandler], environ: dict[str, str], show: Callable[[Answer], None]
    ) -> None:
        """Let a handler answer with the stores of the hub; it leaves the store of the user to the hook."""
        by = time.monotonic() + PATIENCE_S
        call = HookCall("", "claude", "", os.getppid(), frozenset(), by, environ, b"{}")
        run = HookRun(self._answers, call, os.getpid(), self.loop.create_future())
        given = {**environ, "COORD_HUB": "off"}
        try:
            with run._open:
                act_for(environ, new_handler(given, show, open_by=by, opener=run._opened).handle)
        except NotHere as error:
            if "its store is not open" not in error.message:
                raise
            new_handler(environ, show).handle()

    def close(self) -> None:
        """Close the stores, and end the thread."""
        self._in_loop(self._stores.close())
        self._answers._threads.shutdown()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()

    def _in_loop(self, work: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)
