"""Commands that need git, where git's own files are read-only, as in a sandbox."""

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


@pytest.mark.parametrize(
    "words",
    [
        *("worktree add new", "worktree enter old", "worktree clean old", "merge side"),
        *("salvage keep", "salvage restore s-ann/1"),
    ],
)
def test_every_command_that_needs_git_says_what_to_do(shop: Path, coord: Coord, words: str) -> None:
    """Neither git's own error nor a half-done change, although the store can be written."""
    coord("ann worktree add old")
    git(shop, "branch", "side")
    store = shop / ".git/coord/store"
    before = git(shop, "for-each-ref") + git(shop, "worktree", "list", "--porcelain")
    done = run_read_only(
        shop / ".git", [*PROGRAM, "--session", "s-ann", *words.split()], cwd=shop, writable=store
    )
    assert done.returncode == UNAVAILABLE, done
    command = " ".join(words.split()[: 1 if words.startswith("merge") else 2])
    assert f"coord {command} needs git, and {shop}/.git is read-only here; nothing was changed" in done.stderr
    assert git(shop, "for-each-ref") + git(shop, "worktree", "list", "--porcelain") == before
