"""The gates at a push: before it leaves, and in a shared bare repository."""

import os
from pathlib import Path

import pytest

from coord.core.errors import Invalid
from coord.integrations.setup.shared_gate import install_gate
from tests.support.gate_harness import GateHarness


@pytest.fixture
def bare(shop: GateHarness, tmp_path: Path) -> GateHarness:
    """A shared bare repository, the origin of the shop, without a gate yet."""
    shop.plain("clone", "-q", "--bare", ".", str(tmp_path / "far.git"))
    shop.plain("remote", "add", "origin", str(tmp_path / "far.git"))
    shop.plain("fetch", "-q", "origin")
    return GateHarness(tmp_path / "far.git", shop.home)


@pytest.fixture
def guarded(shop: GateHarness, bare: GateHarness) -> GateHarness:
    """The same with a gate."""
    _share(shop, bare)
    return bare


def _share(shop: GateHarness, bare: GateHarness, *protected: str) -> str:
    with shop.client("ann") as client:
        return install_gate(client.location, str(bare.folder), protected).former


def _superseded_fence(shop: GateHarness) -> str:
    """Commit something on `side` for a claim that is taken over; return the commit."""
    shop.plain("checkout", "-qb", "side")
    shop.claim("ann", "T-1")
    late = shop.commit("ann", "app.py", "of ann\n")
    shop.claim("bob", "T-1", force=True)
    return late


@pytest.mark.parametrize("to", ["main", "side"])
def test_push_of_late_work_is_refused(shop: GateHarness, bare: GateHarness, to: str) -> None:
    """Issue 5, part 4: pre-push refuses a superseded claim's commit, and a person is told."""
    late = _superseded_fence(shop)
    said = shop.refused("ann", "push", "-q", "origin", f"side:{to}")
    assert f"commit {late[:10]} belongs to generation 1 of T-1" in said
    done = shop.git("", "push", "-q", "origin", f"side:{to}")
    assert done.code == 0
    assert "Warning only: agents would be stopped here." in done.said


def test_push_is_judged_for_what_is_new_there(shop: GateHarness, bare: GateHarness) -> None:
    """What the other side has already is not judged; deleting a branch there neither."""
    _superseded_fence(shop)
    shop.plain("push", "-q", "origin", "side")
    shop.commit("ann", "new.py", "x\n", "--no-verify")
    shop.ok("ann", "push", "-q", "origin", "side")
    assert "generation 2" in shop.refused("ann", "push", "-q", "origin", "side:main")
    shop.ok("ann", "push", "-q", "origin", ":side")
    assert not bare.plain("branch", "--list", "side")


@pytest.mark.parametrize("who", ["ann", ""], ids=["session", "person"])
def test_shared_repository_refuses_everybody(shop: GateHarness, guarded: GateHarness, who: str) -> None:
    """Issue 5, part 4: pre-receive refuses late work, whoever pushes it and whatever was left out locally."""
    late = _superseded_fence(shop)
    before = guarded.tip("main")
    assert late[:10] in shop.refused(who, "push", "-q", "--no-verify", "origin", "side:main")
    assert late[:10] in shop.refused(
        who, "-c", "core.hooksPath=/dev/null", "push", "-q", "origin", "side:main"
    )
    assert guarded.tip("main") == before


def test_shared_repository_judges_by_trailers(shop: GateHarness, guarded: GateHarness) -> None:
    """A file that is held is changed by its holder's commits only, as they say, whoever pushes."""
    shop.lock("bob", "app.py")
    shop.commit("bob", "app.py", "of bob\n")
    shop.ok("ann", "push", "-q", "--no-verify", "origin", "main")
    shop.write("app.py", "of pat\n")
    shop.plain("commit", "-qm", "of pat")
    assert "app.py is locked by bob" in shop.refused("bob", "push", "-q", "--no-verify", "origin", "main")
    shop.unlock("bob")
    shop.ok("", "push", "-q", "--no-verify", "origin", "main")


def test_work_that_was_pushed_in_time_is_late_for_main(shop: GateHarness, guarded: GateHarness) -> None:
    """A branch that was pushed while its claim held does not get to main after another took over."""
    shop.plain("checkout", "-qb", "side")
    shop.claim("ann", "T-1")
    shop.commit("ann", "app.py", "of ann\n")
    shop.ok("ann", "push", "-q", "--no-verify", "origin", "side")
    shop.claim("bob", "T-1", force=True)
    assert "generation 2" in shop.refused("ann", "push", "-q", "--no-verify", "origin", "side:main")


def test_protected_branches_can_be_named(shop: GateHarness, bare: GateHarness) -> None:
    """Which branches are protected is said when the gate is put up; a pattern names several."""
    _share(shop, bare, "release/*")
    shop.plain("checkout", "-qb", "side")
    shop.claim("ann", "T-1")
    shop.commit("ann", "app.py", "of ann\n")
    shop.ok("ann", "push", "-q", "--no-verify", "origin", "side")
    shop.claim("bob", "T-1", force=True)
    assert "generation 2" in shop.refused("ann", "push", "-q", "--no-verify", "origin", "side:release/1")
    shop.ok("ann", "push", "-q", "--no-verify", "origin", "side:main")


def test_hook_of_a_shared_repository_is_kept(shop: GateHarness, bare: GateHarness) -> None:
    """The hook that was there runs after the gate and reads the same lines; sharing twice keeps it."""
    hook = bare.folder / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nread old new ref\necho it was $ref >&2\nexit 3\n")
    hook.chmod(0o755)
    assert _share(shop, bare) == _share(shop, bare) == f"{hook}.coord-former"
    shop.write("new.py", "x\n")
    shop.plain("commit", "-qm", "new")
    done = shop.git("", "push", "-q", "--no-verify", "origin", "main")
    assert done.code != 0
    assert "it was refs/heads/main" in done.said
    os.remove(f"{hook}.coord-former")
    shop.ok("", "push", "-q", "--no-verify", "origin", "main")


def test_what_cannot_be_shared(shop: GateHarness, bare: GateHarness, tmp_path: Path) -> None:
    """Bad input: no bare repository, no branch, a repository that belongs to other locks; nothing changes."""
    with shop.client("ann") as client:
        place = client.location
    for folder, protected in ((shop.folder, ()), (tmp_path, ()), (bare.folder, ("a b",))):
        with pytest.raises(Invalid):
            install_gate(place, str(folder), protected)
    assert not (bare.folder / "coord").exists()
    install_gate(place, str(bare.folder))
    with pytest.raises(Invalid, match="another repository"):
        install_gate(place._replace(repository_id="other"), str(bare.folder))


def test_who_pushes_does_not_choose_by_whose_locks(shop: GateHarness, guarded: GateHarness) -> None:
    """Issue 5, part 4: the tenant of a shared repository is the one that it was put before it for."""
    shop.lock("bob", "app.py")
    shop.write("app.py", "of ann\n")
    shop.plain("commit", "-qm", "of ann")
    said = shop.refused("ann", "push", "--no-verify", "origin", "main", more={"COORD_TENANT": "other"})
    assert "app.py is locked by bob" in said


def test_replaced_commits_are_judged_as_they_are(shop: GateHarness, guarded: GateHarness) -> None:
    """Issue 5, part 4: a pushed `refs/replace/…` does not hide what a commit changes."""
    shop.lock("bob", "app.py")
    first = shop.tip()
    shop.write("app.py", "of ann\n")
    shop.plain("commit", "-qm", "of ann")
    harmless = shop.plain("commit-tree", f"{first}^{{tree}}", "-p", first, "-m", "harmless")
    bad = shop.tip()
    shop.plain("update-ref", f"refs/replace/{bad}", harmless)
    shop.ok("ann", "push", "-q", "--no-verify", "origin", f"refs/replace/{bad}")
    assert "app.py is locked by bob" in shop.refused("ann", "push", "--no-verify", "origin", f"{bad}:main")


def test_file_that_is_called_like_a_commit(shop: GateHarness, guarded: GateHarness) -> None:
    """Issue 5, part 4: no name of a file makes another commit answer for the files after it."""
    shop.lock("bob", "zoo.py")
    shop.plain("commit", "-q", "--allow-empty", "-m", "x\n\nCoord-Session: bob")
    shop.write(shop.tip(), "x\n")
    shop.write("zoo.py", "of ann\n")
    shop.plain("commit", "-qm", "of ann")
    assert "zoo.py is locked by bob" in shop.refused("ann", "push", "--no-verify", "origin", "main")


def test_no_hook_is_written_over(shop: GateHarness, guarded: GateHarness) -> None:
    """A hook that takes the place of the gate does not push the former one out when the gate comes back."""
    hook, former = guarded.folder / "hooks/pre-receive", guarded.folder / "hooks/pre-receive.coord-former"
    hook.write_text("#!/bin/sh\n# second\n")
    former.write_text("#!/bin/sh\n# first\n")
    with pytest.raises(Invalid, match="exists already"):
        _share(shop, guarded)
    assert ("second" in hook.read_text(), "first" in former.read_text()) == (True, True)
    former.unlink()
    assert _share(shop, guarded) == str(former)
    assert "second" in former.read_text()
