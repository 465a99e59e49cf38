"""`coord mcp`: the same tools over standard input, through the hub of the user and without one."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_folders import made_repository
from tests.support.hub.mcp_clients import MODES, over_stdio
from tests.support.hub.mcp_place import (
    INITIALIZE,
    INITIALIZED,
    MODERN,
    OFF,
    SPOKEN,
    Answer,
    Place,
    called,
    mcp_place,
    owner_of,
    tool,
    tour,
)
from tests.support.hub.process import PATIENCE_S, private_home, serving


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with mcp_place(tmp_path_factory.mktemp("mcp")) as made:
        yield made


@pytest.mark.parametrize("mode", MODES[:2])
def test_the_sdk_uses_everything_over_the_bridge(place: Place, mode: str) -> None:
    assert over_stdio(place.repository, place.environ, mode, tour) == SPOKEN[mode]


def test_the_sdk_uses_everything_without_a_hub(place: Place) -> None:
    """Nothing but Python is needed; and both ways lead to one store."""
    assert over_stdio(place.repository, {**place.environ, **OFF}, MODERN, tour) == MODERN


def bridged(place: Place, *messages: Any, **environ: str) -> tuple[list[Any], str]:
    """Return what `coord mcp` answers to messages, in the order of their ids, and what it imports."""
    lines = "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in messages)
    done = subprocess.run(
        [sys.executable, "-m", "coord", "mcp"],
        cwd=place.repository,
        env={**place.environ, "PYTHONPROFILEIMPORTTIME": "1", **environ},
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(answers, key=lambda answer: answer.get("id", 0)), done.stderr


def test_the_bridge_only_passes_messages_on(place: Place) -> None:
    """With a hub it loads neither the rules nor the store."""
    lock = tool("lock", action="acquire", resources=["bridged.py"], session="eve")
    answers, imported = bridged(place, INITIALIZE, INITIALIZED, lock)
    assert answers[0]["result"]["protocolVersion"] == "2025-03-26"
    assert answers[1]["result"]["structuredContent"]["ok"] is True
    assert len(answers) == 2
    assert "mcp.bridge" in imported
    assert not [name for name in ("mcp.tools", "sqlite3", "coord.sdk.client") if f" {name}" in imported]
    answers, imported = bridged(place, lock, **OFF)
    assert "Lock refreshed" in answers[0]["result"]["content"][0]["text"]
    assert "mcp.direct" in imported


def test_a_bridge_speaks_for_the_session_of_its_agent(place: Place) -> None:
    """The variable of the tool names it; else a session of the process that started the bridge."""
    lock = tool("lock", action="acquire", resources=["mine.py"])
    for way in ({}, OFF):
        answers, _ = bridged(place, lock, COORD_SESSION_ID="zoe", **way)
        assert owner_of(answers[0]) == "zoe"
        answers, _ = bridged(place, tool("lock", action="acquire", resources=[f"own{len(way)}.py"]), **way)
        owner = owner_of(answers[0])
        assert owner.startswith("mcp-")
        assert f"-{os.getpid()}-" in owner


def test_hostile_lines_end_nothing(place: Place) -> None:
    for way in ({}, OFF):
        answers, _ = bridged(place, "{", "[]", "null", "\0\0", "", tool("status"), **way)
        errors = sorted(answer["error"]["code"] for answer in answers[:4])
        assert errors == [-32700, -32700, -32600, -32600]
        assert "result" in answers[4]


def over_socket(place: Place, message: Any, **headers: str) -> Answer:
    """Send a message over the unix socket, as any process of the user may."""
    body = json.dumps(message).encode()
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = [
        "POST /mcp HTTP/1.1",
        "Host: coord",
        "Content-Type: application/json",
        "Connection: close",
        *lines,
    ]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(place.hub.socket)
        connection.sendall("\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body)
        data = b""
        while part := connection.recv(65536):
            data += part
    begin, _, rest = data.partition(b"\r\n\r\n")
    return Answer(int(begin.split()[1]), json.loads(rest), {})


def bridge_header(place: Place, **changes: Any) -> str:
    said = {
        "root": str(place.repository),
        "cwd": str(place.repository),
        "tenant": "local",
        "store_id": place.hub.ready["store"],
        "caller": {"session": "said"},
        **changes,
    }
    return base64.b64encode(json.dumps(said).encode()).decode()


def test_what_a_bridge_says_is_checked(place: Place) -> None:
    """A hub that has another store there leaves the call to the bridge."""
    lock = tool("lock", action="acquire", resources=["said.py"])
    answer = over_socket(place, lock, Coord_Caller=bridge_header(place))
    assert owner_of(answer.body) == "said"
    other = over_socket(place, lock, Coord_Caller=bridge_header(place, store_id="0" * 32))
    assert (other.status, "jsonrpc" in other.body) == (421, False)
    for wrong in ("e30=", "!", bridge_header(place, root="/nowhere"), bridge_header(place, tenant="a b")):
        refused = over_socket(place, lock, Coord_Caller=wrong)
        assert (refused.status in (400, 404), "jsonrpc" in refused.body) == (True, False)
    odd = over_socket(place, lock, Coord_Caller=bridge_header(place), Coord_Command_Id="a/../b")
    assert odd.status == 400


def test_a_bridge_cannot_claim_to_have_a_token(place: Place) -> None:
    """Only a hub that has checked a token says so."""
    lock = tool("lock", action="acquire", resources=["local.py"])
    for token in ("", "t-000000000000"):
        said = bridge_header(place, caller={"session": "local", "token": token})
        assert owner_of(over_socket(place, lock, Coord_Caller=said).body) == "local"


def test_a_plain_process_names_its_session(place: Place) -> None:
    answer = over_socket(place, tool("lock", action="acquire", resources=["sub/../plain.py"], session="pia"))
    assert answer.body["result"]["structuredContent"]["locks"][0]["resource"] == "file:plain.py"
    assert (
        "waiting_for"
        in over_socket(place, tool("task", action="next", session="pia")).body["result"]["structuredContent"]
    )
    nobody = over_socket(place, tool("lock", action="acquire", resources=["plain.py"]))
    assert nobody.body["result"]["isError"]


@contextmanager
def answers_lost(place: Place, folder: Path) -> Iterator[str]:
    """Yield a socket behind which the hub gets each request, and nobody gets the answer."""

    def serve() -> None:
        while True:
            try:
                asking, _ = server.accept()
            except OSError:
                return
            with asking, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hub:
                hub.settimeout(PATIENCE_S)
                hub.connect(place.hub.socket)
                hub.sendall(asking.recv(1 << 20))
                hub.recv(1 << 20)

    path = str(folder / "lost")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path
        server.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE_S)


def test_a_call_whose_answer_is_lost_runs_once(place: Place) -> None:
    """The bridge repeats it with the same command id, without the hub."""
    sent = tool("message", action="send", to="otto", subject="once", session="nora")
    called(place, "lock", action="acquire", resources=["otto.py"], session="otto")
    with (
        tempfile.TemporaryDirectory(prefix="ch-", dir="/tmp") as folder,
        answers_lost(place, Path(folder)) as path,
    ):
        answers, imported = bridged(place, sent, COORD_HUB=path)
    assert answers[0]["result"]["structuredContent"]["ok"] is True
    assert "mcp.direct" in imported
    received = called(place, "message", action="receive", session="otto")["structuredContent"]["messages"]
    assert [each["subject"] for each in received] == ["once"]


@contextmanager
def running_bridge(folder: Path, environ: Mapping[str, str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "coord", "mcp"],
        cwd=folder,
        env={**environ, "COORD_SESSION_ID": "ada"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as bridge:
        try:
            yield bridge
        finally:
            bridge.kill()


def test_a_bridge_goes_on_when_its_hub_is_killed(tmp_path: Path) -> None:
    """The call after the kill runs in the bridge; the lock of the call before it is still there."""
    repository = tmp_path / "shop"
    made_repository(repository)
    with (
        private_home(tmp_path / "private") as environ,
        serving(repository, environ) as hub,
        running_bridge(repository, environ) as bridge,
    ):
        first = asked(bridge, tool("lock", action="acquire", resources=["a.py"]))
        assert first["result"]["structuredContent"]["ok"] is True
        hub.kill()
        second = asked(bridge, tool("lock", action="acquire", resources=["a.py"]))
        assert "Lock refreshed" in second["result"]["content"][0]["text"]
        bridge.communicate(timeout=PATIENCE_S)
        assert bridge.returncode == 0


def test_a_bridge_that_is_ended_prints_nothing_but_answers(place: Place) -> None:
    with running_bridge(place.repository, place.environ) as bridge:
        assert "result" in asked(bridge, INITIALIZE)
        bridge.send_signal(signal.SIGTERM)
        printed, _ = bridge.communicate(timeout=PATIENCE_S)
        assert (printed, bridge.returncode) == ("", 128 + signal.SIGTERM)


def test_a_bridge_starts_anywhere_and_says_what_is_wrong(place: Place, tmp_path: Path) -> None:
    """A client that gets no answer to its first message gives up for good."""
    gone = tmp_path / "gone"
    gone.mkdir()
    with running_bridge(gone, place.environ) as bridge:
        assert "result" in asked(bridge, INITIALIZE)
    script = f"rmdir {gone} && exec {sys.executable} -m coord mcp"
    lines = json.dumps(INITIALIZE) + "\n" + json.dumps(tool("status")) + "\n"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=gone,
        env=place.environ,
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    answers = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda each: each["id"])
    assert "serverInfo" in answers[0]["result"]
    assert "folder was deleted" in answers[1]["result"]["content"][0]["text"]


def test_a_bridge_needs_none_of_the_packages_of_the_hub(place: Place) -> None:
    _, imported = bridged(place, tool("status"), **OFF)
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in imported.splitlines()}
    assert "msgspec" in names
    assert not names & {"uvicorn", "httptools", "websockets", "uvloop", "mcp", "asyncio"}


def asked(bridge: "subprocess.Popen[str]", message: dict[str, Any]) -> dict[str, Any]:
    assert bridge.stdin is not None
    assert bridge.stdout is not None
    bridge.stdin.write(json.dumps(message) + "\n")
    bridge.stdin.flush()
    return dict(json.loads(bridge.stdout.readline()))
