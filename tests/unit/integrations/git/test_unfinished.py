"""Lock files of git: only those that coord itself left are removed. Names of refs never become options."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coord.integrations.git.unfinished import unfinished
from tests.support.cli import Coord, started
from tests.support.git_folders import git

KILL_ALL = "#!/bin/sh\nkill -9 0\n"


def _killed_commit(shop: Path, coord: Coord, hook: str = "pre-commit") -> None:
    """Let a hook of `coord commit` kill all processes of the command."""
    path = shop / f".git/hooks/{hook}"
    path.write_text(KILL_ALL)
    path.chmod(0o755)
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src")
    process = started("ann", "commit", "-m", "x", cwd=shop, start_new_session=True)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    path.unlink()


@pytest.mark.parametrize("hook", ["pre-commit", "reference-transaction", "post-commit"])
def test_own_lock_files_are_removed(shop: Path, coord: Coord, hook: str) -> None:
    """Issue 15, part 2: index.lock, HEAD.lock and the lock of the branch go, if our git left them."""
    _killed_commit(shop, coord, hook)
    assert list((shop / ".git").glob("*.lock")) or hook == "post-commit"
    done = coord("ann commit -m x")
    assert done.code == 0 or "killed after it had made" in done.line, done
    assert git(shop, "log", "--format=%s").split() == ["x", "first"]
    assert git(shop, "status", "--porcelain") == ""
    assert not [*(shop / ".git").glob("*.lock"), *(shop / ".git/refs").rglob("*.lock")]


def test_foreign_lock_file_stays(shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 15, part 2: without a killed commit of coord an index.lock is somebody else's."""
    monkeypatch.setattr("coord.integrations.git.run.INDEX_WAIT_S", 0.0)
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src")
    lock = shop / ".git/index.lock"
    lock.touch()
    assert coord("ann commit -m x").code == 1
    assert lock.exists()


def test_older_lock_file_stays(shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 15, part 2: a lock file from before the killed command is not that command's."""
    monkeypatch.setattr("coord.integrations.git.run.INDEX_WAIT_S", 0.0)
    _killed_commit(shop, coord)
    os.utime(shop / ".git/index.lock", (1, 1))
    assert coord("ann commit -m x").code == 1
    assert (shop / ".git/index.lock").exists()


def test_lock_file_that_a_process_has_open_stays(shop: Path, coord: Coord) -> None:
    """Issue 15, part 2: after a killed commit, a program that took the index since keeps it."""
    _killed_commit(shop, coord)
    lock = shop / ".git/index.lock"
    lock.unlink()
    text = f"import sys; file = open({str(lock)!r}, 'x'); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        done = coord("ann commit -m x")
        assert done.code == 75
        assert f"process {process.pid} may hold {lock}" in done.line
        process.communicate()
    assert lock.exists()


def test_note_of_a_live_command_stays(shop: Path, coord: Coord) -> None:
    """Issue 15, part 2: a commit whose hook takes long is not undone by another one."""
    hook = shop / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch began; while [ ! -e go ]; do sleep 0.02; done\n")
    hook.chmod(0o755)
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src")
    process = started("ann", "commit", "-m", "x", cwd=shop)
    deadline = time.monotonic() + 30
    while not (shop / "began").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)  # noqa: TID251 - the hook runs by itself
    assert unfinished(str(shop / ".git")) == []
    (shop / "go").touch()
    process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        "worktree add x --from=--force",
        "worktree add x --from=-f",
        "worktree add x --branch=--force",
        "worktree add x --branch=-{name}",
        "worktree add x --branch=@{{-1}}",
        "worktree list --into=--all",
        "worktree clean --into=--all",
        "merge -- --all",
        "merge main --into=--force",
        "salvage show -- --all",
        "salvage drop -- --all",
        "salvage restore -- --all",
    ],
)
def test_names_are_never_options(shop: Path, coord: Coord, words: str) -> None:
    """Issue 15, part 2: what a caller names is a ref or nothing; git never reads it as an option."""
    before = git(shop, "for-each-ref"), git(shop, "worktree", "list")
    done = coord(f"ann {words.replace('{{', '{').replace('}}', '}')}")
    assert done.code in (1, 2, 4), done
    assert "usage:" not in done.line
    assert (git(shop, "for-each-ref"), git(shop, "worktree", "list")) == before


def test_branch_is_not_a_revision(shop: Path, coord: Coord) -> None:
    """Issue 15, part 2: `coord merge` takes branches only; git would resolve `name~0` too."""
    head = git(shop, "symbolic-ref", "--short", "HEAD")
    assert "there is no branch" in coord(f"ann merge {head}~0").line
    assert coord(f"ann merge {head}").code == 0


def test_worktree_folder_that_leads_away(shop: Path, coord: Coord, tmp_path: Path) -> None:
    """Issue 15, part 2: a symlink does not take a worktree out of the repository."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (shop / ".worktrees").symlink_to(outside)
    done = coord("ann worktree add login")
    assert done.code == 1
    assert f"leads out of the repository, to {outside}/login" in done.line
    assert not list(outside.iterdir())


def test_worktree_folder_that_everybody_may_write(shop: Path, coord: Coord) -> None:
    """Issue 15, part 2: others could replace a worktree there; the umask is not trusted."""
    (shop / ".worktrees").mkdir()
    (shop / ".worktrees").chmod(0o777)
    assert "is writable for everybody" in coord("ann worktree add login").line
    (shop / ".worktrees").rmdir()
    before = os.umask(0)
    try:
        assert coord("ann worktree add login").code == 0
    finally:
        os.umask(before)
    assert not (shop / ".worktrees").stat().st_mode & 0o002


def test_worktree_that_became_a_symlink_is_kept(shop: Path, coord: Coord, tmp_path: Path) -> None:
    """Issue 15, part 2: clean removes nothing behind a symlink."""
    coord("ann worktree add login")
    (shop / ".worktrees/login").rename(tmp_path / "moved")
    (shop / ".worktrees/login").symlink_to(tmp_path / "moved")
    done = coord("ann worktree clean login")
    assert "through a symlink" in done.line
    assert (tmp_path / "moved/src/app.py").exists()


def test_worktree_whose_folder_was_deleted(shop: Path, coord: Coord) -> None:
    """Issue 15, part 2: clean by name removes the rest of it, and keeps staged work."""
    coord("ann worktree add login")
    subprocess.run(["rm", "-rf", str(shop / ".worktrees/login")], check=True)
    assert "coord worktree clean login" in coord("ann worktree add login").line
    assert coord("ann worktree clean login").answer["removed"] == ["login"]
    assert coord("ann worktree add login").code == 0
    (shop / ".worktrees/login/src/app.py").write_text("staged\n")
    git(shop / ".worktrees/login", "add", ".")
    subprocess.run(["rm", "-rf", str(shop / ".worktrees/login")], check=True)
    assert "1 file is changed in what is left of it" in coord("ann worktree clean login").line


def test_work_in_a_half_removed_worktree_is_kept(shop: Path, coord: Coord) -> None:
    """Issue 15, part 2: a file that appeared after a killed removal stops it; add brings the others back."""
    coord("ann worktree add login")
    tree, admin = shop / ".worktrees/login", shop / ".git/worktrees/login"
    (admin / "coord-removing").write_text("s-ann\n")
    git(shop, "worktree", "unlock", str(tree))
    for name in ("src/app.py", ".git"):
        (tree / name).unlink()
    (tree / "late.txt").write_text("late\n")
    assert "1 file is changed in what is left of it" in coord("ann worktree clean login").line
    assert coord("ann worktree add login").code == 0
    assert git(tree, "status", "--porcelain") == "?? late.txt"
    assert "1 file is changed" in coord("ann worktree clean login").line
    (tree / "late.txt").unlink()
    assert coord("ann worktree clean login").answer["removed"] == ["login"]
    assert not tree.exists()
