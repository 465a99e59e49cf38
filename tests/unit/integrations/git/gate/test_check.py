"""The gates at a commit: pre-commit and prepare-commit-msg."""

import os
from pathlib import Path
from shutil import rmtree

import pytest

from tests.support.gate_harness import GateHarness, made_gated


def test_commit_of_a_held_file_is_refused(shop: GateHarness) -> None:
    """Issue 5, part 4: no session commits what another holds; it learns who does, and the next step."""
    shop.lock("bob", "app.py")
    shop.write("app.py", "of bob\n")
    shop.write("new.py", "of ann\n")
    said = shop.refused("ann", "commit", "-qm", "mine")
    assert "app.py is locked by bob" in said
    assert "git commit -- FILES" in said
    assert "new.py" not in said
    shop.ok("ann", "commit", "-qm", "mine", "--", "new.py")
    assert shop.plain("show", "--name-only", "--format=") == "new.py"
    shop.ok("bob", "commit", "-qm", "his")


def test_a_glob_is_in_the_way_of_its_own_files_alone(shop: GateHarness) -> None:
    """Issue 5, part 4: a file in a commit is no folder: what others hold as `**/*.py` is not README.md."""
    shop.lock("bob", "**/*.py")
    shop.write("README.md", "of ann\n")
    shop.ok("ann", "commit", "-qm", "mine", "--", "README.md")
    shop.write("deep/new.py", "of ann\n")
    assert "deep/new.py is locked by bob" in shop.refused("ann", "commit", "-qm", "more")


@pytest.mark.parametrize("kind", ["symlink", "chain", "hard link"])
def test_a_link_that_was_made_after_the_grant(shop: GateHarness, kind: str) -> None:
    """Issue 15: the gate asks for the other names of a file; whoever has locked it itself may commit it."""
    shop.write("lib/real.py", "first\n")
    shop.ok("cid", "commit", "-qm", "first")
    shop.lock("bob", "src")
    (shop.folder / "src").mkdir()
    if kind == "hard link":
        os.link(shop.folder / "lib/real.py", shop.folder / "src/two.py")
    else:
        (shop.folder / "src/link").symlink_to("../lib" if kind == "symlink" else "../hop")
        (shop.folder / "hop").symlink_to("lib")
    with (shop.folder / "lib/real.py").open("a") as file:
        file.write("of ann\n")
    shop.plain("add", "lib")
    said = shop.refused("ann", "commit", "-qm", "mine")
    assert "lib/real.py, which src/" in said
    assert " is locked by bob as file:src" in said
    if kind != "hard link":  # which is the locked file, by another name
        shop.lock("ann", "lib/real.py")
        shop.ok("ann", "commit", "-qm", "mine")


def test_a_link_elsewhere_is_in_nobodys_way(shop: GateHarness) -> None:
    """Only links that lead to the changed file count, and a link to a folder above leads to all below."""
    shop.lock("bob", "src")
    (shop.folder / "src").mkdir()
    (shop.folder / "src/out").symlink_to("/etc")
    (shop.folder / "src/self").symlink_to("self")
    (shop.folder / "src/docs").symlink_to("../docs")
    shop.write("lib.py", "of ann\n")
    shop.ok("ann", "commit", "-qm", "mine", "--", "lib.py")
    (shop.folder / "src/up").symlink_to("..")
    shop.write("lib.py", "more of ann\n")
    assert "lib.py, which src/up/lib.py leads to" in shop.refused("ann", "commit", "-qm", "m", "--", "lib.py")


def test_person_is_told(shop: GateHarness) -> None:
    """Issue 5, part 4: people are told that somebody works on a file, and decide themselves."""
    shop.lock("bob", "*.py")
    shop.write("app.py", "mine\n")
    done = shop.git("", "commit", "-m", "mine")
    assert done.code == 0
    assert "app.py is locked by bob as file:*.py" in done.said
    assert "Warning only: agents would be stopped here." in done.said
    assert "Coord-" not in shop.message()


@pytest.mark.parametrize("sign", ["CLAUDECODE", "AI_AGENT"])
def test_agent_without_session_is_no_person(shop: GateHarness, sign: str) -> None:
    """DESIGN 5: who shows signs of an agent tool is never taken for a person."""
    shop.write("app.py", "x\n")
    done = shop.git("", "commit", "-m", "mine", more={sign: "1"})
    assert done.code == 1
    assert "no session is known" in done.said


def test_read_lock_is_in_nobodys_way(shop: GateHarness) -> None:
    """Issue 5, part 4: only write locks count."""
    with shop.client("bob") as client:
        client.acquire("app.py", mode="read")
    assert shop.commit("ann", "app.py", "x\n") == shop.tip("main")


def test_names_of_all_kinds(shop: GateHarness) -> None:
    """Names with spaces, quotes, dashes, wildcards and line ends are judged like others."""
    names = [
        "a b.py",
        "quo'te\".py",
        "-dash.py",
        "[x].py",
        "é.py",
        "line\nend.py",
        "x" * 250 + "/" + "y" * 250,
    ]
    for name in names:
        place = shop.folder / "src" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x\n")
    shop.plain("add", "src")
    shop.lock("bob", "src")
    said = shop.refused("ann", "commit", "-qm", "mine")
    assert said.count("is locked by bob as file:src") == len(names)
    shop.unlock("bob")
    shop.ok("ann", "commit", "-qm", "mine")


def test_many_files_are_judged_at_once(shop: GateHarness) -> None:
    """A commit of more files than one question may name is judged all the same."""
    for number in range(300):
        (shop.folder / f"f{number}").write_text("x\n")
    shop.plain("add", ".")
    shop.lock("bob", "f299")
    assert "f299 is locked by bob" in shop.refused("ann", "commit", "-qm", "all")


def test_no_verify_does_not_help(shop: GateHarness) -> None:
    """Issue 5, part 4: `--no-verify` leaves pre-commit out, but not the gate at the message."""
    shop.lock("bob", "app.py")
    shop.write("app.py", "x\n")
    assert "app.py is locked by bob" in shop.refused("ann", "commit", "-qnm", "mine")


def test_trailers(shop: GateHarness) -> None:
    """Issue 5, part 4: a commit says session, task, generation, and the fences of its locks."""
    app = shop.lock("ann", "app.py")
    shop.lock("ann", "other.py")
    generation = shop.claim("ann", "T-1")
    shop.commit("ann", "app.py", "x\n")
    assert shop.message().splitlines()[1:] == [
        "",
        "Coord-Session: ann",
        f"Coord-Task: shop/T-1 generation {generation}",
        f"Coord-Fence: {app} file:app.py",
    ]


def test_trailers_of_an_amended_commit(shop: GateHarness) -> None:
    """Amending adds what is held now, each thing once, and keeps what is not held any more."""
    app = shop.lock("ann", "app.py")
    shop.commit("ann", "app.py", "x\n", "--trailer", "Reviewed-by: Pat")
    shop.unlock("ann")
    lib = shop.lock("ann", "lib.py")
    shop.write("lib.py", "x\n")
    shop.ok("ann", "commit", "-q", "--amend", "--no-edit")
    lines = shop.message().splitlines()
    assert lines[2:] == [
        "Reviewed-by: Pat",
        "Coord-Session: ann",
        f"Coord-Fence: {app} file:app.py",
        f"Coord-Fence: {lib} file:lib.py",
    ]


def test_empty_message_stays_empty(shop: GateHarness) -> None:
    """Trailers do not make a message of nothing."""
    shop.write("app.py", "x\n")
    done = shop.git("ann", "commit", "-m", "")
    assert done.code != 0
    assert "empty commit message" in done.said


def test_repository_without_commits(tmp_path: Path) -> None:
    """Issue 5, proof: the first commit of a repository is judged, too."""
    shop = made_gated(tmp_path / "made", commits=False)
    shop.lock("bob", "a.py")
    shop.write("a.py", "x\n")
    assert "a.py is locked by bob" in shop.refused("ann", "commit", "-qm", "first")
    assert "a.py is locked by bob" in shop.refused("ann", "commit", "-qnm", "first")
    shop.ok("bob", "commit", "-qm", "first")


def test_repository_whose_pin_is_gone(tmp_path: Path) -> None:
    """DESIGN 2: a stub is only where coord was in use, so without its pin a session is refused."""
    shop = made_gated(tmp_path / "made")
    rmtree(shop.folder / ".git/coord")
    (shop.folder / ".git/coord").mkdir()
    (shop.folder / ".git/coord.id").unlink()
    shop.write("app.py", "x\n")
    done = shop.git("ann", "commit", "-m", "mine")
    assert done.code == 1
    assert "coord.id is missing" in done.said
    done = shop.git("", "commit", "-m", "mine")
    assert done.code == 0
    assert "you are a person" in done.said
    assert not list((shop.folder / ".git/coord").iterdir())


def test_lost_store_refuses_sessions(shop: GateHarness) -> None:
    """DESIGN 2: doubt refuses a session; a person is told, and goes on."""
    (shop.folder / ".git/coord/store/coord.db").unlink()
    shop.write("app.py", "x\n")
    done = shop.git("ann", "commit", "-m", "mine")
    assert done.code == 1
    assert "failed: " in done.said
    assert "coord init --new-store" in done.said
    done = shop.git("", "commit", "-m", "mine")
    assert done.code == 0
    assert "you are a person" in done.said


def test_worktrees_share_the_gates(shop: GateHarness, tmp_path: Path) -> None:
    """LCK: a lock means the same file in every worktree, and the gate runs in each."""
    shop.plain("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = GateHarness(tmp_path / "side", shop.home)
    shop.lock("bob", "app.py")
    side.write("app.py", "x\n")
    assert "app.py is locked by bob" in side.refused("ann", "commit", "-qm", "mine")


def test_submodule_is_judged_by_its_own_locks(shop: GateHarness, tmp_path: Path) -> None:
    """DESIGN 6: in the repository above, a submodule is one path; its files belong to the submodule."""
    part = made_gated(tmp_path / "part")
    shop.plain("submodule", "--quiet", "add", str(part.folder), "sub")
    shop.plain("commit", "-qm", "with a part")
    sub = GateHarness(shop.folder / "sub", shop.home)
    sub.commit("ann", "app.py", "x\n")
    shop.plain("add", "sub")
    shop.lock("bob", "sub")
    assert "sub is locked by bob" in shop.refused("ann", "commit", "-qm", "newer part")


def test_stash_and_cherry_pick(shop: GateHarness) -> None:
    """Issue 5, proof: a stash is nobody's commit; a cherry-pick is judged as one."""
    shop.plain("checkout", "-qb", "side")
    picked = shop.commit("ann", "app.py", "x\n")
    shop.plain("checkout", "-q", "main")
    shop.lock("bob", "app.py")
    shop.write("lib.py", "x\n")
    shop.ok("ann", "stash", "-q")
    assert "app.py is locked by bob" in shop.refused("ann", "cherry-pick", picked)
