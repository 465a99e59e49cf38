"""`coord top` through a hub: it follows, acts, and goes on when the hub is killed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, private_home, serving
from tests.support.terminals import Terminal


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield {**home, "TERM": "xterm", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


def coord(repository: Path, environ: dict[str, str], session: str, *words: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "coord", *(("--session", session) if session else ()), *words],
        cwd=repository,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    found: dict = json.loads(done.stdout)
    return found


def top(repository: Path, environ: dict[str, str]) -> Terminal:
    words = ("-m", "coord", "--session", "ada", "top")
    return Terminal(*words, env=environ, cwd=str(repository), columns=120, lines=40)


def test_it_follows_acts_and_survives_its_hub(repository: Path, environ: dict[str, str]) -> None:
    """What happens directly in the store shows through the hub, and the other way after a kill."""
    coord(repository, environ, "bob", "lock", "a.py")
    with serving(repository, environ) as hub:
        terminal = top(repository, environ)
        terminal.wait_for("file:a.py")
        coord(repository, environ, "bob", "lock", "b.py")
        terminal.wait_for("file:b.py")
        terminal.type(":locks\rsit is late\r")
        terminal.wait_for("y runs it")
        terminal.type("y")
        terminal.wait_for("Lock acquired")
        hub.kill()
    coord(repository, environ, "bob", "lock", "c.py")
    terminal.wait_for("file:c.py")
    terminal.type("q")
    assert terminal.exit_code() == 0
    locks = coord(repository, environ, "bob", "locks")["locks"]
    assert {lock["resource"]: lock["owner"] for lock in locks} == {
        "file:a.py": "ada",
        "file:b.py": "bob",
        "file:c.py": "bob",
    }


def test_the_dashboard_is_the_same_through_the_hub(repository: Path, environ: dict[str, str]) -> None:
    coord(repository, environ, "bob", "task", "add", "A-001-x", "--description", "Add feature X")
    coord(repository, environ, "bob", "task", "claim", "A-001-x")
    direct = coord(repository, environ, "ada", "dashboard")
    with serving(repository, environ):
        through = coord(repository, environ, "ada", "dashboard")
    assert through["table"] == direct["table"]
    assert [row["Current Task"] for row in through["table"]] == ["Add feature X (A-001-x)"]
    assert through["queued"] == direct["queued"]


def test_a_viewer_over_http_sees_everything_and_changes_nothing(
    repository: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    """The hub refuses, and top says so; when the hub was killed and runs again, top follows it again."""
    coord(repository, environ, "bob", "lock", "a.py")
    token = coord(repository, environ, "", "token", "create", "--role", "view")["token"]
    elsewhere = tmp_path / "elsewhere"
    made_repository(elsewhere)
    with private_home(tmp_path / "other") as home, serving(repository, environ) as hub:
        remote = {**environ, **home, "COORD_URL": hub.url, "COORD_TOKEN": token}
        terminal = top(elsewhere, remote)
        terminal.wait_for("file:a.py")
        terminal.type(":locks\rsit is late\r")
        terminal.wait_for("y runs it")
        terminal.type("y")
        terminal.wait_for("refused: ")
        hub.kill()
        coord(repository, environ, "bob", "lock", "b.py")
        with serving(repository, environ, listen=hub.url.removeprefix("http://")):
            terminal.wait_for("file:b.py")
            terminal.type("q")
            assert terminal.exit_code() == 0
    assert {lock["owner"] for lock in coord(repository, environ, "bob", "locks")["locks"]} == {"bob"}
