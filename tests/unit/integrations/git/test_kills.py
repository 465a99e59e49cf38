"""A command is killed at any step, alone or with all its processes: the next command finishes or undoes it.

A `git` in front of the real one counts the calls. At one of them it kills coord, or the whole process group:
before git, after git, or inside git at one of its changes to files (with strace).
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import SOAK
from tests.support.cli import PROGRAM

ROUNDS = 100_000 if SOAK else 5
SEED = 15
INSIDE = (1, 2, 3, 5, 8, 13)
REAL_GIT = shutil.which("git") or "git"
SETTINGS = {"user.name": "a", "user.email": "a@b", "init.defaultBranch": "main", "core.fsync": "none"}
CHANGES = "rename,renameat2,unlink,unlinkat,rmdir,mkdir,link"
WRAPPER = """#!/bin/sh
echo >>"$KILL_FOLDER/calls"
if [ "$(wc -l <"$KILL_FOLDER/calls")" -eq "$KILL_CALL" ]; then
    case $KILL_HOW in
        alone) kill -9 $PPID; exec @GIT@ "$@";;
        before) kill -9 0;;
        after) @GIT@ "$@"; kill -9 0;;
        inside) strace -f -qq -o /dev/null -e trace=@CHANGES@ \\
            -e inject=@CHANGES@:signal=KILL:when=$KILL_CHANGE @GIT@ "$@"; kill -9 0;;
    esac
fi
exec @GIT@ "$@"
"""


class Kill(NamedTuple):
    """When and how a command is killed."""

    call: int
    how: str
    change: int = 0


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    said: str


class Shop:
    """A repository with an untouched edit and an untracked file, which no command may lose."""

    def __init__(self, folder: Path) -> None:
        self.top, self.root = folder, folder / "shop"
        self.bin = folder / "bin"

    def environ(self, kill: Kill | None = None) -> dict[str, str]:
        path = os.environ["PATH"]
        found = {"HOME": str(self.top), "XDG_STATE_HOME": str(self.top / "state"), "PATH": path}
        found |= {"USER": "pat", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": str(len(SETTINGS))}
        for number, (key, value) in enumerate(SETTINGS.items()):
            found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        if kill is not None:
            found |= {"PATH": f"{self.bin}:{path}", "KILL_FOLDER": str(self.top)}
            found |= {"KILL_CALL": str(kill.call), "KILL_HOW": kill.how, "KILL_CHANGE": str(kill.change)}
        return found

    def git(self, *words: str, where: Path | None = None) -> str:
        done = subprocess.run(
            [REAL_GIT, *words],
            cwd=where or self.root,
            env=self.environ(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.rstrip("\n")

    def coord(self, *words: str, kill: Kill | None = None, where: Path | None = None) -> Ended:
        """Run coord as session ann; a killed one in a process group that is reaped whole."""
        (self.top / "calls").write_text("")
        process = subprocess.Popen(
            [*PROGRAM, "--json", "--session", "ann", *words],
            cwd=where or self.root,
            env=self.environ(kill),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        out, said = process.communicate(timeout=120)
        return Ended(process.returncode, out, said)

    def calls(self) -> int:
        return len((self.top / "calls").read_text().splitlines())

    def lock_files(self) -> list[str]:
        """Return the lock files of git, and the notes of coord, that are left."""
        found = [path for path in (self.root / ".git").rglob("*") if path.is_file()]
        ours = {"coord/worktree-", "coord/store"}
        return [
            str(path.relative_to(self.root))
            for path in found
            if (path.name.endswith(".lock") and not any(name in str(path) for name in ours))
            or path.parent.name == "coord-running"
        ]


class Case(NamedTuple):
    """A command, how to prepare for it, and what has to be true after the next command."""

    prepare: Callable[[Shop], None]
    command: tuple[str, ...]
    again: Callable[[Shop], bool]
    """Run the next command and check everything; return whether the killed one had finished its work."""


def made(folder: Path) -> Shop:
    shop = Shop(folder)
    shop.root.mkdir(parents=True)
    shop.bin.mkdir()
    wrapper = shop.bin / "git"
    wrapper.write_text(WRAPPER.replace("@GIT@", REAL_GIT).replace("@CHANGES@", CHANGES))
    wrapper.chmod(0o755)
    shop.git("init", "-q", ".")
    for name in ("src/app.py", "src/old.py", "other.txt"):
        (shop.root / name).parent.mkdir(exist_ok=True)
        (shop.root / name).write_text("first\n")
    shop.git("add", ".")
    shop.git("commit", "-qm", "first")
    return shop


def untouched(shop: Shop) -> None:
    assert (shop.root / "other.txt").read_text() == "edit of somebody\n"
    assert (shop.root / "notes.txt").read_text() == "untracked\n"


def edits(shop: Shop) -> None:
    (shop.root / "other.txt").write_text("edit of somebody\n")
    (shop.root / "notes.txt").write_text("untracked\n")


def prepare_commit(shop: Shop) -> None:
    edits(shop)
    (shop.root / "src/app.py").write_text("second\n")
    (shop.root / "src/new.py").write_text("new\n")
    (shop.root / "src/old.py").unlink()
    assert shop.coord("lock", "file:src").code == 0


def commit_again(shop: Shop) -> bool:
    done = shop.coord("commit", "-m", "change")
    finished = done.code == 1 and "killed after it had made" in done.said
    assert finished or done.code == 0, done
    assert shop.git("log", "--format=%s") == "change\nfirst"
    shown = shop.git("show", "--name-status", "--format=", "--no-renames", "HEAD")
    assert shown == "M\tsrc/app.py\nA\tsrc/new.py\nD\tsrc/old.py"
    assert shop.git("status", "--porcelain") == " M other.txt\n?? notes.txt"
    untouched(shop)
    events = json.loads(shop.coord("log", "tail", "--op", "git.committed").out)["events"]
    assert len(events) == 1
    return finished


def prepare_merge(shop: Shop) -> None:
    shop.git("checkout", "-qb", "side")
    for name, text in (("src/app.py", "second\n"), ("src/new/deep.py", "new\n")):
        (shop.root / name).parent.mkdir(exist_ok=True)
        (shop.root / name).write_text(text)
    (shop.root / "src/old.py").unlink()
    assert shop.coord("lock", "file:src").code == 0
    assert shop.coord("commit", "-m", "side").code == 0
    shop.git("checkout", "-q", "main")
    edits(shop)


def merge_again(shop: Shop) -> bool:
    before = shop.git("log", "-1", "--format=%s")
    done = shop.coord("merge", "side", "--wait", "0")
    assert done.code == 0, done
    assert shop.git("log", "-1", "--format=%s") == "Merge branch 'side'"
    assert shop.git("rev-list", "--count", "--merges", "main") == "1"
    assert shop.git("status", "--porcelain") == " M other.txt\n?? notes.txt"
    assert (shop.root / "src/new/deep.py").read_text() == "new\n"
    untouched(shop)
    held = json.loads(shop.coord("locks").out)["locks"]
    assert [lock["resource"] for lock in held] == ["file:src"], "the merge queue is free"
    return before != "first"


def add_again(shop: Shop) -> bool:
    finished = (shop.root / ".git/worktrees/login/coord-ready").exists()
    done = shop.coord("worktree", "add", "login")
    assert done.code == 0, done
    tree = shop.root / ".worktrees/login"
    assert shop.git("status", "--porcelain", "--branch", where=tree) == "## agent/login"
    assert len(list((shop.root / ".git/worktrees").iterdir())) == 1
    untouched(shop)
    return finished


def prepare_clean(shop: Shop) -> None:
    for name in ("login", "kept"):
        assert shop.coord("worktree", "add", name).code == 0
    (shop.root / ".worktrees/kept/work.txt").write_text("not saved\n")
    edits(shop)


def clean_again(shop: Shop) -> bool:
    finished = not (shop.root / ".worktrees/login").exists()
    done = shop.coord("worktree", "clean", "login")
    assert done.code == 0 or "there is no worktree login" in done.said, done
    assert not (shop.root / ".worktrees/login").exists(), done
    assert [path.name for path in (shop.root / ".git/worktrees").iterdir()] == ["kept"], done
    assert (shop.root / ".worktrees/kept/work.txt").read_text() == "not saved\n"
    untouched(shop)
    return finished


def clean_then_add(shop: Shop) -> bool:
    done = shop.coord("worktree", "add", "login")
    assert done.code == 0, done
    tree = shop.root / ".worktrees/login"
    assert shop.git("status", "--porcelain", "--branch", where=tree) == "## agent/login"
    assert (tree / "src/app.py").read_text() == "first\n"
    listed = json.loads(shop.coord("worktree", "list").out)["worktrees"]
    assert {each["name"]: each["owner"] for each in listed} == {"kept": "ann", "login": "ann"}
    assert (shop.root / ".worktrees/kept/work.txt").read_text() == "not saved\n"
    return False


CASES = {
    "commit": Case(prepare_commit, ("commit", "-m", "change"), commit_again),
    "merge": Case(prepare_merge, ("merge", "side"), merge_again),
    "worktree add": Case(edits, ("worktree", "add", "login"), add_again),
    "worktree clean": Case(prepare_clean, ("worktree", "clean", "login"), clean_again),
    "worktree clean, then add": Case(prepare_clean, ("worktree", "clean", "login"), clean_then_add),
}


def kills(calls: int) -> list[Kill]:
    """Return all ways to kill a command, in an order that the seed decides."""
    ways = [Kill(call, how) for call in range(1, calls + 1) for how in ("alone", "before", "after")]
    if shutil.which("strace"):
        ways += [Kill(call, "inside", change) for call in range(1, calls + 1) for change in INSIDE]
    random.Random(SEED).shuffle(ways)
    return ways


@pytest.mark.timeout(7200 if SOAK else 300)
@pytest.mark.parametrize("name", CASES)
def test_killed_command_is_finished_or_undone(name: str, tmp_path: Path) -> None:
    """Issue 15, part 2: killed at any step, the next command finishes or undoes it, and nothing is lost."""
    case, counts = CASES[name], {"rounds": 0, "finished": 0, "undone": 0}
    template = made(tmp_path / "template")
    case.prepare(template)
    probe = _copy(template, tmp_path / "probe")
    whole = probe.coord(*case.command, kill=Kill(0, "none"))
    assert whole.code == 0, whole
    for number, kill in enumerate(kills(probe.calls())[:ROUNDS]):
        shop = _copy(template, tmp_path / str(number))
        done = shop.coord(*case.command, kill=kill)
        assert done.code in (0, -signal.SIGKILL), (kill, done)
        try:
            finished = case.again(shop)
            assert shop.lock_files() == []
        except AssertionError as error:
            raise AssertionError(f"{name} {kill}: {done.said}") from error
        counts["rounds"] += 1
        counts["finished" if finished else "undone"] += 1
        shutil.rmtree(shop.top)
    sys.stdout.write(f"kill campaign: {name}: {counts} wrong=0\n")


def _copy(template: Shop, folder: Path) -> Shop:
    shutil.copytree(template.top, folder, symlinks=True)
    shop = Shop(folder)
    for admin in (shop.root / ".git/worktrees").glob("*"):  # git writes down absolute paths
        tree = shop.root / ".worktrees" / admin.name
        (admin / "gitdir").write_text(f"{tree}/.git\n")
        (tree / ".git").write_text(f"gitdir: {admin}\n")
    shop.git("status", "--porcelain")  # the copies have other times
    return shop
