"""The check of what is merged, queues of branches, and the moves of others meanwhile."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coord.core.errors import Invalid, LockLost, Refused
from coord.integrations.git.merge import check as merge_check
from coord.integrations.git.merge.merge import LOCK, Verdict
from coord.integrations.git.run import Git
from tests.support.git_harness import Yard

MERGED, FAILED, CONFLICT = Verdict.MERGED, Verdict.CHECK_FAILED, Verdict.CONFLICT


def script(yard: Yard, text: str) -> tuple[str, ...]:
    """Return a check that runs a script, and writes a line each time."""
    place = yard.top / "check.sh"
    place.write_text(f"echo run >> {yard.top}/runs\n{text}\n")
    return ("sh", str(place))


def runs(yard: Yard) -> int:
    """Return how often the check ran."""
    return len((yard.top / "runs").read_text().splitlines())


def verdicts(yard: Yard, *branches: str, check: tuple[str, ...]) -> list[Verdict]:
    """Merge branches with a check, and return what became of each."""
    return [outcome.verdict for outcome in yard.merge("ann", *branches, check=check).outcomes]


def left(yard: Yard) -> list[str]:
    """Return the worktrees of checks that git knows."""
    return [line for line in yard.git("shop", "worktree", "list").splitlines() if merge_check.PREFIX in line]


def test_the_check_sees_the_merged_tree_and_decides(yard: Yard) -> None:
    """PRB-12: A check runs on what main would be, not on the branch; what fails stays out, and is told."""
    yard.work("ann", {"app.py": "ann\n"})
    yard.work("ben", {"lib.py": "ben\n"})
    before = yard.tip()
    together = script(yard, "git status --porcelain; ! grep -q ann app.py || ! grep ben lib.py")
    assert verdicts(yard, "ann", check=together) == [MERGED]
    between = yard.tip()
    outcome = yard.one("ben", "ben", check=together)
    assert (outcome.verdict, outcome.said) == (FAILED, "ben")
    assert before != between == yard.tip()
    assert yard.events("git.merge_refused")[0]["verdict"] == "check_failed"
    assert left(yard) == []


def test_several_branches_are_checked_once(yard: Yard) -> None:
    """A queue lands as a batch: one check for all, and main moves once."""
    for name in ("ann", "ben", "cyd"):
        yard.work(name, {f"{name}.py": f"{name}\n"})
    before = yard.tip()
    assert verdicts(yard, "ann", "ben", "cyd", check=script(yard, "true")) == [MERGED] * 3
    assert runs(yard) == 1
    assert yard.git("shop", "reflog", "-2", "--format=%H", "main").split() == [yard.tip(), before]
    assert [yard.text(f"{name}.py") for name in ("ann", "ben", "cyd")] == ["ann\n", "ben\n", "cyd\n"]


def test_the_culprit_is_found_and_the_others_get_in(yard: Yard) -> None:
    """A failing batch is halved down to the branch that fails; main is never where the check fails."""
    names = ["ann", "ben", "cyd", "dan", "eve", "fay"]
    for name in names:
        yard.work(name, {f"{name}.py": f"{name}\n"})
    passed = script(yard, "test ! -e dan.py")
    expected = [FAILED if name == "dan" else MERGED for name in names]
    assert verdicts(yard, *names, check=passed) == expected
    assert runs(yard) <= 8
    moves = yard.git("shop", "reflog", "--format=%H", "main").split()
    assert not any("dan.py" in yard.git("shop", "ls-tree", "--name-only", move) for move in moves)
    assert yard.tip("dan") == yard.git("shop", "rev-parse", "dan")


def test_two_that_fail_only_together(yard: Yard) -> None:
    """Of two branches that do not go together the first gets in."""
    yard.work("ann", {"ann.py": "ann\n"})
    yard.work("ben", {"ben.py": "ben\n"})
    together = script(yard, "! { test -e ann.py && test -e ben.py; }")
    assert verdicts(yard, "ann", "ben", check=together) == [MERGED, FAILED]


def test_who_conflicts_with_the_culprit_gets_in(yard: Yard) -> None:
    """A conflict with what is not merged is none."""
    yard.work("ann", {"app.py": "bad\n"})
    yard.work("ben", {"app.py": "good\n"})
    assert verdicts(yard, "ann", "ben", check=script(yard, "! grep bad app.py")) == [FAILED, MERGED]
    assert yard.text("app.py") == "good\n"


def test_nobody_is_blamed_for_a_main_that_fails_itself(yard: Yard) -> None:
    """A check that fails before any branch is merged says nothing about the branches."""
    yard.work("ann", {"ann.py": "ann\n"})
    before = yard.tip()
    with pytest.raises(Refused, match="fails on main itself: no way"):
        yard.merge("ann", "ann", check=script(yard, "echo no way; false"))
    assert yard.tip() == before
    assert yard.client("ann").locks() == []


def test_main_that_moves_meanwhile_is_merged_onto(yard: Yard) -> None:
    """Compare-and-swap: who moves main during the check loses nothing, and the check runs again on both."""
    yard.work("ann", {"ann.py": "ann\n"})
    yard.work("ben", {"ben.py": "ben\n"})
    ben = f"git -C {yard.shop} merge -q --no-edit ben 2>&1"
    assert verdicts(yard, "ann", check=script(yard, f"test -e ben.py || {ben}")) == [MERGED]
    assert runs(yard) == 2
    assert (yard.text("ann.py"), yard.text("ben.py")) == ("ann\n", "ben\n")
    assert yard.clean()


def stealing(yard: Yard, resource: str) -> tuple[str, ...]:
    """Return a check in which ben takes a lock by force."""
    call = f"c.steal({resource!r}, force=True, reason='test')"
    text = f"import coord\nwith coord.connect(session='ben', cwd={str(yard.shop)!r}) as c: {call}"
    return (sys.executable, "-c", text)


def test_what_is_superseded_during_the_check_is_refused(yard: Yard) -> None:
    """The check may take long: fences and generations are judged again after it."""
    yard.now = time.time_ns() // 1_000_000
    yard.branch("ann")
    yard.client("ann").acquire("file:app.py")
    yard.commit("ann", {"app.py": "ann\n"})
    before = yard.tip()
    outcome = yard.one("ann", "ann", check=stealing(yard, "file:app.py"))
    assert outcome.verdict is Verdict.REFUSED
    assert "ben was granted it since" in outcome.findings[0].what
    assert yard.tip() == before


def test_a_check_that_does_not_end_or_cannot_be_run(yard: Yard) -> None:
    """A check has its time, and ends with all it started; one that cannot be started is bad input."""
    yard.work("ann", {"ann.py": "ann\n"})
    slow = script(yard, "test ! -e ann.py || { sleep 600 & sleep 600; }")
    outcome = yard.one("ann", "ann", check=slow, check_s=0.5)
    assert outcome.verdict is FAILED
    assert "did not end within" in outcome.said
    with pytest.raises(Invalid, match="No such file"):
        yard.merge("ann", "ann", check=("no-such-program",))
    assert left(yard) == []


def test_a_lock_that_is_lost_during_the_check_ends_it(yard: Yard) -> None:
    """GIT-27: without the lock nothing is decided: the check is ended, long before it would be."""
    yard.now = time.time_ns() // 1_000_000
    *_, text = steal = stealing(yard, LOCK)
    git = Git(str(yard.shop), environ=yard.environ)
    patient = (*steal[:2], f"{text}\nimport time; time.sleep(600)")
    with (
        pytest.raises(LockLost),
        yard.client("ann").lock(LOCK, profile="file", ttl_s=1) as held,
    ):
        merge_check.check(git, yard.tip(), patient, held, 600)
    assert left(yard) == []


def test_a_merge_that_is_killed_leaves_main_and_can_be_repeated(yard: Yard) -> None:
    """Crash: killed during its check, it has changed nothing; the next one removes the worktree it left."""
    yard.now = time.time_ns() // 1_000_000
    yard.work("ann", {"ann.py": "ann\n"})
    before = yard.tip()
    where, go_on = yard.top / "where", yard.top / "go-on"
    for pipe in (where, go_on):
        os.mkfifo(pipe)
    check = script(yard, f"test -e {yard.top}/again || {{ pwd > {where}; cat {go_on}; }}")
    words = ("-m", "coord.transports.cli.main", "merge", "ann", "--check", " ".join(check))
    environ = {**yard.environ, "COORD_SESSION_ID": "ann"}
    with subprocess.Popen([sys.executable, *words], cwd=yard.shop, env=environ) as process:
        tree = where.read_text().strip()
        process.kill()
    go_on.write_text("")
    assert yard.tip() == before
    assert Path(tree).exists()
    (yard.top / "again").touch()
    done = subprocess.run(
        [sys.executable, *words], cwd=yard.shop, env=environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done
    assert (yard.text("ann.py"), os.path.exists(tree), left(yard)) == ("ann\n", False, [])
