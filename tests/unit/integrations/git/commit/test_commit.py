"""`coord commit`: exactly what is held, whatever it is called and whatever others do."""

import os
import signal
import time
from pathlib import Path

import pytest

from coord.integrations.git.commit.commit import commit
from coord.sdk.client.client import connect
from tests.support.cli import PROGRAM, Coord, started
from tests.support.consent import write_configuration
from tests.support.git_folders import git

HOSTILE = ("a b.txt", "-rf", "quo'te\".txt", "$(touch x).txt", "*", ":(glob)x", "é.txt", "[a].txt")
UNNAMEABLE = ("new\nline", "tab\t", os.fsdecode(b"\xff"))


def committed(folder: Path, commit: str = "HEAD") -> list[str]:
    """Return the files of a commit."""
    return git(folder, "show", "--no-renames", "--name-status", "--format=", commit).split("\n")


def test_scn_48_only_what_is_held_is_committed(shop: Path, coord: Coord) -> None:
    """Held files go in, new ones too; nothing that others changed or staged.

    SCN-48, GIT-16, GIT-19, GIT-15, LCK-83.
    """
    (shop / "src/app.py").write_text("second\n")
    (shop / "src/my notes.txt").write_text("new\n")
    (shop / "docs/help.md").write_text("of bob\n")
    git(shop, "add", "docs/help.md")
    coord("ann lock src/app.py")
    coord("ann lock", "src/my notes.txt")
    coord("bob lock docs/help.md")
    said = coord("ann commit -m", "feat: add login")
    assert said.code == 0, said
    assert committed(shop) == ["M\tsrc/app.py", "A\tsrc/my notes.txt"]
    assert git(shop, "log", "-1", "--format=%s") == "feat: add login"
    assert git(shop, "status", "--porcelain") == "M  docs/help.md", "what bob staged is as it was"
    assert said.answer["commit"] == git(shop, "rev-parse", "HEAD")
    assert said.answer["left_out"] == ["docs/help.md"]
    (event,) = coord("ann log tail --op git.committed").answer["events"]
    assert event["files"] == ["src/app.py", "src/my notes.txt"]


@pytest.mark.parametrize("gates", [False, True], ids=["no gates", "gates"])
def test_a_commit_is_signed_once(shop: Path, coord: Coord, gates: bool) -> None:
    """Issue 5: what coord commits carries its trailers, each once, whether git's gates are there or not."""
    if gates:
        coord("ann init --yes")
        assert (shop / ".git/hooks/prepare-commit-msg").exists() or "hook.coord" in git(shop, "config", "-l")
    fence = coord("ann lock src").answer["locks"][0]["fence"]
    (shop / "src/app.py").write_text("second\n")
    said = coord("ann commit -m", "why\n\nCoord-Session: stale\nSigned-off-by: Ann <ann@example.org>")
    assert said.code == 0, said
    assert git(shop, "log", "-1", "--format=%B").rstrip().split("\n") == [
        *("why", "", "Signed-off-by: Ann <ann@example.org>"),
        *("Coord-Session: s-ann", f"Coord-Fence: {fence} file:src"),
    ]


def test_hostile_names_are_only_names(shop: Path, coord: Coord) -> None:
    """GIT-16: spaces, quotes, dashes, wildcards, line ends, bytes that are no text: each is one file."""
    coord("ann lock .")
    for name in (*HOSTILE, *UNNAMEABLE):
        (shop / name).write_text("new\n")
    said = coord("ann commit -m", "-m is no flag $(here)")
    assert said.code == 0, said
    assert said.answer["missing"] == []
    assert len(said.answer["files"]) == len((*HOSTILE, *UNNAMEABLE))
    assert git(shop, "status", "--porcelain") == ""
    assert git(shop, "log", "-1", "--format=%s") == "-m is no flag $(here)"
    for name in (*HOSTILE, *UNNAMEABLE):
        (shop / name).unlink()
    assert coord("ann commit -m", "all gone").code == 0
    assert git(shop, "ls-files") == "docs/help.md\nsrc/app.py"


def test_each_hostile_name_can_be_held_alone(shop: Path, coord: Coord) -> None:
    """GIT-16: a lock on one file whose name looks like a pattern covers no other."""
    for name in ("[a].txt", "a.txt"):
        (shop / name).write_text("new\n")
    assert coord("ann lock --literal", "[a].txt").code == 0
    assert coord("ann commit -m x").answer["files"] == ["[a].txt"]


def test_missing_files_are_warned_of(shop: Path, coord: Coord) -> None:
    """GIT-17, GIT-18, SCN-48: a held file that is not in the commit is named."""
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src/app.py docs/help.md")
    said = coord("ann commit -m x")
    assert said.answer["missing"] == ["docs/help.md"]
    assert "\nNot committed: docs/help.md (held, unchanged here)\n" in f"\n{said.line}"


def test_files_that_are_named_have_to_be_held(shop: Path, coord: Coord) -> None:
    """GIT-16: of named files only these go in, and one that is not held refuses all."""
    for name in ("src/app.py", "docs/help.md"):
        (shop / name).write_text("second\n")
    coord("ann lock src/app.py")
    before = git(shop, "rev-parse", "HEAD")
    refused = coord("ann commit -m x docs/help.md")
    assert (refused.code, refused.answer["error"]["code"]) == (1, "not_owner")
    assert git(shop, "rev-parse", "HEAD") == before
    assert coord("ann commit -m x src/app.py").answer["files"] == ["src/app.py"]


def test_nothing_held_is_nothing_to_commit(shop: Path, coord: Coord) -> None:
    """GIT-19: without locks nothing is committed, however much is changed; a read lock is not enough."""
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src/app.py --mode read")
    refused = coord("ann commit -m x")
    assert (refused.code, refused.answer["error"]["code"]) == (1, "refused")
    assert "1 other file does" in refused.line
    assert coord("ann commit -m", " ").code == 2


def test_a_stale_fence_is_refused(shop: Path, coord: Coord) -> None:
    """GIT-16, AMB-38: who knows only an older fence was away while somebody else had the file."""
    first = coord("ann lock src/app.py").answer["locks"][0]["fence"]
    coord("bob steal src/app.py --force --reason hurry")
    coord("bob unlock src/app.py")
    (shop / "src/app.py").write_text("second\n")
    second = coord("ann lock src/app.py").answer["locks"][0]["fence"]
    refused = coord(f"ann commit -m x --fence {first}")
    assert (refused.code, refused.answer["error"]["code"]) == (1, "lost")
    assert coord(f"ann commit -m x --fence {second}").code == 0


def test_a_lock_lost_under_the_commit_leaves_no_record(shop: Path, coord: Coord) -> None:
    """The log tells only of commits whose locks were held to the end; hooks act as the session.

    GIT-21, AMB-38.
    """
    hook = shop / ".git/hooks/pre-commit"
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src/app.py")
    hook.write_text(f"#!/bin/sh\n{' '.join(PROGRAM)} unlock file:src/app.py\n")
    hook.chmod(0o755)
    said = coord("ann commit -m x")
    assert (said.code, said.answer["recorded"]) == (0, False), said
    assert "not in the log" in said.line
    assert coord("ann log tail --op git.committed").answer["events"] == []


def test_a_hook_that_adds_files_is_noticed(shop: Path, coord: Coord) -> None:
    """GIT-17, GIT-21: what the commit has and nobody meant is named, and the log does not vouch for it."""
    hook = shop / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho more > docs/help.md\ngit add docs/help.md\n")
    hook.chmod(0o755)
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src/app.py")
    said = coord("ann commit -m x")
    assert (said.answer["unexpected"], said.answer["recorded"]) == (["docs/help.md"], False)


def test_a_commit_that_cannot_be_compared_stands(shop: Path, coord: Coord) -> None:
    """GIT-20, GIT-21: where git cannot show the commit, it is reported, kept, and not logged."""
    hook = shop / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\ngit config log.date nonsense\n")
    hook.chmod(0o755)
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src/app.py")
    said = coord("ann commit -m x")
    git(shop, "config", "--unset", "log.date")
    assert (said.code, said.answer["recorded"]) == (0, False)
    assert "could not be checked" in said.answer["warnings"][0]
    assert committed(shop) == ["M\tsrc/app.py"]
    assert coord("ann log tail --op git.committed").answer["events"] == []


def test_a_hook_that_refuses_is_obeyed(shop: Path, coord: Coord) -> None:
    """The repository's own hooks have their say, and a refused commit changes nothing."""
    hook = shop / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho no tests >&2\nexit 1\n")
    hook.chmod(0o755)
    (shop / "src/new.py").write_text("new\n")
    coord("ann lock src/new.py")
    refused = coord("ann commit -m x")
    assert refused.answer["error"]["code"] == "git_failed"
    assert "no tests" in refused.line
    assert (shop / "src/new.py").read_text() == "new\n"
    hook.unlink()
    assert coord("ann commit -m x").code == 0, "again works, although git knew of the file already"


def test_a_slow_hook_is_told_and_waited_for(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook takes as long as it wants, as in git; it is told, and the locks do not run out."""
    hook = shop / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nwhile [ ! -e .git/told ]; do sleep 0.02; done\n")
    hook.chmod(0o755)
    monkeypatch.setattr("coord.integrations.git.run.WAITING_S", 0.05)
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src/app.py --ttl 15m")
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        (shop / ".git/told").touch()

    with connect(session="s-ann", cwd=str(shop)) as client:
        assert commit(client, "x", notify=tell).recorded
    assert "the hooks of the commit have been running for" in told[0]
    assert coord("ann log tail --op lock.renewed").answer["events"]


@pytest.mark.parametrize("by", ["flag", "coord.toml"])
def test_hooks_are_given_up_where_that_is_set(shop: Path, coord: Coord, by: str) -> None:
    """A limit on the time of hooks is a setting; nothing is committed when it is over."""
    hook = shop / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexec sleep 60\n")
    hook.chmod(0o755)
    (shop / "src/app.py").write_text("second\n")
    coord("ann lock src/app.py")
    if by == "coord.toml":
        write_configuration(shop, '[commit]\nhooks_timeout = "0.2s"\n', os.environ)
    refused = coord("ann commit -m x", *(["--hooks-timeout", "0.2s"] if by == "flag" else []))
    assert "git commit did not end within 0.2 s" in refused.line
    assert refused.answer["error"]["code"] == "unavailable"
    assert git(shop, "log", "--format=%s") == "first"
    write_configuration(shop, "[commit]\nhooks_timeout = true\n", os.environ)
    assert "hooks_timeout in" in coord("ann commit -m x").line


@pytest.mark.parametrize("first", [False, True], ids=["from below", "the first commit"])
def test_from_anywhere_and_from_the_beginning(
    shop: Path, coord: Coord, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    """In a folder below the top, and in a repository without commits; --unlock gives locks back.

    GIT-16, AMB-36.
    """
    if first:
        git(shop, "checkout", "-q", "--orphan", "fresh")
        git(shop, "rm", "-rfq", "--cached", ".")
    (shop / "src/app.py").write_text("second\n")
    monkeypatch.chdir(shop / "src")
    coord("ann lock app.py")
    said = coord("ann commit -m x --unlock app.py")
    assert said.answer["files"] == ["src/app.py"], said
    assert said.answer["unlocked"] == ["file:src/app.py"]
    assert coord("ann locks").answer["locks"] == []


def test_two_agents_commit_at_once(shop: Path, coord: Coord) -> None:
    """GIT-7, GIT-16: in one shared tree two commits at once wait for each other, and both are whole."""
    names = {"ann": "src/app.py", "bob": "docs/help.md"}
    for who, name in names.items():
        (shop / name).write_text(f"of {who}\n")
        coord(f"{who} lock {name}")
    processes = [started(who, "commit", "-m", f"of {who}", cwd=shop) for who in names]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert sorted(committed(shop) + committed(shop, "HEAD~1")) == ["M\tdocs/help.md", "M\tsrc/app.py"]


def test_a_commit_that_lands_first_is_built_upon(shop: Path, coord: Coord) -> None:
    """GIT-7: HEAD moves while git commits, as between two agents: the next attempt lands on top of it."""
    hook = shop / ".git/hooks/commit-msg"
    other = "git commit-tree -p HEAD -m 'of another' 'HEAD^{tree}'"
    hook.write_text(f"#!/bin/sh\nrm .git/hooks/commit-msg\nexec git update-ref HEAD $({other})\n")
    hook.chmod(0o755)
    (shop / "src/app.py").write_text("of ann\n")
    coord("ann lock src/app.py")
    assert coord("ann commit -m", "of ann").code == 0
    assert git(shop, "log", "-2", "--format=%s").split("\n")[:2] == ["of ann", "of another"]
    assert committed(shop) == ["M\tsrc/app.py"]


def test_a_crash_under_the_commit_loses_nothing(shop: Path, coord: Coord) -> None:
    """GIT-21: coord is killed while git commits: nothing is lost, and the next call goes on from there."""
    hook = shop / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nread -r _ _ _ coord _ < /proc/$PPID/stat\nkill -9 $coord\n")
    hook.chmod(0o755)
    (shop / "src/app.py").write_text("second\n")
    (shop / "src/new.py").write_text("new\n")
    coord("ann lock src")
    before = git(shop, "rev-parse", "HEAD")
    process = started("ann", "commit", "-m", "x", cwd=shop)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while git(shop, "rev-parse", "HEAD") == before:
        assert time.monotonic() < deadline
        time.sleep(0.02)  # noqa: TID251 - git goes on by itself
    assert committed(shop) == ["M\tsrc/app.py", "A\tsrc/new.py"]
    assert coord("ann log tail --op git.committed").answer["events"] == []
    hook.unlink()
    (shop / "src/app.py").write_text("third\n")
    assert coord("ann commit -m y").code == 0


def test_a_commit_that_is_refused_leaves_new_files_unknown(shop: Path, coord: Coord) -> None:
    """GIT-19: after a hook said no, the index is as it was: nobody's `commit --all` has the new file."""
    hook = shop / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (shop / "new.py").write_text("new\n")
    coord("ann lock new.py")
    assert coord("ann commit -m x").code == 1
    assert git(shop, "status", "--porcelain") == "?? new.py"


@pytest.mark.parametrize("words", ["commit -m late", "commit -m late src/app.py"])
def test_a_claim_that_lost_its_lock_is_the_reason(shop: Path, coord: Coord, words: str) -> None:
    """Rule 3: the old holder of a task is refused by name, and is told how it gets the task again."""
    coord("ann task add T1 --files src/app.py")
    coord("ann task claim T1")
    coord("bob steal src/app.py --force --reason urgent")
    (shop / "src/app.py").write_text("late\n")
    refused = coord(f"ann {words}")
    assert (refused.code, refused.answer["error"]["code"]) == (1, "lost")
    assert "task T1 (generation 1) ended: file:src/app.py was lost to s-bob (stolen)" in refused.line
    assert refused.answer["error"]["hint"] == "coord task claim T1 gets task and files again"
