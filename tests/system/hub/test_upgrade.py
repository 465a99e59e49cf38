"""An old client and a new hub, or the reverse: the client uses the store itself, and tells a person why."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, private_home
from tests.support.terminals import Terminal

OTHER = """
import runpy, sys
from coord.sdk.remote import wire
wire.{name} = {value!r}
sys.argv = ["coord", *sys.argv[1:]]
runpy.run_module("coord", run_name="__main__", alter_sys=True)
"""
"""A coord in which one constant has another value; everything that uses it is imported later."""
SAME = ("VERSION", None)
OLD_AND_NEW = [("VERSION", "0.0.9"), ("PROTOCOL", 99)]


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield {**home, "COORD_SESSION_ID": "ada"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def program(change: tuple[str, Any], *words: str) -> list[str]:
    name, value = change
    if value is None:
        return [sys.executable, "-m", "coord", *words]
    return [sys.executable, "-c", OTHER.format(name=name, value=value), *words]


def run(
    repository: Path, environ: Mapping[str, str], command: list[str], payload: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=repository,
        env=dict(environ),
        input=payload,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("newer", ["hub", "client"])
@pytest.mark.parametrize("change", OLD_AND_NEW)
def test_versions_that_differ_do_not_talk(
    repository: Path, environ: dict[str, str], newer: str, change: tuple[str, Any]
) -> None:
    """Nothing fails, nothing is said to a program, and a person reads one line with the next step."""
    hub, client = (change, SAME) if newer == "hub" else (SAME, change)
    serve = program(hub, "serve", "--listen", "-")
    with subprocess.Popen(serve, cwd=repository, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["ok"]
            done = run(repository, environ, program(client, "lock", "a.py"))
            assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
            assert "store itself" not in done.stderr
            terminal = Terminal(*program(client, "locks")[1:], env=environ, cwd=str(repository))
            assert terminal.exit_code() == 0
            shown = " ".join(terminal.shown.split())
            assert (shown.count("uses the store itself"), "a.py" in shown) == (1, True), shown
            event: dict[str, Any] = {
                "session_id": "ada",
                "cwd": str(repository),
                "hook_event_name": "PreToolUse",
            }
            event |= {"tool_name": "Write", "tool_input": {"file_path": str(repository / "b.py")}}
            hook = run(repository, environ, program(client, "hook", "claude"), json.dumps(event))
            assert (hook.returncode, "store itself" in hook.stdout + hook.stderr) == (0, False)
        finally:
            process.terminate()
            assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", b"nonsense\r\n\r\n"]
)
def test_what_is_no_hub_keeps_nobody_from_working(
    repository: Path, environ: dict[str, str], tmp_path: Path, answer: bytes
) -> None:
    """A hung process, a web server or anything else at the socket; empty: it never answers."""
    assert run(repository, environ, program(SAME, "lock", "a.py")).returncode == 0
    with socket.socket(socket.AF_UNIX) as listener:
        path = f"{environ['XDG_RUNTIME_DIR']}/s"
        listener.bind(path)
        listener.listen()
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                kept.append(connection)
                if answer:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = run(repository, {**environ, "COORD_HUB": path}, program(SAME, "locks"))
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_S)
        for each in kept:
            each.close()
    assert (done.returncode, json.loads(done.stdout)["locks"][0]["owner"]) == (0, "ada")
