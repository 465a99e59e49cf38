"""How files stand: every way to change one is seen, whatever the index and the clock are like."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from coord.core.errors import Unavailable
from coord.host.repository import git_dir_of
from coord.integrations.git.run import Git
from coord.integrations.shell_effects import worktree_state
from coord.integrations.shell_effects.worktree_state import Change, changes, read_state, save_index
from tests.support.git_folders import PLAIN, added_worktree, git

HOUR_NS = 3600 * 10**9
WATCHED = (".env", "cache/*.bin")


FILES = ("clean", "changed", "staged", "run.sh", "src/app.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with clean, changed, staged, untracked and ignored files, most of them an hour old."""
    root = tmp_path / "shop"
    (root / "cache").mkdir(parents=True)
    (root / "src").mkdir()
    for name in FILES:
        (root / name).write_text("first\n")
    (root / ".gitignore").write_text("*.log\n.env\ncache/\n")
    made_old(root, *FILES)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    for name in ("changed", "staged", "new", "x.log", ".env", "cache/a.bin"):
        (root / name).write_text("second\n")
    made_old(root, "changed", "staged", "new", "x.log", ".env", "cache/a.bin")
    git(root, "add", "staged")
    return root


def made_old(root: Path, *names: str) -> None:
    for name in names:
        found = (root / name).stat()
        os.utime(root / name, ns=(found.st_atime_ns, found.st_mtime_ns - HOUR_NS))


def touched(root: Path, act: Callable[[], object], environ: dict[str, str] = PLAIN) -> dict[str, Change]:
    """Return what is seen of an act."""
    repository, index = Git(str(root), environ=environ), f"{root}.index"
    save_index(git_dir_of(str(root)), index)
    before = read_state(repository, index, WATCHED)
    act()
    return {change.path: change for change in changes(repository, index, before, WATCHED)}


def write(root: Path, *names: str, text: str = "later\n") -> None:
    for name in names:
        (root / name).write_text(text)


def into_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "in").touch()


def commit(root: Path, name: str) -> None:
    write(root, name)
    git(root, "commit", "-qm", "third", "--", name)


ACTS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "nothing": (lambda root: None, set()),
    "staged": (lambda root: git(root, "add", "changed", "new"), set()),
    "committed": (lambda root: git(root, "commit", "-qam", "second"), set()),
    "written": (lambda root: write(root, "clean", "src/app.py"), {"clean", "src/app.py"}),
    "same size": (lambda root: write(root, "clean", "new", text="LATER\n"), {"clean", "new"}),
    "stashed": (lambda root: git(root, "stash", "-q"), {"clean", "new", "src/app.py"}),
    "watched": (lambda root: write(root, ".env", "cache/b.bin", "cache/c", "x.log"), {".env", "cache/b.bin"}),
    "made": (lambda root: write(root, "src/made"), {"src/made"}),
    "made is deleted": (lambda root: (root / "src/made").unlink(), {"src/made"}),
    "mode": (lambda root: (root / "run.sh").chmod(0o755), {"run.sh"}),
    "restored": (lambda root: git(root, "checkout", "-q", "--", "run.sh"), {"run.sh"}),
    "link": (lambda root: (root / "link").symlink_to("clean"), {"link"}),
    "renamed": (lambda root: (root / "clean").rename(root / "moved"), {"clean", "moved"}),
    "put back": (lambda root: (root / "moved").rename(root / "clean"), {"clean", "moved"}),
    "folder moved": (lambda root: (root / "src").rename(root / "lib"), {"src/app.py", "lib/app.py"}),
    "swapped": (lambda root: os.replace(root / "link", root / "clean"), {"clean", "link"}),
    "file to folder": (lambda root: into_folder(root / "new"), {"new", "new/in"}),
    "written and committed": (lambda root: commit(root, "staged"), {"staged"}),
    "reset": (
        lambda root: git(root, "reset", "-q", "--hard", "HEAD~2"),
        {"clean", "changed", "staged", "src/app.py"},
    ),
    "removed by git": (lambda root: git(root, "rm", "-q", "clean"), {"clean"}),
    "no longer ignored": (lambda root: write(root, ".gitignore", text=".env\ncache/\n"), {".gitignore"}),
}  # fmt: skip


def test_every_way_to_change_a_file_is_seen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is found, and what was only staged, committed or ignored until now is not."""
    monkeypatch.setattr(worktree_state, "RACY_NS", 0)
    for name, (act, expected) in ACTS.items():
        found = touched(root, lambda act=act: act(root))  # type: ignore[misc]
        assert set(found) == expected, name


def test_a_new_file_is_seen_whatever_its_times_say(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a file system may be far behind ours, and a renamed file may keep all its times."""
    monkeypatch.setattr(worktree_state, "RACY_NS", -HOUR_NS)

    def act() -> None:
        (root / "clean").rename(root / "moved")
        write(root, "src/made")

    found = touched(root, act)
    assert set(found) == {"clean", "moved", "src/made"}


@pytest.mark.parametrize("rules", [".gitignore", ".git/info/exclude", "home/.gitconfig", "home/git/ignore"])
def test_a_file_that_was_ignored_until_now_is_not_new(
    root: Path, rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the rules about ignored files change, the times decide; wherever these rules stand."""
    home = root.parent / "home"
    (home / "git").mkdir(parents=True)
    (home / "other").write_text("*.old\n")
    (root / ".gitignore").write_text(".env\ncache/\n*.log\n")
    places = {
        ".gitignore": (root / rules, "*.old\n", ".env\ncache/\n*.log\n"),
        ".git/info/exclude": (root / rules, "*.old\n", ""),
        "home/.gitconfig": (root.parent / rules, f"[core]\nexcludesFile = {home}/other\n", ""),
        "home/git/ignore": (root.parent / rules, "*.old\n", ""),
    }
    path, ignoring, plain = places[rules]
    path.write_text(ignoring + plain)
    write(root, "x.old")
    environ = {**PLAIN, "HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    environ.pop("GIT_CONFIG_GLOBAL", None)
    monkeypatch.setattr(worktree_state, "RACY_NS", -HOUR_NS)
    found = touched(root, lambda: path.write_text(plain), environ)
    assert set(found) <= {".gitignore"}
    assert git(root, "ls-files", "--others", "--exclude-standard", "x.old") == "x.old"


def test_a_clean_file_is_told_from_a_changed_one(root: Path) -> None:
    """Of a clean file the former content is known: it is in the index."""
    found = touched(root, lambda: [(root / name).write_text("later\n") for name in ("clean", "changed")])
    assert found["clean"].was_clean
    assert not found["changed"].was_clean
    assert found["changed"].was is not None


@pytest.mark.parametrize("name", ["changed", "new"])
def test_times_that_are_put_back_hide_nothing(root: Path, name: str) -> None:
    """`touch -r` sets the time of the content, never that of the change."""

    def act() -> None:
        found = (root / name).stat()
        write(root, name, text="x" * found.st_size)
        os.utime(root / name, ns=(found.st_atime_ns, found.st_mtime_ns))

    assert set(touched(root, act)) == {name}


@pytest.mark.parametrize("name", ["changed", "new"])
def test_a_coarse_clock_hides_nothing(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Racily clean: written twice in one tick of the clock, with the same size, a file has the same stat."""
    real = worktree_state.file_stat

    def coarse(folder: str, path: str) -> worktree_state.FileStat | None:
        found = real(folder, path)
        return found and worktree_state.FileStat(found.mode, found.size, 7 * 10**18, 7 * 10**18, found.inode)

    monkeypatch.setattr(worktree_state, "file_stat", coarse)
    assert set(touched(root, lambda: None)) == set()
    assert name in touched(root, lambda: (root / name).write_text("SECOND\n"))


def test_a_file_written_right_after_it_was_staged_is_seen(root: Path) -> None:
    """Racily clean in the index: git compares the content of what is as young as the index itself."""
    (root / "clean").write_text("aaaaa\n")
    git(root, "add", "clean")
    index = (root / ".git/index").stat().st_mtime_ns
    os.utime(root / "clean", ns=(index, index))
    git(root, "add", "clean")

    def act() -> None:
        (root / "clean").write_text("bbbbb\n")
        os.utime(root / "clean", ns=(index, index))

    assert set(touched(root, act)) == {"clean"}


def test_a_huge_file_is_not_read(root: Path) -> None:
    """A sparse file of a terabyte is looked at by its stat alone."""

    def grown(name: str) -> None:
        with (root / name).open("ab") as file:
            file.truncate(1 << 40)

    grown("new")
    assert set(touched(root, lambda: os.truncate(root / "new", (1 << 40) - 1))) == {"new"}
    assert set(touched(root, lambda: grown("clean"))) == {"clean"}
    assert worktree_state.read_content(str(root), "new", 1 << 20) is None


def test_too_many_untracked_files_are_not_compared(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is bounded: tracked files are still looked at."""
    monkeypatch.setattr(worktree_state, "FILES_MAX", 3)
    for number in range(4):
        (root / f"many-{number}").touch()
    found = touched(root, lambda: [(root / name).write_text("later\n") for name in ("clean", "many-1")])
    assert set(found) == {"clean"}
    write(root, *FILES)
    with pytest.raises(Unavailable, match="files are changed"):
        touched(root, lambda: None)


def test_a_repository_without_commits_and_a_linked_worktree(root: Path, tmp_path: Path) -> None:
    """Each worktree has an index of its own; before the first commit there is none."""
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    assert set(touched(tmp_path / "empty", lambda: (tmp_path / "empty/a").touch())) == {"a"}
    added_worktree(root, tmp_path / "tree")
    assert set(touched(tmp_path / "tree", lambda: (tmp_path / "tree/clean").write_text("x"))) == {"clean"}
    assert touched(tmp_path / "tree", lambda: (root / "clean").write_text("x")) == {}


def test_hostile_names_are_compared_as_bytes(root: Path) -> None:
    """Newlines, quotes, bytes that are no text, and a name like an option."""
    names = ("new\nline", "quo'te\".txt", "-rf", ":(glob)*", os.fsdecode(b"\xff\xfe"), "tab\there")
    assert set(touched(root, lambda: [(root / name).write_text("x") for name in names])) == set(names)


def test_a_slow_git_is_not_waited_for(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook has a deadline: where git does not end in time, nothing is known."""
    slow = tmp_path / "bin/git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(worktree_state, "GIT_SHARE", 0.0)
    with pytest.raises(Unavailable):
        read_state(Git(str(root), environ=PLAIN), str(root / ".git/index"), ())
