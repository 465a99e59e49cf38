"""Real repositories for tests, made by git itself and free of whatever this machine has configured."""

import atexit
import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coord.host.repository import Repository, find_repository
from tests.support.servers.server import TEMPLATES

PLAIN = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}
SETTINGS = ("user.name=a", "user.email=a@b", "protocol.file.allow=always", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it prints."""
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    done = subprocess.run(
        ["git", *settings, *arguments], cwd=folder, env=PLAIN, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def made_repository(folder: Path) -> Repository:
    """Make a repository with one commit that holds `src/app.py`."""
    shutil.copytree(_template(), folder, symlinks=True, dirs_exist_ok=True)
    git(folder, "update-index", "--refresh")  # the files are others than those that git knows
    return found(folder)


def empty_repository(folder: Path) -> None:
    """Make a repository without a commit, as `git init` does."""
    shutil.copytree(_empty_template(), folder, symlinks=True, dirs_exist_ok=True)


@functools.cache
def _empty_template() -> Path:
    def make(folder: Path) -> None:
        git(folder, "init", "-q")
        for sample in (folder / ".git/hooks").glob("*.sample"):
            if sample.name != "pre-commit.sample":  # one sample tests what all of them would
                sample.unlink()

    return _made_once("git-empty", make)


@functools.cache
def _template() -> Path:
    def make(folder: Path) -> None:
        empty_repository(folder)
        (folder / "src").mkdir()
        (folder / "src/app.py").write_text("app\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "first")

    return _made_once("git", make)


def _made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that one process makes for all of a test run: a copy takes a third of the time."""
    home = os.environ.get(TEMPLATES)
    if home is None:
        home = tempfile.mkdtemp(prefix="coord-templates-")
        atexit.register(shutil.rmtree, home, ignore_errors=True)
    folder, new = Path(home, name), Path(home, f"{name}.new")
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(new, ignore_errors=True)  # of a process that was killed
            with _usual_umask():
                new.mkdir()
                make(new)
            new.rename(folder)
    return folder


@contextmanager
def _usual_umask() -> Iterator[None]:
    """Leave out what the first test that needs a template may have set."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def added_worktree(folder: Path, place: Path) -> Repository:
    """Add a worktree of the repository in a folder at another place."""
    git(folder, "worktree", "add", "-q", "--detach", str(place))
    return found(place)


def added_submodule(folder: Path, source: Path, name: str) -> Repository:
    """Make a repository at `source` and add it to the one in a folder, as a submodule."""
    made_repository(source)
    git(folder, "submodule", "--quiet", "add", str(source), name)
    return found(folder / name)


def found(folder: Path) -> Repository:
    """Return the repository that a folder is in; there must be one."""
    repository = find_repository(str(folder))
    assert repository is not None
    return repository
