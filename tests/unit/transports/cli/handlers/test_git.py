"""`coord gate`: the gate before a shared bare repository."""

import subprocess
from pathlib import Path

import pytest

from tests.support.cli import Coord


def test_gate(coord: Coord, repository: Path) -> None:
    """Issue 5, part 4: one command pins a bare repository to this store and puts pre-receive before it."""
    bare = repository.parent / "far.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    coord("ann lock a.py")
    said = coord("ann gate ../far.git --protect main,release/*")
    assert said.code == 0
    assert said.answer["hook"] == f"{bare}/hooks/pre-receive"
    assert "checked against this repository's locks and claims" in said.line
    stub = (bare / "hooks/pre-receive").read_text()
    assert "COORD_PROTECTED='main release/*'" in stub
    assert (bare / "coord/coord.id").is_file()


def test_gate_before_nothing(coord: Coord, repository: Path) -> None:
    """Bad input: a folder that is no bare repository is refused with the next step."""
    said = coord("ann gate .")
    assert said.code == 2
    assert "git clone --bare" in said.answer["error"]["hint"]


def test_a_gate_is_changed_by_people(coord: Coord, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may put a gate up, but not change what it protects; again without a word keeps that."""
    bare = repository.parent / "far.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    coord("ann lock a.py")
    monkeypatch.setenv("CLAUDECODE", "1")
    assert coord("ann gate ../far.git --protect main,release/*").code == 0
    assert coord("ann gate ../far.git").code == 0
    refused = coord("ann gate ../far.git --protect trunk")
    assert (
        refused.code,
        "only people may change installed hooks, and claude is an agent" in refused.line,
    ) == (1, True), refused
    assert "COORD_PROTECTED='main release/*'" in (bare / "hooks/pre-receive").read_text()
    monkeypatch.delenv("CLAUDECODE")
    assert coord("ann gate ../far.git --protect trunk").code == 0
    assert "COORD_PROTECTED=trunk" in (bare / "hooks/pre-receive").read_text()
