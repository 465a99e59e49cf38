"""What a hook remembers of the file system: the same as it would see again, and only for its own run."""

import os
import threading
from pathlib import Path

import pytest

from coord.host.repository import find_repository
from coord.host.runtime.seen_files import real_path, remembering
from tests.support.git_folders import made_repository


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with links of every kind."""
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "real/deep/file").write_text("")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real/up").symlink_to("../link/deep")
    (tmp_path / "to-root").symlink_to("/")
    (tmp_path / "dangling").symlink_to("missing/file")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "a").symlink_to("b/x")
    (tmp_path / "b").symlink_to("a/y")
    return tmp_path


NAMES = (
    *("real", "real/deep/file", "link", "link/deep/file", "link/up/file", "real/up/../..", "link/..", "."),
    *("to-root", "to-root/etc/hosts", "dangling", "dangling/below", "loop", "loop/below/it", "a/b", "b"),
    *("missing/a/b", "real/deep/file/below", "link/", "//link//deep", "link/./deep", "x" * 300),
    "/".join(["d"] * 1500),
)


@pytest.mark.parametrize("times", [1, 2])
def test_a_hook_sees_what_the_kernel_resolves(tree: Path, times: int) -> None:
    names = [f"{tree}/{name}" for name in NAMES] + ["/", "//", "", "relative/name"]
    found = remembering(lambda: [real_path(name) for name in names * times])
    assert found == [os.path.realpath(name) for name in names * times]


def test_a_name_with_nul_is_no_path(tree: Path) -> None:
    with pytest.raises(ValueError, match="null"):
        remembering(lambda: real_path(f"{tree}/a\0b"))


def test_nothing_is_kept_for_the_next_hook(tree: Path) -> None:
    """A link that was changed between two hooks counts in the second; within one, all checks agree."""
    path, repository = f"{tree}/link/file", tree / "repository"
    made_repository(repository)

    def look() -> tuple[str, str]:
        first = real_path(path)
        (tree / "link").unlink()
        (tree / "link").symlink_to("elsewhere")
        return first, real_path(path)

    assert remembering(look) == (f"{tree}/real/file",) * 2
    assert real_path(path) == f"{tree}/elsewhere/file"
    assert remembering(lambda: real_path(path)) == f"{tree}/elsewhere/file"
    assert remembering(lambda: find_repository(str(repository))) is not None
    (repository / ".git").rename(repository / "moved")
    assert find_repository(str(repository)) is None
    assert remembering(lambda: find_repository(str(repository))) is None


def test_a_hook_that_fails_leaves_nothing(tree: Path) -> None:
    def fail() -> None:
        real_path(f"{tree}/link")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        remembering(fail)
    (tree / "link").unlink()
    assert real_path(f"{tree}/link") == f"{tree}/link"


def test_hooks_in_other_threads_remember_for_themselves(tree: Path) -> None:
    path = f"{tree}/link"
    found: list[str] = []

    def look() -> None:
        real_path(path)
        (tree / "link").unlink()
        thread = threading.Thread(target=lambda: found.append(remembering(lambda: real_path(path))))
        thread.start()
        thread.join()
        found.append(real_path(path))

    remembering(look)
    assert found == [path, f"{tree}/real"]
