"""`coord guard`: the lock is held while the command runs, and never after it."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import PROGRAM, Coord, started
from tests.support.servers.server import poll_until, runs
from tests.support.terminals import Terminal

WAIT_S = 30
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.05; done"
CHECK_AS_BOB = f"{' '.join(PROGRAM)} --session s-bob check a.py >/dev/null 2>&1; echo bob:$?"


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Return how a program ended; one that does not end is killed, so that nothing is left behind."""
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, err


def ready(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def test_the_lock_is_held_while_the_command_runs(coord: Coord) -> None:
    """Issue 3, part 4: acquire, run, release; stdout and exit code are the command's own."""
    code, out, err = finished(started("ann", "guard", "a.py", "--", "sh", "-c", f"{CHECK_AS_BOB}; exit 7"))
    assert (code, out, err) == (7, "bob:1\n", "")
    assert coord("bob check a.py").code == 0


def test_a_lock_that_is_held_keeps_the_command_from_running(coord: Coord, repository: Path) -> None:
    """Exit 1 with the answer of `lock --no-wait`; the command never ran."""
    coord("ann lock a.py")
    code, answer, line = coord("bob guard a.py --no-wait -- touch ran")
    assert (code, answer["holder"]["owner"]) == (1, "s-ann")
    assert line.startswith("Lock denied — held by ann")
    assert not (repository / "ran").exists()


@pytest.mark.parametrize(("command", "exit_code"), [("no-such-command", 127), ("./plain", 126)])
def test_a_command_that_cannot_start_leaves_no_lock(
    command: str, exit_code: int, coord: Coord, repository: Path
) -> None:
    """The exit codes of a shell; the lock is free again."""
    (repository / "plain").write_text("no program")
    code, answer, _ = coord("ann guard a.py --", command)
    assert (code, answer["error"]["code"]) == (exit_code, "not_started")
    assert coord("bob check a.py").code == 0


def test_a_lock_that_was_there_before_stays(coord: Coord) -> None:
    """Guard gives back what it took; a lock of the session from before is not its own."""
    coord("ann lock a.py")
    assert coord("ann guard a.py b.py -- true").code == 0
    assert [lock["resource"] for lock in coord("ann locks").answer["locks"]] == ["file:a.py"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_goes_to_the_command_and_the_lock_is_released(signum: signal.Signals, coord: Coord) -> None:
    """The command decides what a signal means to it; whatever it does, the lock is released."""
    script = "trap 'exit 9' TERM INT HUP; echo ready; while :; do sleep 0.05; done"
    process = started("ann", "guard", "a.py", "--", "bash", "-c", script)
    ready(process)
    process.send_signal(signum)
    assert finished(process)[0] == 9
    assert coord("bob check a.py").code == 0


def test_a_lock_that_is_renewed_outlives_its_lease(coord: Coord) -> None:
    """Issue 3, part 4: renewed while it runs, so that it is held long after its first lease has passed."""
    script = f"echo ready; read word; {CHECK_AS_BOB}"
    process = started("ann", "guard", "a.py", "--ttl", "2s", "--", "sh", "-c", script, stdin=subprocess.PIPE)
    ready(process)
    # Bob waits in line for longer than the lease, in vain.
    assert coord("bob lock a.py --wait 2.5s").code == 3
    out, err = process.communicate("go\n", timeout=60)
    assert (process.returncode, out, err) == (0, "bob:1\n", "")


SLEEPING = ("sh", "-c", "echo ready; exec sleep 1000")


def test_a_stolen_lock_ends_the_command_at_once(coord: Coord) -> None:
    """Guard waits on the store: a named lock is renewed every two minutes, and the loss is noticed now."""
    process = started("ann", "guard", "name:main-push", "--", *SLEEPING)
    ready(process)
    assert coord("bob steal name:main-push --force --reason urgent").code == 0
    code, _, err = finished(process)
    assert code == 1
    assert "a lock was lost while the command ran" in err
    assert "name:main-push was taken by s-bob: by force: urgent" in err
    assert coord("bob locks").answer["locks"][0]["owner"] == "s-bob", "guard releases only its own"


def test_a_removed_store_ends_the_command(coord: Coord, repository: Path) -> None:
    """Rule 4: without its store nothing is known of the lock, so the command does not go on."""
    process = started("ann", "guard", "name:x", "--", *SLEEPING)
    ready(process)
    shutil.rmtree(repository / ".git/coord")
    code, _, err = finished(process)
    assert code != 0
    assert "removed or replaced" in err


def test_a_preempted_guard_is_warned_and_ends_at_the_deadline(coord: Coord) -> None:
    """The holder hears who needs the lock; the command gets SIGTERM when the lock ends, not before."""
    script = "trap 'echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    process = started("ann", "guard", "a.py", "--", "bash", "-c", script)
    ready(process)
    assert coord("bob preempt a.py --priority 5 --reason hotfix --grace 1s --wait 30s").code == 0
    code, out, err = finished(process)
    assert (code, out) == (1, "stopped\n")
    warned, lost = (line for line in err.splitlines() if line.startswith("coord: "))
    assert warned == "coord: s-bob needs file:a.py: the command is stopped in 1s"
    assert "file:a.py went to s-bob, which had asked for it" in lost


def test_two_guards_of_one_session_need_the_lock_twice(coord: Coord) -> None:
    """The first to end releases nothing that the second still needs."""
    script = f"echo ready; read word; {CHECK_AS_BOB}"
    first, second = (
        started("ann", "guard", "a.py", "--", "sh", "-c", script, stdin=subprocess.PIPE) for _ in range(2)
    )
    ready(first)
    ready(second)
    assert first.communicate("go\n", timeout=60)[0] == "bob:1\n"
    assert second.communicate("go\n", timeout=60)[0] == "bob:1\n", "the first one released it"
    assert coord("bob check a.py").code == 0


def test_ctrl_c_on_a_terminal_ends_the_command_and_releases(coord: Coord) -> None:
    """A person's Ctrl-C: the command gets it, the exit code is 130, the lock is free."""
    words = ["--session", "s-ann", "guard", "a.py", "--", "sh", "-c", "echo ready; read word"]
    terminal = Terminal(*PROGRAM[1:], *words)
    terminal.wait_for("ready")
    assert coord("bob check a.py").code == 1
    terminal.type("\x03")
    assert terminal.exit_code() == 130
    assert coord("bob check a.py").code == 0


def holders(coord: Coord) -> list[str]:
    return [lock["owner"] for lock in coord("bob locks").answer["locks"]]


def test_a_guard_killed_outright_takes_its_command_along_and_frees_the_lock(coord: Coord) -> None:
    """REC-28: nothing of guard is left to release; its watchdog ends the command, then the lock.

    No other command of coord helps: `locks` only reads, and a named lock never ends by a proof of death.
    """
    process = started("ann", "guard", "name:main-push", "--", "bash", "-c", STUBBORN)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert holders(coord) == ["s-ann"]
    process.kill()
    assert finished(process)[0] == -signal.SIGKILL
    poll_until(lambda: not runs(pid), WAIT_S, "the command goes on")
    poll_until(lambda: not holders(coord), WAIT_S, "the lock is still held")


@pytest.mark.parametrize(
    "words", [("guard", "name:main-push", "--", "true"), ("lock", "name:main-push", "--hold")]
)
def test_a_guard_killed_as_it_gets_its_lock_frees_it(words: tuple[str, ...], coord: Coord) -> None:
    """REC-28: there is no moment between the grant and the watchdog in which a kill leaves the lock."""
    coord("bob lock name:main-push")
    process = started("ann", *words)
    poll_until(lambda: coord("bob waits").answer["waits"], WAIT_S, "ann does not wait")
    process.send_signal(signal.SIGSTOP)  # it cannot notice the grant
    coord("bob unlock name:main-push")
    assert holders(coord) == ["s-ann"]
    process.kill()
    process.communicate(timeout=60)
    poll_until(lambda: not holders(coord), WAIT_S / 3, "the lock is still held")


def test_a_killed_guard_frees_only_its_own_use(coord: Coord) -> None:
    """The second guard of the session goes on under the lock."""
    killed, other = (started("ann", "guard", "name:main-push", "--", *SLEEPING) for _ in range(2))
    ready(killed)
    ready(other)
    killed.kill()
    killed.communicate(timeout=60)
    poll_until(lambda: len(uses(coord)) == 1, WAIT_S, "the use of the killed guard stays")
    other.send_signal(signal.SIGTERM)
    assert finished(other)[0] == 143
    assert holders(coord) == []


def uses(coord: Coord) -> list[str]:
    return [use for lock in coord("bob locks").answer["locks"] for use in lock["uses"]]


def test_a_guard_killed_with_its_watchdog_leaves_a_lock_that_ends_by_itself(coord: Coord) -> None:
    """Nothing is left to release, so the lease ends the lock, also that of a name."""
    words = ["guard", "name:main-push", "--ttl", "1s", "--", "sh", "-c", "echo $PPID; exec sleep 1000"]
    process = started("ann", *words)
    assert process.stdout is not None
    guard = int(process.stdout.readline())
    family = children_of(guard)
    for pid in (guard, *family):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    code, answer, _ = coord("bob lock name:main-push --wait 30s")
    assert (code, answer["locks"][0]["owner"]) == (0, "s-bob")


def children_of(pid: int) -> list[int]:
    """The children of a process: the command and the two shells of the watchdog."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True
    )
    children = [int(word) for word in found.stdout.split()]
    assert len(children) == 3
    return children


def test_what_a_command_leaves_in_the_background_goes_on(coord: Coord, tmp_path: Path) -> None:
    """Guard ends with its command; a daemon that the command started is not its business."""
    left = tmp_path / "left"
    script = f"sleep 1000 >/dev/null 2>&1 & echo $! > {left}"
    assert finished(started("ann", "guard", "a.py", "--", "sh", "-c", script)) == (0, "", "")
    pid = int(left.read_text())
    assert runs(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_signal_for_programs_does_not_end_the_watchdog(coord: Coord) -> None:
    """USR1 is for the command; the watchdog shares its group, and must outlive it."""
    script = "trap 'echo $$' USR1; echo ready; while :; do sleep 0.05; done"
    process = started("ann", "guard", "name:main-push", "--", "bash", "-c", script)
    ready(process)
    process.send_signal(signal.SIGUSR1)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.kill()
    poll_until(lambda: not runs(pid), WAIT_S, "the command goes on")
    process.communicate(timeout=60)
    poll_until(lambda: not holders(coord), WAIT_S, "the lock is still held")


def held_by(process: "subprocess.Popen[str]") -> list[str]:
    """Wait until `lock --hold` has its locks; return them."""
    assert process.stdout is not None
    answer = json.loads(process.stdout.readline())
    assert answer["ok"]
    return [lock["resource"] for lock in answer["locks"]]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, None])
def test_hold_keeps_the_lock_until_it_is_ended(end: signal.Signals | None, coord: Coord) -> None:
    """A signal or the end of its input releases what it took, and nothing else."""
    coord("ann lock a.py")
    process = started("ann", "lock", "--hold", "a.py", "name:main-push", stdin=subprocess.PIPE)
    assert held_by(process) == ["file:a.py", "name:main-push"]
    assert coord("bob lock name:main-push --no-wait").code == 1
    if end is not None:
        process.send_signal(end)
    code, _, err = finished(process)  # this closes its input
    assert (code, err.splitlines()[-1]) == (0, "Lock released ✓ file:a.py, name:main-push")
    assert uses(coord) == [""]


def test_hold_tells_who_waits_and_who_took_the_lock(coord: Coord) -> None:
    """The holder sees a waiter when the wait begins; a lost lock is exit 1 and one clear line."""
    process = started("ann", "lock", "--hold", "name:main-push", stdin=subprocess.PIPE)
    held_by(process)
    waiting = started("bob", "lock", "name:main-push")
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert next(line for line in lines if "waits" in line) == "coord: s-bob waits for name:main-push\n"
    assert coord("eve steal name:main-push --force --reason urgent").code == 0
    code, _, err = finished(process)
    assert code == 1
    assert "name:main-push was taken by s-eve: by force: urgent" in err
    coord("eve unlock name:main-push")
    assert finished(waiting)[0] == 0


def test_hold_outlives_an_empty_input_that_nobody_can_close(coord: Coord) -> None:
    """In the background the input is /dev/null: its end means nothing."""
    process = started("ann", "lock", "--hold", "name:main-push", stdin=subprocess.DEVNULL)
    held_by(process)
    waiting = started("bob", "lock", "name:main-push")
    assert process.stderr is not None
    assert any("s-bob waits" in line for line in iter(process.stderr.readline, "")), "it has ended"
    process.send_signal(signal.SIGINT)
    assert finished(process)[0] == 0
    assert finished(waiting)[0] == 0


def test_ctrl_c_ends_a_wait_for_a_lock_to_hold(coord: Coord) -> None:
    """Before it has the lock, a signal withdraws the request."""
    coord("ann lock name:main-push")
    process = started("bob", "lock", "--hold", "name:main-push", stdin=subprocess.PIPE)
    poll_until(
        lambda: any(lock["waiters"] for lock in coord("ann locks").answer["locks"]),
        WAIT_S,
        "it does not wait",
    )
    process.send_signal(signal.SIGINT)
    assert finished(process)[0] == 130
    assert not any(lock["waiters"] for lock in coord("ann locks").answer["locks"])
