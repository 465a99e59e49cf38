"""The check of what is merged, queues of branches, and the moves of others meanwhile."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coord.core.errors import Invalid, LockLost, Refused
from coord.integrations.git.merge import check as merge_check
from coord.integrations.git.merge.merge import MergeStatus
from coord.integrations.git.merge.queue_lock import LOCK
from coord.integrations.git.run import Git
from tests.support.git_harness import GitHarness

MERGED, FAILED, CONFLICT = MergeStatus.MERGED, MergeStatus.CHECK_FAILED, MergeStatus.CONFLICT


def script(harness: GitHarness, text: str) -> tuple[str, ...]:
    """Return a check that runs a script, and writes a line each time."""
    place = harness.top / "check.sh"
    place.write_text(f"echo run >> {harness.top}/runs\n{text}\n")
    return ("sh", str(place))


def runs(harness: GitHarness) -> int:
    """Return how often the check ran."""
    return len((harness.top / "runs").read_text().splitlines())


def statuses(harness: GitHarness, *branches: str, check: tuple[str, ...]) -> list[MergeStatus]:
    """Merge branches with a check, and return what became of each."""
    return [outcome.status for outcome in harness.merge("ann", *branches, check=check).outcomes]


def left(harness: GitHarness) -> list[str]:
    """Return the worktrees of checks that git knows."""
    return [
        line for line in harness.git("shop", "worktree", "list").splitlines() if merge_check.PREFIX in line
    ]


def test_the_check_sees_the_merged_tree_and_decides(harness: GitHarness) -> None:
    """PRB-12: A check runs on what main would be, not on the branch; what fails stays out, and is told."""
    harness.work("ann", {"app.py": "ann\n"})
    harness.work("ben", {"lib.py": "ben\n"})
    before = harness.tip()
    together = script(harness, "git status --porcelain; ! grep -q ann app.py || ! grep ben lib.py")
    assert statuses(harness, "ann", check=together) == [MERGED]
    between = harness.tip()
    outcome = harness.one("ben", "ben", check=together)
    assert (outcome.status, outcome.said) == (FAILED, "ben")
    assert before != between == harness.tip()
    assert harness.events("git.merge_refused")[0]["status"] == "check_failed"
    assert left(harness) == []


def test_several_branches_are_checked_once(harness: GitHarness) -> None:
    """A queue lands as a batch: one check for all, and main moves once."""
    for name in ("ann", "ben", "cyd"):
        harness.work(name, {f"{name}.py": f"{name}\n"})
    before = harness.tip()
    assert statuses(harness, "ann", "ben", "cyd", check=script(harness, "true")) == [MERGED] * 3
    assert runs(harness) == 1
    assert harness.git("shop", "reflog", "-2", "--format=%H", "main").split() == [harness.tip(), before]
    assert [harness.text(f"{name}.py") for name in ("ann", "ben", "cyd")] == ["ann\n", "ben\n", "cyd\n"]


def test_the_culprit_is_found_and_the_others_get_in(harness: GitHarness) -> None:
    """A failing batch is halved down to the branch that fails; main is never where the check fails."""
    names = ["ann", "ben", "cyd", "dan", "eve", "fay"]
    for name in names:
        harness.work(name, {f"{name}.py": f"{name}\n"})
    passed = script(harness, "test ! -e dan.py")
    expected = [FAILED if name == "dan" else MERGED for name in names]
    assert statuses(harness, *names, check=passed) == expected
    assert runs(harness) <= 8
    moves = harness.git("shop", "reflog", "--format=%H", "main").split()
    assert not any("dan.py" in harness.git("shop", "ls-tree", "--name-only", move) for move in moves)
    assert harness.tip("dan") == harness.git("shop", "rev-parse", "dan")


def test_two_that_fail_only_together(harness: GitHarness) -> None:
    """Of two branches that do not go together the first gets in."""
    harness.work("ann", {"ann.py": "ann\n"})
    harness.work("ben", {"ben.py": "ben\n"})
    together = script(harness, "! { test -e ann.py && test -e ben.py; }")
    assert statuses(harness, "ann", "ben", check=together) == [MERGED, FAILED]


def test_who_conflicts_with_the_culprit_gets_in(harness: GitHarness) -> None:
    """A conflict with what is not merged is none."""
    harness.work("ann", {"app.py": "bad\n"})
    harness.work("ben", {"app.py": "good\n"})
    assert statuses(harness, "ann", "ben", check=script(harness, "! grep bad app.py")) == [FAILED, MERGED]
    assert harness.text("app.py") == "good\n"


def test_nobody_is_blamed_for_a_main_that_fails_itself(harness: GitHarness) -> None:
    """A check that fails before any branch is merged says nothing about the branches."""
    harness.work("ann", {"ann.py": "ann\n"})
    before = harness.tip()
    with pytest.raises(Refused, match="fails on main itself: no way"):
        harness.merge("ann", "ann", check=script(harness, "echo no way; false"))
    assert harness.tip() == before
    assert harness.client("ann").locks() == []


def test_main_that_moves_meanwhile_is_merged_onto(harness: GitHarness) -> None:
    """Compare-and-swap: who moves main during the check loses nothing, and the check runs again on both."""
    harness.work("ann", {"ann.py": "ann\n"})
    harness.work("ben", {"ben.py": "ben\n"})
    ben = f"git -C {harness.shop} merge -q --no-edit ben 2>&1"
    assert statuses(harness, "ann", check=script(harness, f"test -e ben.py || {ben}")) == [MERGED]
    assert runs(harness) == 2
    assert (harness.text("ann.py"), harness.text("ben.py")) == ("ann\n", "ben\n")
    assert harness.clean()


def stealing(harness: GitHarness, resource: str) -> tuple[str, ...]:
    """Return a check in which ben takes a lock by force."""
    call = f"c.steal({resource!r}, force=True, reason='test')"
    text = f"import coord\nwith coord.connect(session='ben', cwd={str(harness.shop)!r}) as c: {call}"
    return (sys.executable, "-c", text)


def test_what_is_superseded_during_the_check_is_refused(harness: GitHarness) -> None:
    """The check may take long: fences and generations are judged again after it."""
    harness.now = time.time_ns() // 1_000_000
    harness.branch("ann")
    harness.client("ann").acquire("file:app.py")
    harness.commit("ann", {"app.py": "ann\n"})
    before = harness.tip()
    outcome = harness.one("ann", "ann", check=stealing(harness, "file:app.py"))
    assert outcome.status is MergeStatus.REFUSED
    assert "ben has held it since" in outcome.findings[0].what
    assert harness.tip() == before


def test_a_check_that_does_not_end_or_cannot_be_run(harness: GitHarness) -> None:
    """A check has its time, and ends with all it started; one that cannot be started is bad input."""
    harness.work("ann", {"ann.py": "ann\n"})
    slow = script(harness, "test ! -e ann.py || { sleep 600 & sleep 600; }")
    outcome = harness.one("ann", "ann", check=slow, check_s=0.5)
    assert outcome.status is FAILED
    assert "did not end within" in outcome.said
    with pytest.raises(Invalid, match="No such file"):
        harness.merge("ann", "ann", check=("no-such-program",))
    assert left(harness) == []


def test_a_lock_that_is_lost_during_the_check_ends_it(harness: GitHarness) -> None:
    """GIT-27: without the lock nothing is decided: the check is ended, long before it would be."""
    harness.now = time.time_ns() // 1_000_000
    *_, text = steal = stealing(harness, LOCK)
    git = Git(str(harness.shop), environ=harness.environ)
    patient = (*steal[:2], f"{text}\nimport time; time.sleep(600)")
    with (
        pytest.raises(LockLost),
        harness.client("ann").lock(LOCK, profile="file", ttl_s=1) as held,
    ):
        merge_check.check(git, harness.tip(), patient, held, 600)
    assert left(harness) == []


def test_a_merge_that_is_killed_leaves_main_and_can_be_repeated(harness: GitHarness) -> None:
    """Crash: killed during its check, it has changed nothing; the next one removes the worktree it left."""
    harness.now = time.time_ns() // 1_000_000
    harness.work("ann", {"ann.py": "ann\n"})
    before = harness.tip()
    where, go_on = harness.top / "where", harness.top / "go-on"
    for pipe in (where, go_on):
        os.mkfifo(pipe)
    check = script(harness, f"test -e {harness.top}/again || {{ pwd > {where}; cat {go_on}; }}")
    words = ("-m", "coord.transports.cli.main", "merge", "ann", "--check", " ".join(check))
    environ = {**harness.environ, "COORD_SESSION_ID": "ann"}
    with subprocess.Popen([sys.executable, *words], cwd=harness.shop, env=environ) as process:
        tree = where.read_text().strip()
        process.kill()
    go_on.write_text("")
    assert harness.tip() == before
    assert Path(tree).exists()
    (harness.top / "again").touch()
    done = subprocess.run(
        [sys.executable, *words], cwd=harness.shop, env=environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done
    assert (harness.text("ann.py"), os.path.exists(tree), left(harness)) == ("ann\n", False, [])


KILLED_AT = {
    "as it gets the lock": "LockBlock.keep",
    "with the lock": "merge.remove_stale_worktrees",
    "while it looks at the branch": "merge.check_branch",
    "before the ref moves": "merge._Queue._move",
    "after the ref moved": "merge._Queue._merged",
    "before the lock is released": "merge._warnings",
}
KILL = """
import os, sys
from coord.integrations.git.merge import merge
from coord.sdk.client.blocks import LockBlock
from coord.transports.cli.main import main

def kill(*_, **__):
    os.kill(os.getpid(), 9)

{target} = kill
main(["merge", "ann"])
"""


@pytest.mark.parametrize("target", KILLED_AT.values(), ids=KILLED_AT)
def test_the_lock_ends_with_a_killed_merge(harness: GitHarness, target: str) -> None:
    """Whenever a merge is killed, others get the queue at once, and the merge can be repeated."""
    harness.now = time.time_ns() // 1_000_000
    harness.work("ann", {"ann.py": "ann\n"})
    environ = {**harness.environ, "COORD_SESSION_ID": "ann"}
    program = [sys.executable, "-c", KILL.format(target=target)]
    killed = subprocess.run(program, cwd=harness.shop, env=environ, capture_output=True, check=False)
    assert killed.returncode == -9, killed

    def coord(session: str, *words: str) -> int:
        line = [sys.executable, "-m", "coord.transports.cli.main", *words]
        of_session = {**environ, "COORD_SESSION_ID": session}
        return subprocess.run(
            line, cwd=harness.shop, env=of_session, capture_output=True, check=False
        ).returncode

    assert coord("bob", "lock", LOCK, "--wait", "30s") == 0, "the lease of the lock is a minute"
    assert coord("bob", "unlock", LOCK) == 0
    assert coord("ann", "merge", "ann") == 0
    assert harness.text("ann.py") == "ann\n"
    assert coord("bob", "lock", LOCK, "--no-wait") == 0
