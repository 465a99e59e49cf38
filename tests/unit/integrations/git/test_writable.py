"""`coord commit` where git's own files are read-only, as in a sandbox."""

import os
from pathlib import Path

import pytest

from tests.support.cli import PROGRAM, Coord
from tests.support.git_folders import git
from tests.support.read_only import run_read_only

UNAVAILABLE = 69


@pytest.mark.parametrize("where", ["main", "worktree"])
def test_a_commit_says_what_to_do(shop: Path, coord: Coord, where: str) -> None:
    """The cause, the ways out, and nothing is changed: neither the index nor the locks."""
    folder = shop
    if where == "worktree":
        folder = shop.parent / "other"
        git(shop, "worktree", "add", "-q", str(folder))
    coord("ann lock src/app.py new.py")
    (folder / "src/app.py").write_text("second\n")
    (folder / "new.py").write_text("new\n")
    before = git(folder, "status", "--porcelain")
    done = run_read_only(
        shop / ".git",
        [*PROGRAM, "--session", "s-ann", "commit", "-m", "mine"],
        cwd=folder,
        environ=os.environ,
    )
    assert done.returncode == UNAVAILABLE, done
    own = f"{shop}/.git" if where == "main" else f"{shop}/.git/worktrees/other"
    assert f"coord commit needs git, and {own} is read-only here; nothing was changed" in done.stderr
    assert "with the approval of a person" in done.stderr
    assert git(folder, "status", "--porcelain") == before
    assert len(coord("ann locks").answer["locks"]) == 2
