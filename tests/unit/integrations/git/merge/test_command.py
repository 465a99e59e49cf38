"""`coord merge` as it is called: worktrees, commits and merges by the commands alone."""

from pathlib import Path

import pytest

from tests.support.cli import Coord
from tests.support.git_folders import git
from tests.unit.integrations.git.conftest import coord, repository, shop

__all__ = ["coord", "repository", "shop"]


def work(shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """Let an agent change `src/app.py` in a worktree of its own."""
    monkeypatch.chdir(shop)
    place = Path(coord(f"{name} worktree add").answer["path"])
    monkeypatch.chdir(place)
    assert coord(f"{name} lock src/app.py").code == 0
    (place / "src/app.py").write_text(text)
    assert coord(f"{name} commit -m change").code == 0
    assert coord(f"{name} unlock src/app.py").code == 0


def test_two_agents_merge_and_the_second_conflicts(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT-8, GIT-9, GIT-4: the first is merged; the second is told the file and the party, exit 1."""
    git(shop, "branch", "-M", "main")
    work(shop, coord, monkeypatch, "ann", "ann\n")
    work(shop, coord, monkeypatch, "bob", "bob\n")
    said = coord("ann merge agent/ann --check", "grep -q ann src/app.py")
    assert (said.code, said.answer["branches"][0]["status"]) == (0, "merged")
    assert "Merged ✓ agent/ann into main" in said.line
    assert (shop / "src/app.py").read_text() == "ann\n"
    refused = coord("bob merge agent/bob")
    assert (refused.code, refused.answer["error"]["code"]) == (1, "conflict")
    assert refused.answer["branches"][0]["files"] == ["src/app.py"]
    assert "both sides changed src/app.py" in refused.line
    assert (shop / "src/app.py").read_text() == "ann\n"
    assert coord("ann merge agent/ann").line == "Nothing to merge into main"


def test_what_cannot_be_understood_changes_nothing(shop: Path, coord: Coord) -> None:
    """Bad input gets an exit code and the next step: no branch main, an unknown one, a check half quoted."""
    git(shop, "branch", "-M", "trunk")
    assert coord("ann merge trunk").code == 2
    assert coord("ann merge other --into trunk").code == 4
    assert coord("ann merge trunk --into trunk --check", "'grep").code == 2
    assert coord("ann merge trunk --into trunk").answer["branches"][0]["status"] == "nothing_new"
