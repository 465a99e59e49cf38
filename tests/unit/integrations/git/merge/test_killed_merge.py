"""A merge that is killed with its watchdog: the next one frees the queue, and its files are undone."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from coord.core.locks.uses import guard_use
from coord.integrations.git.merge.queue_lock import LOCK, use_name
from coord.sdk.client.client import connect
from tests.support.cli import Coord, coord, repository, started
from tests.support.git_folders import git

__all__ = ["coord", "repository"]


@pytest.fixture
def killed(repository: Path, coord: Coord) -> Path:
    """A repository in which a merge was killed after git had written the files, before it moved main."""
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(repository, "config", name, value)
    git(repository, "checkout", "-q", "-b", "main")
    (repository / "app.py").write_text("first\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "first")
    git(repository, "checkout", "-q", "-b", "side")
    coord("ann lock app.py new.py")
    (repository / "app.py").write_text("second\n")
    (repository / "new.py").write_text("new\n")
    assert coord("ann commit -m side").code == 0
    git(repository, "checkout", "-q", "main")
    hook = repository / ".git/hooks/reference-transaction"
    hook.write_text("#!/bin/sh\ngrep -q refs/heads/main && kill -9 0\nexit 0\n")
    hook.chmod(0o755)
    process = started("ann", "merge", "side", cwd=repository, start_new_session=True)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    hook.unlink()
    return repository


def test_killed_checkout_of_a_merge_is_undone(killed: Path, coord: Coord) -> None:
    """Issue 15, part 2: the files of a killed merge go back, edits of others stay, and commits go on."""
    assert git(killed, "status", "--porcelain") != ""
    (killed / "app.py").write_text("edit of somebody\n")
    assert coord("ann commit -m edit").code == 0
    assert git(killed, "show", "--name-only", "--format=%s", "HEAD").split() == ["edit", "app.py"]
    assert git(killed, "status", "--porcelain") == ""
    assert not (killed / "new.py").exists()


def test_repeated_merge_frees_the_queue(killed: Path, coord: Coord) -> None:
    """Found by attacking it, 15: a merge that is killed and repeated does not keep the queue."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    dead = use_name().replace(f"merge-{os.getpid()}-", f"merge-{process.pid}-")
    with connect(session="s-ann") as client:
        assert client.acquire(LOCK, use=guard_use(dead)).ok
    assert coord("ann merge side").code == 0
    assert [lock["resource"] for lock in coord("ann locks").answer["locks"]] == ["file:app.py", "file:new.py"]
    assert git(killed, "status", "--porcelain") == ""
