"""The line that moves while a command waits: what it shows, that it goes away, and what it costs."""

import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from coord.transports.cli.signals import interrupts, stopping
from coord.transports.cli.waiting.line import WaitLine, showing_wait
from tests.support.cli import PROGRAM, Coord
from tests.support.terminals import Terminal


def waiting(*words: str, **options: object) -> Terminal:
    return Terminal(*PROGRAM[1:], "--session", "s-bob", *words, **options)  # type: ignore[arg-type]


def test_the_line_says_for_what_behind_whom_and_how_long() -> None:
    """The time of the wait and what the reply says about the holder go on between two replies."""
    line = WaitLine("a.py", 60.0, lambda reply, age_s: f"{reply} for {age_s:.0f} s more")
    now = time.monotonic()
    line._reply, line._read_at, line._began, line._until = "held", now - 3, now - 5, now + 55
    assert line.text(now) == "Waiting 5s for a.py — held for 3 s more · gives up in 55s"


def test_an_interrupted_start_leaves_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the thread starts that draws the line: it is the Ctrl-C that ends the command."""

    def interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    line = WaitLine("a.py", None, lambda *_: "held")
    with pytest.raises(KeyboardInterrupt):
        line.update("held")
    line.end()
    assert line._ended is not None
    assert line._ended.is_set(), "a thread that did start goes on drawing"


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_it_is_one_line_that_is_rewritten_and_erased(coord: Coord, columns: int) -> None:
    """On a terminal `lock` rewrites one line in place, never wider than the terminal, and erases it."""
    coord("ann lock main-push --reason release")
    terminal = waiting("lock", "main-push", columns=columns)
    terminal.wait_for("s for main-push")
    coord("ann unlock main-push")
    terminal.wait_for("\r\x1b[KLock acquired ✓")
    assert terminal.exit_code() == 0
    drawn = re.findall("\x1b\\[K(Waiting[^\r]*)", terminal.shown)
    assert drawn
    assert all(len(line) < columns for line in drawn)
    assert "\n" not in "".join(drawn)


def test_the_line_moves(coord: Coord) -> None:
    """The seconds go on although nothing happens in the store."""
    coord("ann lock main-push")
    terminal = waiting("lock", "main-push", "--wait", "30s")
    seconds = re.compile(r"Waiting (\d+)s for")
    terminal.wait_until(lambda shown: len(set(seconds.findall(shown))) > 1)
    terminal.type("\x03")
    assert terminal.exit_code() == 130


def test_a_terminal_that_cannot_rewrite_gets_the_line_once(coord: Coord, repository: Path) -> None:
    """TERM=dumb: no control sequence is sent."""
    coord("ann lock main-push")
    terminal = waiting("lock", "main-push", "--wait", "1.2", env=environment(TERM="dumb"))
    assert terminal.exit_code() == 3
    assert terminal.shown.count("s for main-push") == 1
    assert "\x1b" not in terminal.shown


def test_every_command_that_waits_shows_it(coord: Coord) -> None:
    """`task next --wait` and `recv --wait` wait in the same way."""
    coord("ann task add T1 --files a.py")
    coord("ann task claim T1")
    for words, what in ((["task", "next"], "a task"), (["recv"], "a message")):
        terminal = waiting(*words, "--wait", "30s")
        terminal.wait_for(f"s for {what}")
        terminal.type("\x03")
        assert terminal.exit_code() == 130


def test_a_bell_rings_for_a_message(coord: Coord, repository: Path) -> None:
    """COORD_NOTIFY=bell: a message that arrives while one waits rings the terminal's bell, once."""
    coord("ann lock main-push")
    terminal = waiting("lock", "main-push", env=environment(COORD_NOTIFY="bell"))
    terminal.wait_for("s for main-push")
    coord("ann send s-bob warn", "soon")
    terminal.wait_for("\a")
    coord("ann unlock main-push")
    assert terminal.exit_code() == 0
    assert terminal.shown.count("\a") == 1


@pytest.mark.parametrize(
    ("words", "begun"),
    [
        (["lock", "main-push", "--hold"], "Lock acquired"),
        (["guard", "main-push", "--", "sh", "-c", "echo runs; sleep 600"], "runs"),
    ],
)
def test_a_holder_hears_of_messages_and_of_a_lost_lock(coord: Coord, words: list[str], begun: str) -> None:
    """COORD_NOTIFY=bell: `lock --hold` and `guard` ring for a message, and again for the loss."""
    terminal = waiting(*words, env=environment(COORD_NOTIFY="bell"))
    terminal.wait_for(begun)
    coord("ann send s-bob warn", "soon")
    terminal.wait_for("\a")
    coord("ann steal main-push --force --reason", "urgent")
    terminal.wait_until(lambda shown: shown.count("\a") >= 2)
    assert terminal.exit_code() == 1


def test_no_bell_without_the_setting(coord: Coord) -> None:
    """Notices are off by default."""
    coord("bob register")
    terminal = waiting("recv", "--wait", "30s")
    terminal.wait_for("s for a message")
    coord("ann send s-bob warn", "now")
    assert terminal.exit_code() == 0
    assert "now" in terminal.shown
    assert "\a" not in terminal.shown


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


@pytest.mark.parametrize("on_a_terminal", [True, False])
def test_an_interrupt_that_python_lost_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch, on_a_terminal: bool
) -> None:
    """A signal during a callback, as after an import, raises nothing; the next look of the wait does."""
    client = SimpleNamespace(on_wait=None)
    monkeypatch.setattr("coord.transports.cli.waiting.line.is_terminal", lambda _: on_a_terminal)
    with stopping():

        class Callback:
            def __del__(self) -> None:
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
        Callback()
        with showing_wait(client, "a.py", 30.0, lambda *_: ""):  # type: ignore[arg-type]
            assert client.on_wait is not None
            with pytest.raises(KeyboardInterrupt):
                client.on_wait("held")
    with stopping():
        interrupts.check()
