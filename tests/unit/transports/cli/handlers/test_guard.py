"""`coord guard`: the lock is held while the command runs, and never after it."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import PROGRAM, Coord, started
from tests.support.terminals import Terminal

CHECK_AS_BOB = f"{' '.join(PROGRAM)} --session s-bob check a.py >/dev/null 2>&1; echo bob:$?"


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
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


def test_a_lost_lock_ends_the_command(coord: Coord) -> None:
    """A command whose lock was taken away is ended, and guard exits 1 and says so."""
    process = started("ann", "guard", "a.py", "--ttl", "1s", "--", "sh", "-c", "echo ready; exec sleep 1000")
    ready(process)
    assert coord("bob steal a.py --force --reason urgent").code == 0
    code, _, err = finished(process)
    assert code == 1
    assert "a lock was lost while the command ran" in err
    assert coord("bob locks").answer["locks"][0]["owner"] == "s-bob", "guard releases only its own"


def test_ctrl_c_on_a_terminal_ends_the_command_and_releases(coord: Coord) -> None:
    """A person's Ctrl-C: the command gets it, the exit code is 130, the lock is free."""
    words = ["--session", "s-ann", "guard", "a.py", "--", "sh", "-c", "echo ready; read word"]
    terminal = Terminal(*PROGRAM[1:], *words)
    terminal.wait_for("ready")
    assert coord("bob check a.py").code == 1
    terminal.type("\x03")
    assert terminal.exit_code() == 130
    assert coord("bob check a.py").code == 0


def test_guard_killed_outright_leaves_a_lock_that_ends_by_itself(coord: Coord) -> None:
    """Nothing can release after SIGKILL; the lease of a file ends, and the next one gets it."""
    words = ["guard", "a.py", "--ttl", "1s", "--", "sh", "-c", "echo ready; read word"]
    process = started("ann", *words, stdin=subprocess.PIPE)
    ready(process)
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    code, answer, _ = coord("bob lock a.py --wait 30s")
    assert (code, answer["locks"][0]["owner"]) == (0, "s-bob")
    process.communicate(timeout=60)  # closes the input of the command, which ends it
