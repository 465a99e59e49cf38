"""Streams of a real hub: commands of other processes, clients that never read, and the end of the hub."""

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield home


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def coord(repository: Path, environ: dict[str, str], *words: str) -> dict:
    command = [sys.executable, "-m", "coord", *words]
    done = subprocess.run(
        command, cwd=repository, env=environ, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    found: dict = json.loads(done.stdout)
    return found


def opened_stream(hub: RunningHub, token: str) -> socket.socket:
    """Return a connection that has asked for the stream."""
    host, port = hub.url.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    head = f"GET /v1/stream?after=0 HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    made.sendall(head.encode())
    assert made.recv(12) == b"HTTP/1.1 200"
    return made


def test_a_stream_shows_what_other_processes_do(repository: Path, environ: dict[str, str]) -> None:
    """One command goes through the hub and one around it; a hub with open streams ends at once."""
    with serving(repository, environ) as hub:
        token = coord(repository, environ, "token", "create", "--role", "view")["token"]
        asked = urllib.request.Request(
            f"{hub.url}/v1/stream?after=0&types=lock.*", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as stream, opened_stream(hub, token):
            coord(repository, {**environ, "COORD_SESSION_ID": "ada"}, "lock", "a.py")
            coord(repository, {**environ, "COORD_SESSION_ID": "ada", "COORD_HUB": "off"}, "unlock", "a.py")
            lines = iter(lambda: stream.readline().decode().strip(), "event: lock.released")
            assert "event: lock.acquired" in list(lines)
            assert hub.stop() == 0
            assert "event: end" in stream.read().decode()
