"""A repository moves, loses or repairs its store under a running hub: all clients go on with the same one."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving
from tests.support.servers.server import poll_until

Coord = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield home


@pytest.fixture
def coord(tmp_path: Path, environ: dict[str, str]) -> Coord:
    """Run a command in a repository, as a session, through the hub or without it."""

    def run(*words: str, session: str = "", root: str = "shop", **more: str) -> tuple[int, dict[str, Any]]:
        named = {"COORD_SESSION_ID": session} if session else {}
        done = subprocess.run(
            [sys.executable, "-m", "coord", *words],
            cwd=tmp_path / root,
            env={**environ, **named, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return done.returncode, json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}

    return run


@pytest.fixture
def hub(tmp_path: Path, environ: dict[str, str], coord: Coord) -> Iterator[RunningHub]:
    """A hub that was started in one of two repositories, and has served both."""
    for name in ("shop", "bank"):
        made_repository(tmp_path / name)
        assert coord("init", root=name)[0] == 0
    with serving(tmp_path / "shop", environ) as hub:
        for name in ("shop", "bank"):
            assert coord("lock", "a.py", session="ada", root=name)[0] == 0
        yield hub


def move(folder: Path, coord: Coord, root: str) -> None:
    code, answer = coord("migrate", "--to-url", f"sqlite://{folder}/moved-{root}.db", root=root)
    assert code == 0, answer


def lose_all(folder: Path, coord: Coord, root: str) -> None:
    shutil.rmtree(folder / root / ".git/coord")
    code, answer = coord("init", "--new-store", root=root)
    assert code == 0, answer


@pytest.mark.parametrize("root", ["shop", "bank"])
@pytest.mark.parametrize(("change", "keeps"), [(move, True), (lose_all, False)])
def test_hub_and_clients_agree_on_the_store(
    hub: RunningHub,
    coord: Coord,
    tmp_path: Path,
    root: str,
    change: Callable[[Path, Coord, str], None],
    keeps: bool,
) -> None:
    """No lock is granted twice, by whichever way somebody asks, and the old store is let go."""
    old = os.path.realpath(tmp_path / root / ".git/coord/store/coord.db")
    change(tmp_path, coord, root)
    code, answer = coord("locks", root=root)
    assert (code, len(answer["locks"])) == (0, 1 if keeps else 0), answer
    assert coord("lock", "b.py", "--no-wait", session="bob", root=root)[0] == 0
    for way in ({}, {"COORD_HUB": "off"}):
        assert coord("lock", "b.py", "--no-wait", session="eve", root=root, **way)[0] == 1
    other = "bank" if root == "shop" else "shop"
    assert len(coord("locks", root=other)[1]["locks"]) == 1, "the other repository is as it was"

    def is_closed() -> bool:
        names = [os.readlink(f"/proc/{hub.process.pid}/fd/{each}") for each in files()]
        return not any(name.startswith(f"{old} (deleted)") or (keeps and name == old) for name in names)

    def files() -> list[str]:
        return [each for each in os.listdir(f"/proc/{hub.process.pid}/fd") if int(each) > 2]

    def is_closed_at_last() -> bool:
        try:
            return is_closed()
        except FileNotFoundError:  # one was closed between two looks
            return False

    poll_until(is_closed_at_last, PATIENCE_S, "the old store is still open")


@pytest.mark.parametrize("change", [move, lose_all])
def test_a_token_does_not_reach_a_store_that_was_left(
    hub: RunningHub, coord: Coord, tmp_path: Path, change: Callable[[Path, Coord, str], None]
) -> None:
    """A token names its store: it goes with a migration, and grants no lock in a store that is lost."""
    code, made = coord("token", "create", "--role", "operate")
    assert code == 0
    remote = {"COORD_TOKEN": made["token"], "COORD_HUB": "off"}
    ask = ("--url", hub.url, "lock", "name:r", "--no-wait")
    (tmp_path / "elsewhere").mkdir()
    assert coord(*ask, session="bob", root="elsewhere", **remote)[0] == 0
    change(tmp_path, coord, "shop")
    if change is move:
        locks = coord("--url", hub.url, "locks", root="elsewhere", **remote)[1]["locks"]
        assert "bob" in [each["owner"] for each in locks]
        assert coord("token", "revoke", made["id"])[0] == 0
    code, answer = coord(*ask, session="bob", root="elsewhere", **remote)
    assert (code != 0, "not valid here" in str(answer)) == (True, True), answer
    remote["COORD_TOKEN"] = coord("token", "create", "--role", "operate")[1]["token"]
    code, answer = coord(*ask, session="eve", root="elsewhere", **remote)
    assert code == (1 if change is move else 0), "a new token reaches what the repository has now"
