"""The command under guard: its group, its signals, its terminal, its exit code."""

import os
import signal

import pytest

from coord.transports.cli import process as child_module
from coord.transports.cli.process import Child, NotStarted
from tests.support.terminals import Terminal

ON_TERMINAL = """
import sys
from coord.transports.cli.process import Child
child = Child(sys.argv[1:])
child.ended.wait()
sys.exit(child.exit_code)
"""
ASKS_TWICE = ("sh", "-c", "read word; echo ready; read word; echo got:$word")


def with_terminal() -> Terminal:
    """A command that has the terminal: it could read from it. Before that, keys go to who started it."""
    terminal = Terminal("-c", ON_TERMINAL, *ASKS_TWICE)
    terminal.type("go\n")
    terminal.wait_for("ready")
    return terminal


def ended(child: Child) -> int:
    assert child.ended.wait(30), "the command did not end"
    return child.exit_code


@pytest.mark.parametrize(
    ("script", "exit_code"), [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
)
def test_the_exit_code_is_what_a_shell_would_state(script: str, exit_code: int) -> None:
    """Issue 3, part 4: `guard` passes the exit code on; a death by signal n is 128 + n."""
    assert ended(Child(["sh", "-c", script])) == exit_code


def test_a_command_that_is_missing_is_not_started() -> None:
    """A misspelled command is told from one that failed."""
    with pytest.raises(NotStarted):
        Child(["no-such-command-anywhere"])


def test_the_command_has_a_group_of_its_own() -> None:
    """A signal to the group of guard does not reach the command twice."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    child = Child(["bash", "-c", f"ps -o pgid= -p $$ >&{write}"])
    os.close(write)
    with os.fdopen(read) as said:
        assert int(said.read()) == child.pid
    assert ended(child) == 0


def test_broken_pipes_end_the_command_as_usual() -> None:
    """Python ignores SIGPIPE; a command started by us must not inherit that."""
    assert ended(Child(["sh", "-c", "kill -PIPE $$"])) == 128 + signal.SIGPIPE


def obstinate() -> tuple[Child, int]:
    """A command that ignores SIGTERM and has a child of its own; the pipe closes when both are gone."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    script = f"trap '' TERM; sleep 1000 & echo ready >&{write}; wait; wait"
    child = Child(["bash", "-c", script])
    os.close(write)
    assert os.read(read, 6) == b"ready\n"
    return child, read


def test_stopping_asks_and_then_insists(monkeypatch) -> None:
    """SIGTERM, a grace period, SIGKILL: to the command and to all it started."""
    monkeypatch.setattr(child_module, "GRACE_S", 0.05)
    child, read = obstinate()
    child.stop()
    assert ended(child) == 137
    assert os.read(read, 1) == b"", "something that the command started is still alive"
    os.close(read)


def test_a_signal_reaches_the_command() -> None:
    """Signals are passed on; one to a command that has ended is nobody's error."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    child = Child(["bash", "-c", f"trap 'exit 9' USR1; echo ready >&{write}; while :; do sleep 0.05; done"])
    os.close(write)
    assert os.read(read, 6) == b"ready\n"
    child.send(signal.SIGUSR1)
    assert ended(child) == 9
    child.send(signal.SIGUSR1)
    os.close(read)


def test_the_command_can_read_from_the_terminal() -> None:
    """A command in a group of its own would be stopped when it reads, were the terminal not handed over."""
    terminal = with_terminal()
    terminal.type("hello\n")
    terminal.wait_for("got:hello")
    assert terminal.exit_code() == 0


def test_ctrl_c_ends_the_command_and_is_its_exit_code() -> None:
    """A person's Ctrl-C goes to the command; we stay to release."""
    terminal = with_terminal()
    terminal.type("\x03")
    assert terminal.exit_code() == 130


def test_ctrl_z_stops_both_and_fg_continues_both() -> None:
    """The shell gets its prompt back when the command is stopped, and the command goes on afterwards."""
    terminal = with_terminal()
    terminal.type("\x1a")
    terminal.wait_for_stop()
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.type("again\n")
    terminal.wait_for("got:again")
    assert terminal.exit_code() == 0
