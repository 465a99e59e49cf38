"""Salvage first: whoever gets a lock that somebody lost starts from a consistent tree."""

import os
import time
from pathlib import Path

import pytest

from coord.core.errors import NotFound
from coord.integrations.git.salvage import swap
from coord.sdk.client.client import Client
from tests.support.cli import Coord
from tests.support.git_folders import git


def lost_by_ann(shop: Path, coord: Coord) -> None:
    """Let ann edit a file under her lock."""
    assert coord("ann lock src/app.py").code == 0
    (shop / "src/app.py").write_text("half done\n")


def test_scn_27_a_stolen_file_is_as_head_has_it(shop: Path, coord: Coord) -> None:
    """SCN-27, REC-9, REC-11: the edits of who lost the lock are in a ref, and the file is restored."""
    lost_by_ann(shop, coord)
    fence = coord("ann locks").answer["locks"][0]["fence"]
    said = coord("bob steal src/app.py --force --reason hurry")
    ref = f"refs/coord/salvage/{fence}/1"
    assert ref in said.answer["warnings"][0], said
    assert (shop / "src/app.py").read_text() == "first\n"
    assert git(shop, "show", f"{ref}:src/app.py") == "half done"
    told = [message["subject"] for message in coord("ann recv --drain").answer["messages"]]
    assert f"Your edits are in {ref}" in told


def test_scn_27_preempted_edits_are_rolled_back(shop: Path, coord: Coord) -> None:
    """SCN-27, REC-11: after a preemption the next holder sees no partial edits; they can be brought back."""
    lost_by_ann(shop, coord)
    said = coord("bob preempt src/app.py --priority 9 --grace 0 --reason hotfix --wait 20s")
    assert said.code == 0, said
    assert (shop / "src/app.py").read_text() == "first\n"
    ref = said.answer["warnings"][0].rpartition(" ")[2]
    refused = coord("ann salvage restore", ref)
    assert (refused.code, refused.answer["error"]["code"]) == (1, "not_owner")
    assert coord("bob salvage restore", ref).answer["restored"] == ["src/app.py"]
    assert (shop / "src/app.py").read_text() == "half done\n"


@pytest.mark.parametrize("how", ["reset", "force"])
def test_a_lost_claim_is_rolled_back(shop: Path, coord: Coord, how: str) -> None:
    """REC-11: who takes a task over begins with the files as HEAD has them."""
    coord("bob task add A-001-app --files src/app.py")
    assert coord("ann task next").code == 0
    (shop / "src/app.py").write_text("half done\n")
    if how == "reset":
        coord("bob task reset A-001-app --reason stuck")
    said = coord("bob task next" if how == "reset" else "bob task claim A-001-app --force --reason stuck")
    assert "refs/coord/salvage/" in said.answer["warnings"][0], said
    assert (shop / "src/app.py").read_text() == "first\n"


@pytest.mark.parametrize("ending", ["released", "own", "other time", "other tree"])
def test_what_is_not_surely_of_the_loser_is_left(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """REC-11: edits that were handed over, are one's own, older, or of another worktree stay untouched."""
    elsewhere = shop.parent / "elsewhere"
    if ending == "other tree":
        git(shop, "worktree", "add", "-q", "-b", "x", str(elsewhere))
        monkeypatch.chdir(elsewhere)
    lost_by_ann(shop, coord)
    monkeypatch.chdir(shop)
    taker = "bob"
    if ending == "released":
        coord("ann unlock src/app.py")
    elif ending == "own":
        coord("bob steal src/app.py --force --reason x")
        (shop / "src/app.py").write_text("half done\n")
        coord("bob unlock src/app.py")
        taker = "ann"
    elif ending == "other time":
        os.utime(shop / "src/app.py", (time.time() - 9999, time.time() - 9999))
    take = (
        f"{taker} lock src/app.py"
        if ending in ("released", "own")
        else "bob steal src/app.py --force --reason x"
    )
    said = coord(take)
    assert said.code == 0
    assert (shop / "src/app.py").read_text() == "half done\n"


def test_new_files_are_kept_and_left(shop: Path, coord: Coord) -> None:
    """REC-11: what HEAD does not know is in the ref, stays where it is, and the answer names it."""
    coord("ann lock src")
    (shop / "src/new.py").write_text("new\n")
    (shop / "src/app.py").unlink()
    said = coord("bob steal src --force --reason x")
    assert "stay in place: src/new.py" in said.answer["warnings"][0]
    assert (shop / "src/new.py").read_text() == "new\n"
    assert (shop / "src/app.py").read_text() == "first\n"


def test_a_lock_without_a_loss_looks_at_nothing(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-11: where nobody lost a lock lately, a lock does not even ask git."""
    (shop / "src/app.py").write_text("edited\n")
    monkeypatch.setattr("coord.integrations.git.salvage.rollback.changes", None)
    assert "warnings" not in coord("ann lock src/app.py").answer


def test_a_checkpoint_is_kept_and_brought_back(shop: Path, coord: Coord) -> None:
    """REC-9, REC-10: before something risky a copy is kept; bringing it back keeps what was there first."""
    lost_by_ann(shop, coord)
    ref = coord("ann salvage keep --why", "before the rework").answer["ref"]
    (shop / "src/app.py").write_text("worse\n")
    said = coord("ann salvage restore", ref.removeprefix("refs/coord/salvage/"))
    assert (shop / "src/app.py").read_text() == "half done\n"
    assert git(shop, "show", f"{said.answer['before']}:src/app.py") == "worse"
    listed = coord("ann salvage list").answer["salvage"]
    assert [each["why"] for each in listed] == ["before the rework", f"before {ref} was restored"]
    assert coord("ann salvage restore 99/1").code == 4


def test_what_is_written_while_a_checkpoint_is_brought_back_is_kept(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-10: what came after the last look is in the ref that the answer names."""
    really = swap.swap_file

    def late(folder: int, name: str, new: str, taken: str) -> bool:
        (shop / "src/app.py").write_text("late\n")
        return really(folder, name, new, taken)

    lost_by_ann(shop, coord)
    ref = coord("ann salvage keep").answer["ref"]
    (shop / "src/app.py").write_text("worse\n")
    monkeypatch.setattr(swap, "swap_file", late)
    said = coord("ann salvage restore", ref)
    assert (shop / "src/app.py").read_text() == "half done\n"
    assert git(shop, "show", f"{said.answer['before']}:src/app.py") == "late"


def test_what_was_put_aside_is_shown_and_given_up(shop: Path, coord: Coord) -> None:
    """REC-11: by name or all that a branch has; nothing that nobody asked for."""
    lost_by_ann(shop, coord)
    ref = coord("ann salvage keep --why", "before the rework").answer["ref"]
    shown = coord("bob salvage show", ref.removeprefix("refs/coord/salvage/"))
    assert shown.answer["salvage"]["files"] == [{"path": "src/app.py", "state": "changed"}]
    assert "before the rework; no branch contains all of it" in shown.line
    assert coord("bob salvage prune").code == 2
    assert coord("bob salvage drop", ref).answer["error"]["code"] == "refused"
    git(shop, "commit", "-qam", "second")
    assert coord("bob salvage prune --merged --dry-run").line == "Dry run: 1 would be deleted"
    assert coord("bob salvage prune --merged --older-than 30d").answer["dropped"] == []
    (dropped,) = coord("bob salvage drop", ref).answer["dropped"]
    assert coord("bob salvage list").answer["salvage"] == []
    git(shop, "update-ref", ref, dropped["commit"])
    assert [each["ref"] for each in coord("bob salvage prune --merged").answer["dropped"]] == [ref]


def test_edits_of_a_session_that_nobody_knows_are_left(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-11: where the last holder worked has to be known; else these may be the edits of a person here."""

    def forgotten(*_: object) -> None:
        raise NotFound("there is no such session")

    coord("ann lock src/app.py")
    (shop / "src/app.py").write_text("by hand\n")
    monkeypatch.setattr(Client, "show", forgotten)
    assert "warnings" not in coord("bob steal src/app.py --force --reason x").answer
    assert (shop / "src/app.py").read_text() == "by hand\n"
