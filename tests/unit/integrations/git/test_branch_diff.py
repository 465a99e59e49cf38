"""Diffs for people outside: only branches and whole hashes, bounded, and no foreign program runs."""

from pathlib import Path

import pytest

from coord.core.errors import Invalid, NotFound, Unavailable
from coord.integrations.git import branch_diff as module
from coord.integrations.git.branch_diff import branch_diff, commit_diff, find_commit
from coord.integrations.git.run import Git
from tests.support.git_folders import git, made_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A branch that changes a file and renames another, beside a newer commit of main."""
    made_repository(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "feature/a")
    (tmp_path / "src/app.py").write_text("<script>alert(1)</script>\n")
    (tmp_path / "b\tä.bin").write_bytes(b"\0\1\2")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "change")
    git(tmp_path, "checkout", "-q", "main")
    (tmp_path / "other.py").write_text("1\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "other")
    return tmp_path


def test_a_branch_shows_what_it_adds_since_both_parted(repository: Path) -> None:
    found = branch_diff(Git(str(repository)), "feature/a", "main")
    assert {each.path: each.added for each in found.files} == {"src/app.py": 1, "b\tä.bin": -1}
    assert "+<script>alert(1)</script>" in found.text
    assert '"a/b\\tä.bin"' in found.text
    assert "other.py" not in found.text
    assert (found.whole, found.tip) == (True, git(repository, "rev-parse", "feature/a"))


def test_a_commit_shows_its_changes_and_a_merge_those_of_its_branch(repository: Path) -> None:
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "feature/a")
    merge, root = git(repository, "rev-parse", "HEAD"), git(repository, "rev-list", "--max-parents=0", "HEAD")
    assert {each.path for each in commit_diff(Git(str(repository)), merge).files} == {
        "src/app.py",
        "b\tä.bin",
    }
    assert [each.path for each in commit_diff(Git(str(repository)), root).files] == ["src/app.py"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-p",
        "--output=x",
        "HEAD~1",
        "main..feature/a",
        "main:src/app.py",
        "a b",
        "@{-1}",
        ":/change",
        "x\0y",
        *("main^{tree}", "main.lock", "a" * 251, "ä", "$(id)", "refs/heads/main\n"),
    ],
)
def test_other_expressions_of_git_are_refused(repository: Path, name: str) -> None:
    with pytest.raises(Invalid):
        find_commit(Git(str(repository)), name)


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "nobody", "0" * 40, "v1"])
def test_only_branches_and_whole_hashes_of_commits_are_found(repository: Path, name: str) -> None:
    git(repository, "tag", "v1")
    with pytest.raises(NotFound):
        find_commit(Git(str(repository)), name)


def test_a_blob_is_no_commit(repository: Path) -> None:
    with pytest.raises(NotFound):
        find_commit(Git(str(repository)), git(repository, "rev-parse", "HEAD:src/app.py"))


def test_no_program_of_the_repository_runs(repository: Path) -> None:
    """Its configuration names an external diff, a text filter and a monitor: none of them runs."""
    ran = repository / "ran"
    program = repository / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    for name in ("diff.external", "diff.evil.command", "diff.evil.textconv", "core.fsmonitor", "core.pager"):
        git(repository, "config", name, str(program))
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/attributes").write_text("* diff=evil\n")
    assert "+<script>" in branch_diff(Git(str(repository)), "feature/a", "main").text
    assert not ran.exists()


def test_a_long_diff_is_cut(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEXT_BYTES_MAX", 16)
    found = branch_diff(Git(str(repository)), "feature/a", "main")
    assert (len(found.text), found.whole) == (16, False)


def test_a_slow_git_is_killed_and_is_no_answer(repository: Path) -> None:
    """The branch may exist: nobody is told that it does not."""
    git(repository, "config", "alias.slow", "!exec sleep 600")
    with pytest.raises(Unavailable, match="git slow did not end within 0 s"):
        Git(str(repository)).at_most(100, 0.0, "slow")


def test_a_machine_without_git_finds_no_branch_missing(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(Unavailable, match="git cannot run here"):
        branch_diff(Git(str(repository)), "feature/a", "main")


def test_branches_without_a_common_commit_are_refused(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "alone")
    git(repository, "commit", "-qm", "alone")
    with pytest.raises(NotFound, match="nothing in common"):
        branch_diff(Git(str(repository)), "alone", "main")
