"""Worktrees: one for each agent or task, entered again after a crash, and nothing of them ever lost."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from coord.integrations.git.worktree.worktree import exclusive
from coord.sdk.client.client import connect
from tests.support.cli import PROGRAM, Coord
from tests.support.git_folders import git, made_repository


def test_each_agent_has_a_branch_and_a_folder(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made by name, hidden from git, recorded, committed to apart.

    GIT-5, GIT-6, GIT-7, GIT-23, GIT-26, SES-8.
    """
    said = coord("ann worktree add")
    assert said.code == 0, said
    place = Path(said.answer["path"])
    assert (place, said.answer["branch"]) == (shop / ".worktrees/ann", "agent/ann")
    assert (place / "src/app.py").read_text() == "first\n"
    assert git(shop, "status", "--porcelain") == "", "the main tree does not see it"
    owned = coord("ann status").answer["session"]["owned_resources"]
    assert owned == {"worktrees": {str(place): "agent/ann"}, "branches": ["agent/ann"]}
    monkeypatch.chdir(place)
    coord("ann lock src/app.py")
    assert coord("bob lock src/app.py --no-wait").code == 1, "GIT-24: one store for all worktrees"
    (place / "src/app.py").write_text("second\n")
    assert coord("ann commit -m x").code == 0
    assert (shop / "src/app.py").read_text() == "first\n"


def test_templates_and_set_up(shop: Path, coord: Coord) -> None:
    """Paths and branches by template, a set-up that is tried again if it fails.

    GIT-1, GIT-2, GIT-13, CFL-32.
    """
    git(shop, "config", "coord.worktreeBranch", "ticket-{name}")
    git(shop, "config", "coord.worktreePath", "../trees/{name}")
    failed = coord("ann worktree add A-001 --setup", "echo no network; exit 3")
    assert (failed.code, "no network" in failed.line) == (1, True)
    said = coord("ann worktree add A-001 --setup", 'echo "$COORD_BRANCH" > prepared')
    assert said.answer["branch"] == "ticket-A-001"
    assert (shop.parent / "trees/A-001/prepared").read_text() == "ticket-A-001\n"
    (shop.parent / "trees/A-001/prepared").unlink()
    coord("ann worktree add A-001 --setup", "touch prepared")
    assert not (shop.parent / "trees/A-001/prepared").exists(), "once it is complete, it is not set up again"
    assert coord("ann worktree add x --path", "{nonsense}").code == 2
    assert coord("ann worktree add x --branch", "a..b").code == 2


def test_another_session_is_kept_out_while_the_owner_lives(shop: Path, coord: Coord) -> None:
    """GIT-6: two agents never share a worktree unknowingly; who is gone is succeeded, edits and all."""
    place = Path(coord("ann worktree add login").answer["path"])
    (place / "src/app.py").write_text("half done\n")
    denied = coord("bob worktree add login")
    assert (denied.code, denied.answer["error"]["code"]) == (1, "held")
    assert coord("bob worktree enter login").code == 1
    assert coord("cid worktree enter login --force").answer["path"] == str(place)
    assert coord("ann worktree enter login --force").code == 0
    assert coord("ann worktree enter").answer["path"] == str(place)
    coord("ann dereg")
    assert coord("bob worktree enter agent/login").answer["path"] == str(place)
    assert (place / "src/app.py").read_text() == "half done\n"
    assert coord("bob worktree enter nothing").code == 4


def test_the_shared_tree_only_on_request_and_loudly(shop: Path, coord: Coord) -> None:
    """GIT-11: where no worktree can be made, the shared tree is the answer if that was asked for, loudly."""
    (shop / "full").write_text("a file\n")
    assert coord("ann worktree add --path", "full").code == 1
    said = coord("ann worktree add --or-shared --path", "full")
    assert (said.answer["shared"], said.answer["path"]) == (True, str(shop))
    assert "NOT isolated" in said.line
    assert (shop / "full").read_text() == "a file\n"


def test_a_session_owns_its_worktrees_until_they_are_removed(shop: Path, coord: Coord) -> None:
    """GIT-26: a branch that stays because it is not merged is still owned."""

    def owned() -> dict[str, object]:
        found: dict[str, object] = coord("ann status").answer["session"]["owned_resources"]
        return found

    one, two = (Path(coord(f"ann worktree add {name}").answer["path"]) for name in ("one", "two"))
    git(two, "commit", "-q", "--allow-empty", "-m", "work")
    assert owned() == {
        "worktrees": {str(one): "agent/one", str(two): "agent/two"},
        "branches": ["agent/one", "agent/two"],
    }
    assert coord("ann worktree clean one two --salvage").answer["removed"] == ["one", "two"]
    assert owned() == {"worktrees": {}, "branches": ["agent/two"]}


def test_cleaning_removes_only_what_would_not_be_lost(shop: Path, coord: Coord) -> None:
    """Merged and clean goes; changed, unmerged, in the middle of something, or in use stays.

    GIT-10, REC-31.
    """
    for name in ("merged", "changed", "untracked", "unmerged", "rebasing", "in-use"):
        owner = "bob" if name == "in-use" else "ann"
        place = Path(coord(f"{owner} worktree add {name}").answer["path"])
        if name == "changed":
            (place / "src/app.py").write_text("half done\n")
        if name == "untracked":
            (place / "new.txt").write_text("new\n")
        if name == "unmerged":
            git(place, "commit", "-q", "--allow-empty", "-m", "work")
        if name == "rebasing":
            Path(git(place, "rev-parse", "--absolute-git-dir"), "MERGE_HEAD").touch()
    assert coord("bob worktree clean").answer["removed"] == [], "ann is there"
    coord("ann dereg")
    rows = {row["name"]: row for row in coord("bob worktree list").answer["worktrees"]}
    assert (rows["unmerged"]["unmerged"], rows["changed"]["changed"], rows["in-use"]["orphan"]) == (
        1,
        1,
        False,
    )
    assert coord("bob worktree clean --dry-run").answer["removed"] == ["merged"]
    said = coord("bob worktree clean")
    assert said.answer["removed"] == ["merged"]
    assert sorted(said.answer["kept"]) == ["changed", "rebasing", "unmerged", "untracked"]
    assert sorted(os.listdir(shop / ".worktrees")) == sorted(
        [".gitignore", "changed", "in-use", "rebasing", "unmerged", "untracked"]
    )
    assert "agent/merged" not in git(shop, "branch", "--format=%(refname:short)").split()
    assert coord("bob worktree clean nothing").code == 4


def test_salvage_keeps_every_byte_before_the_folder_goes(shop: Path, coord: Coord) -> None:
    """GIT-10: with --salvage changes are in a ref, commits on their branch; then the folder goes."""
    place = Path(coord("ann worktree add login").answer["path"])
    git(place, "commit", "-q", "--allow-empty", "-m", "work")
    (place / "src/app.py").write_text("half done\n")
    git(place, "add", "src/app.py")
    (place / "src/app.py").write_text("further\n")
    (place / "new\nline").write_text("new\n")
    coord("ann dereg")
    said = coord("bob worktree clean --salvage")
    assert said.answer["removed"] == ["login"], said
    ref = said.answer["salvaged"]["login"]
    assert not place.exists()
    assert git(shop, "show", f"{ref}:src/app.py") == "further"
    assert git(shop, "show", f"{ref}^2:src/app.py") == "half done"
    assert git(shop, "show", f"{ref}:new\nline") == "new"
    assert git(shop, "log", "-1", "--format=%s", "agent/login") == "work"


def test_a_crash_while_it_is_made_is_gone_on_from(shop: Path, coord: Coord) -> None:
    """Killed in the middle of the set-up: the next `add` completes it, and nothing is lost."""
    made = [
        *PROGRAM,
        "--session",
        "s-ann",
        "worktree",
        "add",
        "login",
        "--setup",
        "touch begun; exec sleep 60",
    ]
    process = subprocess.Popen(made, cwd=shop, start_new_session=True)
    deadline = time.monotonic() + 30
    while not (shop / ".worktrees/login/begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # noqa: TID251 - the set-up of another process is looked for
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    place = shop / ".worktrees/login"
    (place / "src/app.py").write_text("cut o")
    said = coord("ann worktree add login")
    assert (said.code, said.answer["new"]) == (0, False), said
    assert (place / "src/app.py").read_text() == "first\n"
    (warning,) = said.answer["warnings"]
    assert git(shop, "show", f"{warning.rpartition(' ')[2]}:src/app.py") == "cut o"


@pytest.mark.parametrize("step", ["branch", "no checkout", "index lock"])
def test_every_step_can_be_the_last(shop: Path, coord: Coord, step: str) -> None:
    """Whatever git had done when it was killed, the next `add` goes on from there."""
    place = shop / ".worktrees/login"
    git(shop, "branch", "agent/login")
    if step != "branch":
        git(
            shop,
            "worktree",
            "add",
            "-q",
            "--no-checkout",
            "--lock",
            "--reason",
            "coord: s-ann",
            str(place),
            "agent/login",
        )
    if step == "index lock":
        lock = Path(git(place, "rev-parse", "--absolute-git-dir"), "index.lock")
        lock.touch()
        assert coord("ann worktree add login").code == 75, "a git may still be at work"
        os.utime(lock, (0, 0))
    said = coord("ann worktree add login")
    assert said.code == 0, said
    assert (place / "src/app.py").read_text() == "first\n"
    assert git(place, "status", "--porcelain") == ""


def test_two_at_once_make_one(shop: Path, coord: Coord) -> None:
    """GIT-6: of two sessions that want the same name at the same time one gets it."""
    calls = [[*PROGRAM, "--session", f"s-{who}", "worktree", "add", "login"] for who in ("ann", "bob")]
    processes = [
        subprocess.Popen(call, cwd=shop, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for call in calls
    ]
    answers = [json.loads(process.communicate()[0]) for process in processes]
    assert sorted(answer["ok"] for answer in answers) == [False, True], answers


@pytest.mark.parametrize("kind", ["nested", "submodule"])
def test_a_repository_inside_is_not_taken_for_salvaged(
    shop: Path, coord: Coord, tmp_path: Path, kind: str
) -> None:
    """GIT-10: git keeps no file of a repository inside a worktree: so that one stays, even with --salvage."""
    if kind == "submodule":
        made_repository(tmp_path / "lib")
        git(shop, "submodule", "--quiet", "add", str(tmp_path / "lib"), "inside")
        git(shop, "commit", "-qm", "lib")
    place = Path(coord("ann worktree add login").answer["path"])
    if kind == "submodule":
        git(place, "submodule", "--quiet", "update", "--init")
        (place / "docs/help.md").write_text("half done\n")
    else:
        made_repository(place / "inside")
    (place / "inside/src/app.py").write_text("nowhere else\n")
    coord("ann dereg")
    said = coord("bob worktree clean --salvage")
    assert (said.answer["removed"], "another repository" in said.answer["kept"]["login"]) == ([], True), said
    assert (place / "inside/src/app.py").read_text() == "nowhere else\n"


def test_who_takes_a_worktree_over_keeps_it(shop: Path, coord: Coord) -> None:
    """GIT-10: what another session just takes is not removed below its feet."""
    place = coord("ann worktree add login").answer["path"]
    coord("ann dereg")
    with connect(session="s-cid", cwd=str(shop)) as client, exclusive(client, place):
        said = coord("bob worktree clean")
    assert (said.answer["removed"], list(said.answer["kept"])) == ([], ["login"])
    assert coord("bob worktree clean").answer["removed"] == ["login"]


def test_the_first_two_at_once_hide_their_folder(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT-5: two that make the first worktrees at the same moment both get theirs."""
    folder, really = shop / ".worktrees", os.listdir

    def listdir(path: str) -> list[str]:
        found = really(path)
        if path == str(folder):
            (folder / ".gitignore").write_text("*\n")  # the other one
        return found

    monkeypatch.setattr(os, "listdir", listdir)
    assert coord("ann worktree add login").code == 0
    assert git(shop, "status", "--porcelain") == ""
