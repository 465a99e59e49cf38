"""Git's lock on an index: that of a killed git goes, that of a live one never."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coord.core.errors import Busy
from coord.integrations.git.index_lock import remove_stale
from tests.support.git_folders import made_repository

HOLDING = "import sys; file = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """The lock of a git that began long ago in the repository `shop`."""
    made_repository(tmp_path / "shop")
    lock = tmp_path / "shop/.git/index.lock"
    lock.touch()
    os.utime(lock, (1_000_000_000, 1_000_000_000))
    return lock


def test_a_lock_that_nobody_has_is_removed(lock: Path) -> None:
    """A killed git must not stop the next one for ever; a young lock is waited for."""
    remove_stale(str(lock), str(lock.parents[1]))
    assert not lock.exists()
    remove_stale(str(lock), str(lock.parents[1]))
    lock.touch()
    with pytest.raises(Busy, match="git is running"):
        remove_stale(str(lock), str(lock.parents[1]))


def test_a_lock_that_a_process_has_open_stays(lock: Path) -> None:
    """However old it is; the process is named."""
    command = [sys.executable, "-c", HOLDING, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(Busy, match=f"process {process.pid} may hold"):
            remove_stale(str(lock), str(lock.parents[1]))
        process.communicate()
    assert lock.exists()


def test_a_lock_where_git_is_at_work_stays(lock: Path) -> None:
    """Git closes the file while its hooks run, but works in that folder."""
    command = ["git", "cat-file", "--batch"]
    folder = lock.parents[1]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"HEAD\n")
        process.stdin.flush()
        process.stdout.readline()
        with pytest.raises(Busy, match=rf"git \(process {process.pid}\) may hold"):
            remove_stale(str(lock), str(folder))
        process.communicate()
    remove_stale(str(lock), str(folder))
    assert not lock.exists()


def test_where_processes_cannot_be_seen_it_stays(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubt refuses, and names the file."""
    monkeypatch.setattr("coord.integrations.git.index_lock.PROCESSES", str(lock.parent))
    with pytest.raises(Busy, match="cannot list processes here"):
        remove_stale(str(lock), str(lock.parents[1]))
    assert lock.exists()
