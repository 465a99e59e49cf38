"""Putting work aside: nothing is lost, whatever the files are called and whatever stands where."""

import os
from pathlib import Path

import pytest

from coord.core.errors import Refused
from coord.integrations.git.run import Git, GitFailed
from coord.integrations.git.salvage import salvage, swap
from coord.integrations.git.salvage.salvage import list_salvages, save_to_ref
from coord.integrations.git.salvage.swap import restore_to_head, salvage_paths
from tests.support.git_folders import PLAIN, git, made_repository

HOSTILE = (
    "a b.txt",
    "-rf",
    "quo'te\".txt",
    "new\nline",
    "*",
    ":(glob)x",
    "tab\t",
    "é.txt",
    os.fsdecode(b"\xff"),
)


@pytest.fixture
def repo(tmp_path: Path) -> Git:
    """A repository with one commit that holds `src/app.py`."""
    made_repository(tmp_path / "shop")
    return Git(str(tmp_path / "shop"), environ=PLAIN)


def test_edits_go_into_a_ref_and_the_files_back_to_head(repo: Git) -> None:
    """REC-11: what was edited, deleted and made new is all in the ref; HEAD's files are restored."""
    root = Path(repo.folder)
    (root / "gone.txt").write_text("here\n")
    git(root, "add", "gone.txt")
    git(root, "commit", "-qm", "second")
    (root / "src/app.py").write_text("half done\n")
    (root / "gone.txt").unlink()
    (root / "new.txt").write_text("new\n")
    ref, restored = salvage_paths(repo, "17", ["src/app.py", "gone.txt", "new.txt"], "preempted by otto")
    assert ref == "refs/coord/salvage/17/1"
    assert sorted(restored) == ["gone.txt", "src/app.py"]
    assert (root / "src/app.py").read_text() == "app\n"
    assert (root / "gone.txt").read_text() == "here\n"
    assert (root / "new.txt").read_text() == "new\n", "a file that HEAD does not know is left"
    assert git(root, "show", f"{ref}:src/app.py") == "half done"
    assert git(root, "diff", "--name-status", "HEAD", ref).split() == [
        "D",
        "gone.txt",
        "A",
        "new.txt",
        "M",
        "src/app.py",
    ]
    assert git(root, "status", "--porcelain") == "?? new.txt"
    assert [each.why for each in list_salvages(repo, "17")] == ["preempted by otto"]


def test_hostile_names_survive(repo: Git) -> None:
    """REC-11: no file name means anything to git, however it looks."""
    root = Path(repo.folder)
    for name in HOSTILE:
        (root / name).write_text("first\n")
    git(root, "add", "--all")
    git(root, "commit", "-qm", "hostile")
    for name in HOSTILE:
        (root / name).write_text("edited\n")
    ref, restored = salvage_paths(repo, "ada@host:1-2~2", HOSTILE, "lost")
    assert sorted(restored) == sorted(HOSTILE)
    assert {(root / name).read_text() for name in HOSTILE} == {"first\n"}
    assert sorted(repo.must("diff", "--name-only", "-z", "HEAD", ref).names) == sorted(HOSTILE)


def test_what_is_staged_is_kept_too(repo: Git) -> None:
    """REC-11: a staged version that was edited further is the second parent of the ref."""
    root = Path(repo.folder)
    (root / "src/app.py").write_text("staged\n")
    git(root, "add", "src/app.py")
    (root / "src/app.py").write_text("edited further\n")
    ref, _ = salvage_paths(repo, "5", ["src/app.py"], "why")
    assert git(root, "show", f"{ref}:src/app.py") == "edited further"
    assert git(root, "show", f"{ref}^2:src/app.py") == "staged"
    assert git(root, "status", "--porcelain") == ""


def test_again_is_harmless(repo: Git) -> None:
    """REC-11: after a crash between keeping and restoring, the same content is not kept twice."""
    root = Path(repo.folder)
    (root / "src/app.py").write_text("half done\n")
    first = save_to_ref(repo, "5", ["src/app.py"], "why")
    assert salvage_paths(repo, "5", ["src/app.py"], "why") == (first, ["src/app.py"])
    assert salvage_paths(repo, "5", ["src/app.py"], "why") == ("", []), "it is as HEAD has it"
    (root / "src/app.py").write_text("other\n")
    assert save_to_ref(repo, "5", ["src/app.py"], "why") == "refs/coord/salvage/5/2"


def test_what_changed_since_is_not_restored(repo: Git) -> None:
    """REC-11: content that the ref does not have is never overwritten."""
    root = Path(repo.folder)
    (root / "src/app.py").write_text("half done\n")
    ref = save_to_ref(repo, "5", ["src/app.py"], "why")
    (root / "src/app.py").write_text("written meanwhile\n")
    with pytest.raises(Refused, match="does not have the present content"):
        restore_to_head(repo, ["src/app.py"], saved_in=ref, name="5")
    assert (root / "src/app.py").read_text() == "written meanwhile\n"


def test_nothing_that_stands_in_the_way_is_removed(repo: Git) -> None:
    """REC-11: git would remove a folder of new files to restore a file there; it is not asked to."""
    root = Path(repo.folder)
    (root / "src/app.py").unlink()
    ref = save_to_ref(repo, "5", ["src/app.py"], "why")
    (root / "src/app.py").mkdir()
    (root / "src/app.py/new.txt").write_text("new\n")
    assert restore_to_head(repo, ["src/app.py"], saved_in=ref, name="5") == ("", [])
    assert (root / "src/app.py/new.txt").read_text() == "new\n"
    (root / "src/app.py/new.txt").unlink()
    (root / "src/app.py").rmdir()
    (root / "src").rmdir()
    (root / "src").symlink_to("elsewhere")
    assert swap.swap_files(repo, "HEAD", ["src/app.py"], saved_in=ref, name="5") == ("", [])
    assert (root / "src").is_symlink()


def test_no_byte_is_lost_that_comes_at_the_worst_moment(repo: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-11: written after the last look, be it another file, it is kept although it is replaced."""
    app = Path(repo.folder, "src/app.py")
    really = swap.swap_file

    def late(folder: int, name: str, new: str, taken: str) -> bool:
        other = app.with_name("other")
        other.write_text("late\n")
        other.rename(app)
        return really(folder, name, new, taken)

    app.write_text("half done\n")
    monkeypatch.setattr(swap, "swap_file", late)
    ref, restored = salvage_paths(repo, "5", ["src/app.py"], "why")
    assert (ref, restored, app.read_text()) == ("refs/coord/salvage/5/2", ["src/app.py"], "app\n")
    root = Path(repo.folder)
    assert git(root, "show", f"{ref}:src/app.py") == "late"
    assert git(root, "show", "refs/coord/salvage/5/1:src/app.py") == "half done"
    assert git(root, "status", "--porcelain") == ""
    assert not list((root / ".git").glob(".coord-*"))


def test_a_file_that_comes_in_between_stays(repo: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-11: between the old file and the new one, somebody else's is not overwritten."""
    app = Path(repo.folder, "src/app.py")
    really = os.link

    def link(*names: object, **folders: object) -> None:
        app.write_text("just made\n")
        really(*names, **folders)  # type: ignore[arg-type]

    app.write_text("half done\n")
    monkeypatch.setattr("coord.integrations.git.salvage.swap.os.link", link)
    assert salvage_paths(repo, "5", ["src/app.py"], "why") == ("refs/coord/salvage/5/1", [])
    assert app.read_text() == "just made\n"
    assert git(Path(repo.folder), "show", "refs/coord/salvage/5/1:src/app.py") == "half done"


def test_a_repository_without_commits(tmp_path: Path) -> None:
    """REC-11: before the first commit everything is new: kept, and left."""
    git(tmp_path, "init", "-q")
    (tmp_path / "new.txt").write_text("new\n")
    repo = Git(str(tmp_path), environ=PLAIN)
    ref, restored = salvage_paths(repo, "5", ["new.txt"], "why")
    assert (git(tmp_path, "show", f"{ref}:new.txt"), restored) == ("new", [])


def test_a_busy_index_is_waited_for(repo: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-11: where another git has the index, the work is kept and the refusal says so."""
    root = Path(repo.folder)
    (root / "src/app.py").write_text("half done\n")
    (root / ".git/index.lock").touch()
    monkeypatch.setattr("coord.integrations.git.run.INDEX_WAIT_S", 0.0)
    with pytest.raises(GitFailed, match="index"):
        salvage_paths(repo, "5", ["src/app.py"], "why")
    assert git(root, "show", "refs/coord/salvage/5/1:src/app.py") == "half done"


def test_a_conflict_is_kept_and_stays_one(repo: Git) -> None:
    """REC-11: to restore a file in conflict would say that it is solved, and drop what the other side did."""
    folder = Path(repo.folder)
    for branch in ("theirs", "ours"):
        git(folder, "checkout", "-qb", branch, "main" if branch == "ours" else "HEAD")
        (folder / "src/app.py").write_text(f"{branch}\n")
        git(folder, "commit", "-qam", branch)
    assert repo.run("-c", "user.name=a", "-c", "user.email=a@b", "merge", "theirs").code == 1
    ref, restored = salvage_paths(repo, "ann", ["src/app.py"], "why")
    assert (restored, git(folder, "status", "--porcelain")) == ([], "UU src/app.py")
    assert "<<<<<<<" in git(folder, "show", f"{ref}:src/app.py")


def test_what_was_kept_before_is_not_looked_into(repo: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-9: the hundredth checkpoint takes no longer than the first: trees tell the others apart."""
    app = Path(repo.folder, "src/app.py")
    for number in range(3):
        app.write_text(f"{number}\n")
        save_to_ref(repo, "ann", ["src/app.py"], "why")
    looked: list[str] = []
    really = salvage._shape

    def shape(git: Git, commit: str) -> tuple[str, str, str]:
        looked.append(commit)
        return really(git, commit)

    monkeypatch.setattr(salvage, "_shape", shape)
    assert save_to_ref(repo, "ann", ["src/app.py"], "why").endswith("/ann/3")
    assert len(looked) == 1
