"""A repository of its own for each test, and `coord` to be called in it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coord.transports.cli.main import main
from tests.support.git_folders import empty_repository

PROGRAM = (sys.executable, "-m", "coord.transports.cli.main")


class Said(NamedTuple):
    """What a call of `coord` ended with, answered, and told people."""

    code: int
    answer: dict[str, Any]
    line: str


Coord = Callable[..., Said]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new git repository as current directory; nobody's settings reach into it."""
    for name in list(os.environ):
        if name.startswith(("COORD_", "CLAUDE", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COORD_HUB", "off")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / "shop"
    empty_repository(place)
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def coord(repository: Path, capfd: pytest.CaptureFixture[str]) -> Coord:
    """Return a function that runs one command line in this process: `coord("ann lock a.py")`.

    The first word is the session, which is also the agent's name.
    """

    def run(call: str, *more: str) -> Said:
        session, *words = call.split()
        code = main(["--session", f"s-{session}", "--agent", session, *words, *more])
        out, err = capfd.readouterr()
        return Said(code, json.loads(out) if out else {}, err.rstrip("\n"))

    return run


def started(session: str, *words: str, **options: Any) -> subprocess.Popen[str]:
    """Start `coord` as a process of its own."""
    return subprocess.Popen(
        [*PROGRAM, "--session", f"s-{session}", "--agent", session, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
