"""Lock commands from end to end: what is answered, what is told, and the exit code."""

from pathlib import Path

import pytest

from coord.core.locks.commands import LockReply, Outcome
from coord.transports.cli.handlers.locks import WAIT_S, PlainLockArgs, answer_of, wait_of
from coord.transports.cli.parser import parse
from tests.support.cli import Coord


def test_lock_answers_with_the_locks(coord: Coord) -> None:
    """Issue 3, part 4: `lock` prints ok and for each lock resource, mode, fence, owner, expires_at.

    LCK-4, LCK-6, LCK-9, LCK-11, LCK-12, LCK-41.
    """
    code, answer, line = coord("ann lock src/app.py name:main-push --ttl 1h --reason", "rework the login")
    assert code == 0
    assert list(answer)[:2] == ["ok", "locks"]
    assert [lock["resource"] for lock in answer["locks"]] == ["file:src/app.py", "name:main-push"]
    for lock in answer["locks"]:
        assert lock["owner"] == "s-ann"
        assert lock["reason"] == "rework the login"
        assert lock["fence"] > 0
        assert lock["expires_at"].endswith("Z")
        assert lock["expires_in_s"] == 3600
    assert line == "Lock acquired ✓ file:src/app.py, name:main-push (expires in 1h)"


def test_a_denial_names_the_holder_and_the_time_left(coord: Coord) -> None:
    """LCK-73, LCK-74: "Lock denied — held by NAME (expires in …)"; exit 1, holder, expires_in_s, place."""
    coord("ann lock src/* --ttl 4m30s")
    code, answer, line = coord("bob lock src/app.py docs/x.md --no-wait")
    assert code == 1
    assert answer["ok"] is False
    assert answer["holder"]["owner"] == "s-ann"
    assert 0 < answer["expires_in_s"] <= 270
    assert answer["position"] == 1
    assert answer["error"]["code"] == "held"
    assert line.startswith("Lock denied — held by ann (expires in 4m")
    assert coord("bob locks --owner s-bob").answer["locks"] == [], "all or nothing"


def test_a_deadlock_names_the_loss_and_one_command() -> None:
    """DLK-15: the line is what the message says; the fields and the error have the same facts."""
    reply = LockReply(
        Outcome.DEADLOCK,
        cycle=["s-bob", "s-ada", "s-bob"],
        lost=["file:y.py"],
        lost_to="s-ada",
        again=["file:x.py", "file:y.py"],
        claims=["T2"],
    )
    answer = answer_of(reply)
    command = "coord lock x.py y.py && coord task claim T2"
    assert answer.line == f"Deadlock: you lost y.py to s-ada. Stop editing it, then run: {command}"
    assert answer.failure is not None
    assert (answer.failure.exit_code, answer.failure.code) == (1, "deadlock")
    assert answer.failure.hint == f"run: {command}"
    assert (answer.fields["lost"], answer.fields["lost_to"]) == (["file:y.py"], "s-ada")


def test_a_wait_that_passes_is_exit_3(coord: Coord) -> None:
    """LCK-37, LCK-33, DESIGN §8: a wait that is given up is told as such, with the holder; exit 3."""
    coord("ann lock main-push")
    code, answer, line = coord("bob lock main-push --wait 0.05")
    assert code == 3
    assert answer["error"]["code"] == "timed_out"
    assert answer["holder"]["owner"] == "s-ann"
    assert line.startswith("Failed to acquire lock in time, giving up — held by ann")
    coord("ann unlock main-push")
    assert coord("bob check main-push").code == 0, "whoever gave up stands in nobody's way"


@pytest.mark.parametrize(
    ("flags", "terminal", "wait_s"),
    [
        ([], False, WAIT_S),
        ([], True, None),
        (["--wait", "30s"], True, 30),
        (["--wait", "0"], True, 0),
        (["--no-wait"], True, 0),
    ],
)
def test_how_long_a_lock_is_waited_for(flags: list[str], terminal: bool, wait_s: float | None) -> None:
    """AMB-25, DESIGN §6: for ever on a terminal, 100 s without one, and as long as asked."""
    assert wait_of(PlainLockArgs(**parse(["lock", "x", *flags]).values), terminal=terminal) == wait_s
    assert WAIT_S == 100


def test_a_lock_taken_again_is_refreshed(coord: Coord) -> None:
    """LCK-79: the owner asks again and keeps the fence; people are told which it was."""
    first = coord("ann lock a.py").answer["locks"][0]
    again = coord("ann lock a.py")
    assert again.answer["locks"][0]["fence"] == first["fence"]
    assert again.line.startswith("Lock refreshed ✓")


def test_check_is_0_free_and_1_held(coord: Coord) -> None:
    """LCK-36, issue 3: `check` says by its exit code whether somebody else stands in the way."""
    coord("ann lock src/*")
    assert coord("bob check docs/a.md").code == 0
    code, answer, line = coord("bob check src/app.py")
    assert code == 1
    assert answer["free"] is False
    assert answer["holders"][0]["owner"] == "s-ann"
    assert line.startswith("Held by ann (expires in ")
    assert coord("ann check src/app.py").code == 0, "one's own lock is not in the way"


def test_check_with_a_fence_proves_a_hold(coord: Coord) -> None:
    """DESIGN §2, rule 3: a later step proves what it holds."""
    fence = coord("ann lock a.py").answer["locks"][0]["fence"]
    assert coord(f"ann check a.py --fence {fence}").code == 0
    assert coord(f"ann check a.py --fence {fence + 1}").code == 1


def test_unlock_is_for_the_owner(coord: Coord) -> None:
    """LCK-48: another's lock is exit 1, a lock that nobody holds is exit 4."""
    coord("ann lock a.py")
    assert coord("bob unlock a.py").code == 1
    code, answer, line = coord("ann unlock a.py")
    assert (code, answer["released"]) == (0, ["file:a.py"])
    assert line == "Lock released ✓ file:a.py"
    code, answer, _ = coord("ann unlock a.py")
    assert (code, answer["error"]["code"]) == (4, "not_found")


def test_renew_begins_leases_anew(coord: Coord) -> None:
    """LCK-24: all locks of the session, or those named; a wrong fence is refused."""
    coord("ann lock a.py b.py")
    assert len(coord("ann renew").answer["locks"]) == 2
    (one,) = coord("ann renew a.py --ttl 1h").answer["locks"]
    assert one["expires_in_s"] == 3600
    assert coord("ann renew a.py --fence 999").code == 1


def test_steal_is_refused_while_the_owner_lives_and_forced_with_a_reason(coord: Coord) -> None:
    """LCK-49, LCK-50, LCK-52: the strict rule first; force needs a reason, and the old owner has lost it."""
    coord("ann lock main-push")
    assert coord("bob steal main-push").code == 1
    assert coord("bob steal main-push --force").code == 2
    code, answer, _ = coord("bob steal main-push --force --reason", "ann is on holiday")
    assert (code, answer["locks"][0]["owner"]) == (0, "s-bob")
    assert coord("ann unlock main-push").code == 1


def test_preempt_takes_from_a_lower_priority(coord: Coord) -> None:
    """LCK-28: asked, and after the grace period revoked; a priority that is not higher is refused."""
    coord("ann lock a.py --priority 5")
    assert coord("bob preempt a.py --priority 5 --reason hotfix").code == 1
    code, answer, _ = coord("bob preempt a.py --priority 9 --reason hotfix --grace 0 --wait 5s")
    assert (code, answer["locks"][0]["owner"]) == (0, "s-bob")


def test_locks_lists_what_is_held(coord: Coord) -> None:
    """CLI-4, LCK-32, LCK-87, OBS-3: all locks, or those of one session."""
    coord("ann lock a.py")
    coord("bob lock b.py")
    code, answer, line = coord("ann locks")
    assert {lock["resource"] for lock in answer["locks"]} == {"file:a.py", "file:b.py"}
    assert (code, line) == (0, "2 locks")
    assert [lock["resource"] for lock in coord("ann locks --owner s-bob").answer["locks"]] == ["file:b.py"]


def test_projects_and_areas_are_locked_apart(coord: Coord) -> None:
    """The same area serialises, others do not; only the owner unlocks.

    LCK-53, LCK-54, LCK-56, LCK-57, LCK-59.
    """
    assert coord("ann project-lock shop --area cart").answer["locks"][0]["scope"] == "project"
    assert coord("bob project-lock shop --area cart --no-wait").code == 1
    assert coord("bob project-lock shop --area till --no-wait").code == 0
    assert coord("bob project-unlock shop --area cart").code == 1
    assert coord("ann project-unlock shop --area cart").answer["released"] == ["project:shop:cart"]


def test_the_same_command_id_is_one_command(coord: Coord) -> None:
    """DESIGN §8: after an unknown outcome the same command id is answered as before."""
    first = coord("ann lock a.py --command-id c-1").answer["locks"][0]
    assert coord("ann lock a.py --command-id c-1").answer["locks"][0]["acquired_at"] == first["acquired_at"]
    assert coord("ann lock b.py --command-id c-1").code == 2


@pytest.mark.parametrize("word", ["../x.py", "/etc/passwd", "a\nb.py", "name:" + "x" * 10_000, ".git/config"])
def test_bad_resources_change_nothing(word: str, coord: Coord) -> None:
    """Issue 3, bad input: refused with exit 2 and a hint, and nothing is locked."""
    code, answer, _ = coord("ann lock", word)
    assert code == 2
    assert answer["error"]["hint"]
    assert coord("ann locks").answer["locks"] == []


def test_files_need_a_repository(coord: Coord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN §5: outside a repository `file:` is refused (2), and names use the user store."""
    monkeypatch.chdir(tmp_path)
    assert coord("ann lock a.py").code == 2
    assert coord("ann lock deploy").code == 0


def test_a_lock_may_need_progress(coord: Coord) -> None:
    """CFL-5: `--progress-timeout` and `--profile file-claim` reach the lock; too short a time is refused."""
    answer = coord("ann lock a.py --profile file-claim --progress-timeout 60s").answer
    assert [lock["profile"] for lock in answer["locks"]] == ["file-claim"]
    assert answer["locks"][0]["expires_in_s"] > 3500
    code, answer, _ = coord("ann lock b.py --progress-timeout 10s")
    assert (code, "progress timeout" in answer["error"]["message"]) == (2, True)


def test_unlock_all_releases_everything_but_what_claims_need(coord: Coord) -> None:
    """Names of the machine are in another store, and are released too; the files of a claim are named."""
    coord("ann task add A-001-x --files b.py")
    coord("ann task next")
    coord("ann lock a.py name:main-push")
    coord("ann lock claude-config")
    code, answer, line = coord("ann unlock --all")
    assert (code, sorted(answer["released"]), answer["kept"]) == (
        0,
        ["file:a.py", "name:claude-config", "name:main-push"],
        ["file:b.py"],
    )
    assert line.endswith("; Kept for a claim: file:b.py")
    assert coord("bob check claude-config main-push").code == 2, "two stores"
    assert coord("bob check claude-config").code == 0
    assert coord("bob check a.py main-push").code == 0
    assert coord("bob check b.py").code == 1


def test_unlock_needs_to_know_what(coord: Coord) -> None:
    """Neither nothing nor everything is meant by accident."""
    assert coord("ann unlock").code == 2
    assert coord("ann unlock --all a.py").code == 2
    assert coord("ann unlock --all").line == "No locks"
