"""`coord top`: what a frame shows, that it follows the store, and that the terminal is left as it was."""

import os
import pty
import signal
import sys
import termios
import threading

import pytest

from coord.sdk.client.client import connect
from coord.transports.cli.main import main
from coord.transports.cli.table import cells_wide
from coord.transports.cli.top.screen import ENTER, HOME, LEAVE, Screen
from tests.support.cli import PROGRAM, Coord, started
from tests.support.terminals import Terminal


@pytest.fixture
def busy(coord: Coord) -> Coord:
    """Ann holds a lock and has a message; bob works on a task."""
    coord("ann lock src/app.py --reason", "rework the login")
    coord("bob task add A-001-login --files src/login.py")
    coord("bob task claim A-001-login")
    coord("bob send s-ann request", "please review")
    return coord


def live(columns: int = 100, *more: str) -> Terminal:
    return Terminal(*PROGRAM[1:], "--session", "s-ann", "top", *more, columns=columns)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_frame_shows_everything_and_fits(busy: Coord, columns: int) -> None:
    """Sessions, locks with the time left, tasks and unread messages, on a terminal of any width."""
    terminal = live(columns, "--once")
    assert terminal.exit_code() == 0
    for text in ("ann (you)", "bob", "file:src/app.py", "rework the login", "A-001-login", "in_progress"):
        assert text in terminal.shown
    assert "please review" in terminal.shown
    assert all(cells_wide(line) <= columns for line in terminal.shown.splitlines() if "\x1b" not in line)


def test_a_frame_says_who_waits_for_what(busy: Coord) -> None:
    """A session that waits is blocked, on what and behind whom; its lock names the waiter."""
    waiter = started("eve", "lock", "src/app.py", "--wait", "60s")
    try:
        while not busy("ann locks").answer["locks"][0]["waiters"]:
            assert waiter.poll() is None, "it ended without waiting"
        terminal = live(200, "--once")
        assert terminal.exit_code() == 0
        assert "blocked: waiting for src/app.py behind s-ann" in terminal.shown
        (row,) = [line for line in terminal.shown.splitlines() if line.startswith("file:src/app.py")]
        assert "eve" in row
    finally:
        waiter.terminate()
        waiter.communicate()


def test_a_pipe_gets_the_same_as_json(busy: Coord) -> None:
    """Without a terminal there is one frame, by default as JSON."""
    answer = busy("ann top").answer
    assert [each["session_id"] for each in answer["sessions"]] == ["s-ann", "s-bob"]
    assert {each["resource"] for each in answer["locks"]} == {"file:src/app.py", "file:src/login.py"}
    assert [each["task_id"] for each in answer["tasks"]] == ["A-001-login"]
    assert [each["subject"] for each in answer["messages"]] == ["please review"]


def test_the_view_follows_the_store_and_the_keys(busy: Coord) -> None:
    """A new lock appears by itself; s changes the order; q ends it."""
    terminal = live()
    terminal.wait_for("sort (name)")
    assert terminal.shown.startswith(ENTER)
    assert "later.py" not in terminal.shown
    busy("bob lock later.py")
    terminal.wait_for("file:later.py")
    terminal.type("s")
    terminal.wait_for("sort (state)")
    terminal.type("q")
    assert terminal.exit_code() == 0
    assert terminal.shown.endswith(LEAVE)


@pytest.mark.parametrize(("end", "code"), [("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_however_it_ends_the_terminal_is_restored(busy: Coord, end: str | int, code: int) -> None:
    """Ctrl-C and signals leave the full screen, too."""
    terminal = live()
    terminal.wait_for("q quit")
    if isinstance(end, str):
        terminal.type(end)
    else:
        os.kill(terminal.pid, end)
    assert terminal.exit_code() == code
    assert terminal.shown.count(LEAVE) == 1


def test_a_narrow_and_low_terminal_scrolls(busy: Coord) -> None:
    """The arrows reach what does not fit."""
    for number in range(30):
        busy(f"bob lock file{number:02}.py")
    terminal = live(40)
    terminal.wait_for("q quit")
    assert "file29.py" not in terminal.shown
    for _ in range(30):
        terminal.type("\x1b[6~")
    terminal.wait_for("please review")
    terminal.type("q")
    assert terminal.exit_code() == 0


def test_nothing_is_read_while_nothing_changes(busy: Coord, monkeypatch) -> None:
    """Times move on from frame to frame, but the store is read again only after a commit."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 100))
    before = termios.tcgetattr(slave)
    keyboard, screen_file = os.fdopen(os.dup(slave)), os.fdopen(slave, "w")
    monkeypatch.setattr(sys, "stdin", keyboard)
    monkeypatch.setattr(sys, "stdout", screen_file)
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((100, 40)))
    frames = 0

    def press_q_after_some_frames() -> None:
        nonlocal frames
        while frames < 5:
            frames += os.read(master, 65536).count(HOME.encode())
        os.write(master, b"q")

    typist = threading.Thread(target=press_q_after_some_frames)
    typist.start()
    with connect(session="s-ann") as client:
        screen = Screen(client, "name")
        screen.run()
    typist.join()
    assert frames >= 5
    assert screen.reads <= 2
    assert termios.tcgetattr(keyboard) == before
    keyboard.close()
    screen_file.close()
    os.close(master)


def test_without_a_session_the_others_are_shown(busy: Coord, capfd, monkeypatch) -> None:
    """A person who has not registered sees the overview, and it registers nobody."""
    assert main(["top", "--once", "-o", "table"]) == 0
    shown = capfd.readouterr().out
    assert "(you)" not in shown
    assert "file:src/app.py" in shown
    assert len(busy("ann peers").answer["peers"]) == 1
