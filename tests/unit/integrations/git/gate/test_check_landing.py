"""The gate before protected branches: whatever moves main, only commits in order do."""

from pathlib import Path

import pytest

from coord.host.repository import find_repository
from coord.integrations.git.gate.upstream import note_trusted
from coord.sdk.reports.activity import EventFilter, newest_events
from tests.support.gate_harness import GateHarness


@pytest.fixture
def late(shop: GateHarness) -> str:
    """A commit on branch `side`, made for a claim that somebody else has taken over since."""
    shop.plain("checkout", "-qb", "side")
    shop.claim("ann", "T-1")
    shop.commit("ann", "app.py", "of ann\n")
    shop.claim("bob", "T-1", force=True)
    return shop.tip()


def test_superseded_claim_cannot_move_main(shop: GateHarness, late: str) -> None:
    """Issue 5, part 4: by plumbing or porcelain, a superseded claim's commit does not get to main."""
    before = shop.tip("main")
    for move in (
        ("update-ref", "refs/heads/main", "side"),
        ("branch", "-f", "main", "side"),
        ("fetch", "-q", ".", "side:main"),
        ("checkout", "-qB", "main", "side"),
    ):
        said = shop.refused("ann", *move)
        assert f"commit {late[:10]} belongs to generation 1 of T-1, but generation 2 has taken over" in said
        assert shop.tip("main") == before


def test_refused_commits_are_recorded(shop: GateHarness, late: str) -> None:
    """OBS-5: the refusal of a gate is an event, which says by which gate, of whom and why."""
    shop.refused("ann", "update-ref", "refs/heads/main", "side")
    with shop.client("ann") as client:
        (refused,) = newest_events(client, EventFilter("git.commit_refused")).events
    assert refused.details["session"] == "ann"
    assert refused.details["hook"] == "reference-transaction"
    assert late[:10] in refused.details["detail"]


def test_main_is_guarded_from_every_worktree(shop: GateHarness, late: str, tmp_path: Path) -> None:
    """Issue 5, proof: the gate of a protected branch runs in every worktree."""
    shop.plain("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"), "main")
    other = GateHarness(tmp_path / "other", shop.home)
    assert late[:10] in other.refused("ann", "branch", "-f", "main", "side")


def test_superseded_claim_cannot_be_merged(shop: GateHarness, late: str) -> None:
    """Issue 5, part 4: a merge into main is refused, not even `--no-verify` helps."""
    shop.plain("checkout", "-q", "main")
    before = shop.tip("main")
    for move in (
        ("merge", "-q", "side"),
        ("merge", "-q", "--no-ff", "--no-verify", "side"),
        ("reset", "-q", "--hard", "side"),
    ):
        assert late[:10] in shop.refused("ann", *move)
        assert shop.tip("main") == before
        shop.plain("reset", "-q", "--hard", "main")


def test_rebase_keeps_the_superseded_generation(shop: GateHarness, late: str) -> None:
    """A rebased or picked commit keeps the generation it was made under, unless the task is claimed anew."""
    shop.plain("checkout", "-q", "main")
    shop.write("lib.py", "of pat\n")
    shop.plain("commit", "-qm", "of pat")
    shop.plain("checkout", "-q", "side")
    shop.ok("ann", "rebase", "-q", "main")
    assert shop.tip() != late
    assert "generation 2 has taken over" in shop.refused("ann", "update-ref", "refs/heads/main", "side")
    shop.plain("checkout", "-q", "main")
    assert "generation 2 has taken over" in shop.refused("ann", "cherry-pick", "side")
    shop.plain("cherry-pick", "--abort")
    shop.claim("ann", "T-1", force=True)
    shop.plain("checkout", "-q", "side")
    shop.ok("ann", "rebase", "-q", "--force-rebase", "main")
    assert "Coord-Task: shop/T-1 generation 3" in shop.message()
    shop.ok("ann", "update-ref", "refs/heads/main", "side")


def test_stolen_fence_cannot_move_main(shop: GateHarness) -> None:
    """Issue 5, part 4: work under a lock that another took is late; locked again and amended it lands."""
    shop.plain("checkout", "-qb", "side")
    shop.lock("ann", "app.py")
    shop.commit("ann", "app.py", "of ann\n")
    shop.steal("bob", "app.py")
    shop.unlock("bob")
    said = shop.refused("ann", "update-ref", "refs/heads/main", "side")
    assert "which was lost (stolen); bob has held it since" in said
    shop.lock("ann", "app.py")
    shop.write("app.py", "of both\n")
    shop.ok("ann", "commit", "-q", "--amend", "--no-edit")
    shop.ok("ann", "update-ref", "refs/heads/main", "side")


def test_stolen_part_of_a_glob(shop: GateHarness) -> None:
    """Of a lock on many files that was lost, only the part that another one had since is late."""
    shop.plain("checkout", "-qb", "side")
    shop.lock("ann", "*.py")
    shop.commit("ann", "lib.py", "of ann\n")
    shop.commit("ann", "app.py", "of ann\n")
    shop.steal("bob", "app.py")
    said = shop.refused("ann", "update-ref", "refs/heads/main", "side")
    assert "changes app.py under fence" in said
    assert "lib.py" not in said


def test_finished_work_lands_while_another_holds_the_file(shop: GateHarness) -> None:
    """A lock given back in order proves that its commit was finished: it lands, whoever holds it now."""
    shop.plain("checkout", "-qb", "side")
    shop.lock("ann", "app.py")
    shop.commit("ann", "app.py", "of ann\n")
    shop.unlock("ann")
    unproven = shop.commit("ann", "lib.py", "of ann\n")
    shop.lock("bob", "app.py", "lib.py")
    said = shop.refused("ann", "update-ref", "refs/heads/main", "side")
    assert "lib.py is locked by bob as file:lib.py" in said
    assert unproven[:10] in said
    assert "app.py" not in said
    shop.ok("ann", "update-ref", "refs/heads/main", "side~1")


def test_what_main_has_is_not_judged_again(shop: GateHarness, tmp_path: Path) -> None:
    """A commit that was accepted stays accepted, also pulled from elsewhere, whatever became of its claim."""
    shop.claim("ann", "T-1")
    shop.commit("ann", "app.py", "of ann\n")
    shop.claim("bob", "T-1", force=True)
    shop.plain("clone", "-q", "--bare", ".", str(tmp_path / "far.git"))
    shop.plain("remote", "add", "far", str(tmp_path / "far.git"))
    shop.plain("fetch", "-q", "far")
    repository = find_repository(str(shop.folder))
    assert repository is not None
    note_trusted(repository)
    shop.plain("reset", "-q", "--hard", "HEAD~1")
    shop.ok("ann", "merge", "-q", "far/main")
    assert shop.tip("main") == shop.tip("far/main")


def test_person_may_move_main(shop: GateHarness, late: str) -> None:
    """Issue 5, part 4: a person is told, and main moves."""
    done = shop.git("", "update-ref", "refs/heads/main", "side")
    assert done.code == 0
    assert "generation 2 has taken over" in done.said
    assert shop.tip("main") == late


def test_other_branches_are_free(shop: GateHarness, late: str) -> None:
    """Only protected branches are guarded: late work is kept, and can be looked at."""
    shop.ok("ann", "branch", "kept", "side")
    shop.ok("ann", "tag", "kept-too", "side")
    shop.ok("ann", "branch", "main-2", "side")
    assert shop.tip("kept") == shop.tip("kept-too") == shop.tip("main-2") == late


def test_merge_is_judged_for_what_neither_side_had(shop: GateHarness) -> None:
    """Merging main into one's branch brings what others did, and is no change of theirs."""
    shop.plain("checkout", "-qb", "side")
    shop.commit("ann", "new.py", "x\n")
    shop.plain("checkout", "-q", "main")
    shop.lock("bob", "app.py")
    shop.commit("bob", "app.py", "of bob\n")
    shop.plain("checkout", "-q", "side")
    shop.ok("ann", "merge", "-q", "--no-edit", "main")
    shop.ok("ann", "update-ref", "refs/heads/main", "side")
    assert shop.tip("main") == shop.tip("side")


def test_merge_that_drops_what_a_side_did_is_judged(shop: GateHarness) -> None:
    """A merge that git alone would have made otherwise changes the files in which it differs."""
    shop.plain("checkout", "-qb", "side")
    shop.commit("ann", "new.py", "x\n")
    shop.plain("checkout", "-q", "main")
    shop.lock("bob", "app.py")
    shop.commit("bob", "app.py", "of bob\n")
    shop.plain("checkout", "-q", "side")
    shop.plain("merge", "-q", "-s", "ours", "--no-edit", "main")
    assert "app.py is locked by bob" in shop.refused("ann", "update-ref", "refs/heads/main", "side")
