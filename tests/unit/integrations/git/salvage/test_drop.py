"""Giving up what was put aside: only what a branch has, or what somebody asks for by its age or name."""

import os
from pathlib import Path

import pytest

from coord.core.errors import Invalid, NotFound, Refused
from coord.integrations.git.run import Git
from coord.integrations.git.salvage.drop import describe, drop, prune
from coord.integrations.git.salvage.salvage import COORD, list_salvages, save_to_ref
from coord.integrations.git.salvage.swap import salvage_paths
from tests.support.git_folders import PLAIN, git, made_repository

APP = "src/app.py"
DAY_S = 24 * 3600.0


@pytest.fixture
def repo(tmp_path: Path) -> Git:
    """A repository in which an edit of `src/app.py` was put aside."""
    made_repository(tmp_path / "shop")
    repo = Git(str(tmp_path / "shop"), environ=PLAIN)
    Path(repo.folder, APP).write_text("half done\n")
    salvage_paths(repo, "17", [APP], "preempted")
    return repo


def committed(repo: Git, text: str, path: str = APP) -> None:
    root = Path(repo.folder)
    (root / path).write_text(text)
    git(root, "add", "--", path)
    git(root, "commit", "-qm", text.strip(), "--", path)


def refs(repo: Git) -> list[str]:
    return [each.ref.removeprefix("refs/coord/salvage/") for each in list_salvages(repo)]


def test_what_no_branch_has_is_not_dropped(repo: Git) -> None:
    """REC-11: nor pruned; by force it is, and its commit is named."""
    found = describe(repo, "17/1")
    assert (found.files, found.in_branch) == ([{"path": APP, "state": "changed"}], False)
    with pytest.raises(Refused, match="no branch has all of"):
        drop(repo, ["17/1"], force=False)
    assert prune(repo, older_s=None, merged=True) == []
    assert refs(repo) == ["17/1"]
    (dropped,) = drop(repo, ["17/1"], force=True)
    assert (dropped.commit, refs(repo)) == (found.commit, [])
    with pytest.raises(NotFound, match="there is no"):
        drop(repo, ["17/1"], force=True)


def test_what_a_branch_had_once_is_merged(repo: Git) -> None:
    """REC-11: the content counts, in whatever commit of whatever branch, and however it went on."""
    git(Path(repo.folder), "checkout", "-qb", "work")
    committed(repo, "half done\n")
    committed(repo, "done\n")
    git(Path(repo.folder), "checkout", "-q", "main")
    assert describe(repo, "17/1").in_branch
    assert [each.ref for each in prune(repo, older_s=None, merged=True, dry_run=True)] == [
        "refs/coord/salvage/17/1"
    ]
    assert refs(repo) == ["17/1"]
    prune(repo, older_s=None, merged=True)
    assert refs(repo) == []


def test_every_byte_has_to_be_there(repo: Git) -> None:
    """REC-11: one new file, or what was only staged, and the whole ref stays."""
    root = Path(repo.folder)
    committed(repo, "half done\n")
    assert describe(repo, "17/1").in_branch
    (root / "new\nline").write_text("new\n")
    save_to_ref(repo, "18", ["new\nline"], "a new file")
    (root / APP).write_text("staged\n")
    git(root, "add", APP)
    (root / APP).write_text("half done\n")
    save_to_ref(repo, "19", [APP], "staged only")
    assert [each.ref[-4:] for each in prune(repo, older_s=None, merged=True)] == ["17/1"]
    assert refs(repo) == ["18/1", "19/1"]
    committed(repo, "new\n", "new\nline")
    assert [describe(repo, ref).in_branch for ref in ("18/1", "19/1")] == [True, False]


def test_age_counts_only_if_it_is_asked_for(repo: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-11: without a word about what to give up nothing is; what is young stays."""
    with pytest.raises(Invalid, match="no condition given"):
        prune(repo, older_s=None, merged=False)
    for name in list(COORD):
        if name.endswith("_NAME"):
            monkeypatch.setitem(COORD, name.replace("_NAME", "_DATE"), "2001-09-09T01:46:40Z")
    Path(repo.folder, APP).write_text("long ago\n")
    save_to_ref(repo, "3", [APP], "long ago")
    assert refs(repo) == ["3/1", "17/1"]
    assert prune(repo, older_s=30 * DAY_S, merged=True) == []
    assert [each.why for each in prune(repo, older_s=30 * DAY_S, merged=False)] == ["long ago"]
    assert refs(repo) == ["17/1"]


def test_the_folder_does_not_matter(repo: Git) -> None:
    """Paths in a salvage are those from the top, wherever the command is run."""
    committed(repo, "half done\n")
    below = Git(os.path.join(repo.folder, "src"), environ=PLAIN)
    assert describe(below, "17/1").in_branch
