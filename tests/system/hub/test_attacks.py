"""A real hub under attack: strangers take what they can get, and everybody else goes on."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving

IDLE = 2000
FILES = 160


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield home


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * IDLE)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def coord(repository: Path, environ: dict[str, str], *words: str) -> Any:
    command = [sys.executable, "-m", "coord", *words]
    done = subprocess.run(
        command, cwd=repository, env=environ, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    return json.loads(done.stdout)


def connected(hub: RunningHub, count: int, opened: ExitStack, data: bytes = b"") -> list[socket.socket]:
    host, port = hub.url.removeprefix("http://").split(":")
    found = []
    for _ in range(count):
        made = opened.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
        made.sendall(data)
        found.append(made)
    return found


def over_socket(hub: RunningHub, line: bytes) -> bytes:
    """Return the answer to a request of a process of the same user."""
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(PATIENCE_S)
        with suppress(ConnectionError):  # a hub without free files closes what it accepts
            made.connect(hub.socket)
            made.sendall(line + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return made.recv(4096)
        return b""


def status_of(hub: RunningHub, path: str, **headers: str) -> int:
    asked = urllib.request.Request(f"{hub.url}{path}", headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


@pytest.mark.usefixtures("many_files")
def test_many_idle_connections_stop_nobody(repository: Path, environ: dict[str, str]) -> None:
    """Half of them say nothing, half have begun a request."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * IDLE:
        pytest.skip(f"this machine allows {hard} open files")
    with serving(repository, environ) as hub, ExitStack() as opened:
        connected(hub, IDLE // 2, opened)
        connected(hub, IDLE // 2, opened, b"POST /v1/call HTTP/1.1\r\nContent-Le")
        assert coord(repository, {**environ, "COORD_SESSION_ID": "ada"}, "lock", "a.py")["ok"]
        assert status_of(hub, "/healthz") == 200
        assert hub.stop() == 0


@pytest.mark.usefixtures("many_files")
def test_clients_that_come_at_once_are_all_answered(repository: Path, environ: dict[str, str]) -> None:
    """As many wait in line as the kernel allows, also while the hub does not get to run."""
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())
    count = min(most - most // 8, 2 * IDLE - 500)
    with serving(repository, environ) as hub, ExitStack() as opened:
        hub.process.send_signal(signal.SIGSTOP)
        clients = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(count)]
        for client in clients:
            client.setblocking(False)  # a full line would refuse it
            client.connect(hub.socket)
            client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        hub.process.send_signal(signal.SIGCONT)
        for client in clients:
            client.settimeout(PATIENCE_S)
        assert {client.recv(12) for client in clients} == {b"HTTP/1.1 200"}
        assert hub.stop() == 0


def test_a_hub_without_free_files_goes_on(repository: Path, environ: dict[str, str]) -> None:
    """Strangers over TCP use up their share; the socket of the user and the store keep theirs."""
    environ = {**environ, "COORD_SESSION_ID": "ada"}
    with serving(repository, environ, files=FILES) as hub:
        with ExitStack() as opened:
            connected(hub, 2 * FILES, opened)
            assert over_socket(hub, b"GET /healthz").startswith(b"HTTP/1.1 200")
            assert coord(repository, environ, "lock", "a.py")["locks"]
            assert coord(repository, environ, "unlock", "a.py")["ok"]
        while status_of(hub, "/healthz") != 200:  # until the hub has seen that they left
            pass
        assert hub.process.poll() is None
        assert hub.stop() == 0


def test_a_hub_that_cannot_accept_recovers(repository: Path, environ: dict[str, str]) -> None:
    """Its own user opens more connections than the hub may have files; those that wait are served later."""
    with serving(repository, environ, files=60) as hub:
        with ExitStack() as opened:
            for _ in range(150):
                opened.enter_context(socket.socket(socket.AF_UNIX)).connect(hub.socket)
        while not over_socket(hub, b"GET /healthz").startswith(b"HTTP/1.1 200"):
            assert hub.process.poll() is None
        assert hub.stop() == 0


def test_a_hub_writes_no_secret_to_its_log(repository: Path, environ: dict[str, str], tmp_path: Path) -> None:
    with serving(repository, environ) as hub:
        token = coord(repository, environ, "token", "create", "--role", "view")["token"]
        link = coord(repository, environ, "open")["url"]
        wrong = token[:-4] + "zzzz"
        for text in (token, wrong):
            status_of(hub, f"/v1/stream?after=x&token={text}", Authorization=f"Bearer {text}")
            status_of(hub, f"/{text}", Cookie=f"coord_token={text}")
            status_of(hub, f"/login?once={text}")
        with ExitStack() as opened:
            for made in connected(
                hub, 3, opened, f"GET /{token} HTTP/1.1\r\nBad Header {token}\r\n\r\n".encode()
            ):
                assert made.recv(12) == b"HTTP/1.1 400"
        hub.process.terminate()
        _, log = hub.process.communicate(timeout=PATIENCE_S)
    for secret in (token, wrong, link.partition("#")[2]):
        assert secret[-16:] not in log


def test_a_browser_logs_in_once(repository: Path, environ: dict[str, str]) -> None:
    """`coord open` prints a link; what its page sends becomes a cookie, and the second time nothing."""
    with serving(repository, environ) as hub:
        link = coord(repository, environ, "open", "--role", "view")["url"]
        page, _, code = link.partition("#")
        assert page == f"{hub.url}/login"
        asked = urllib.request.Request(
            page,
            json.dumps({"once": code}).encode(),
            {"Content-Type": "application/json", "Origin": hub.url},
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly; SameSite=Strict" in cookie
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(asked, timeout=PATIENCE_S)
        refused.value.close()
        assert refused.value.code == 401
        own = {"Cookie": cookie.partition(";")[0]}
        assert status_of(hub, "/v1/ws", **own) == 426
        assert status_of(hub, "/v1/ws", **own, Origin="http://evil.example") == 403
        (token,) = coord(repository, environ, "token", "list")["tokens"]
        assert (token["label"], token["role"]) == ("browser", "view")
        coord(repository, environ, "token", "revoke", token["id"])
        assert status_of(hub, "/v1/ws", **own) == 401


def test_without_a_hub_there_is_no_link(repository: Path, environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "coord", "open"]
    done = subprocess.run(
        command, cwd=repository, env=environ, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, "coord serve starts one" in done.stderr) == (4, True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run a process as somebody else")
def test_another_user_cannot_use_the_socket(repository: Path, environ: dict[str, str]) -> None:
    program = (
        "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    )
    with serving(repository, environ) as hub:
        os.chmod(environ["XDG_RUNTIME_DIR"], 0o755)
        os.chmod(os.path.dirname(hub.socket), 0o755)
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program, hub.socket],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert "PermissionError" in done.stderr
