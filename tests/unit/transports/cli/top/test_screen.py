"""`coord top` on a terminal: it follows the store, obeys keys, and leaves the terminal as it was."""

import os
import pty
import re
import signal
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from coord.core.errors import Unavailable
from coord.sdk.client.client import Client, connect
from coord.transports.cli.main import main
from coord.transports.cli.table import cells_wide
from coord.transports.cli.top import screen as screen_module
from coord.transports.cli.top.screen import ENTER, LEAVE, Screen
from coord.transports.cli.top.snapshot import Snapshot, read_snapshot
from tests.support.cli import PROGRAM, Coord, started
from tests.support.terminals import Terminal

TERMINAL = {"TERM": "xterm-256color"}


@pytest.fixture
def busy(coord: Coord) -> Coord:
    """Ann holds a lock and has a message; bob works on a task."""
    coord("ann lock src/app.py --reason", "rework the login")
    coord("bob task add A-001-login --files src/login.py")
    coord("bob task claim A-001-login")
    coord("bob send s-ann request", "please review")
    return coord


def live(columns: int = 100, *more: str, lines: int = 40, **environ: str) -> Terminal:
    words = ("--session", "s-ann", "top", *more)
    return Terminal(
        *PROGRAM[1:], *words, columns=columns, lines=lines, env={**os.environ, **TERMINAL, **environ}
    )


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


def test_a_frame_in_a_pipe_is_json(busy: Coord) -> None:
    answer = busy("ann top --once").answer
    assert [each["id"] for each in answer["agents"]] == ["s-ann", "s-bob"]
    assert {each["resource"] for each in answer["locks"]} == {"file:src/app.py", "file:src/login.py"}
    assert [each["task_id"] for each in answer["queue"]] == ["A-001-login"]
    assert ["please review" in each["about"] for each in answer["needs"]] == [True]


def test_without_a_terminal_it_names_the_dashboard(busy: Coord) -> None:
    """A pipe, a terminal that asks for JSON, one that cannot move its cursor: exit 2, nothing is drawn."""
    for words in ("ann top", "ann top -o table", "ann top -o wide"):
        refused = busy(words)
        assert refused.code == 2
        assert "coord dashboard prints the state once" in refused.line
    for terminal in (live(80, TERM="dumb"), live(80, COORD_OUTPUT="json"), live(80, "--json")):
        assert terminal.exit_code() == 2
        assert "coord dashboard" in terminal.shown
        assert ENTER not in terminal.shown


def test_the_view_follows_the_store_and_the_keys(busy: Coord) -> None:
    """A new lock appears by itself; o changes the order; q ends it."""
    terminal = live()
    terminal.wait_for("q quit")
    assert terminal.shown.startswith(ENTER)
    assert "later.py" not in terminal.shown
    busy("bob lock later.py")
    terminal.wait_for("file:later.py")
    terminal.type("o")
    terminal.wait_for("agents and locks by state")
    terminal.type("q")
    assert terminal.exit_code() == 0
    assert terminal.shown.endswith(LEAVE)


def test_a_lock_is_stolen_with_the_keyboard(busy: Coord) -> None:
    """The whole way: filter, select, reason, consent, and the command that was run."""
    terminal = live()
    terminal.wait_for("q quit")
    terminal.type("/src/login\r:locks\rs")
    terminal.wait_for("steal file:src/login.py from s-bob; reason: _")
    terminal.type("\x1b[200~bob\nleft\x1b[201~\r")
    terminal.wait_for("y runs it")
    terminal.type("y")
    terminal.wait_for("$ coord --session s-ann steal file:src/login.py --force --reason 'bob left'")
    terminal.wait_for("Lock acquired")
    terminal.type("q")
    assert terminal.exit_code() == 0
    owners = {each["resource"]: each["owner"] for each in busy("ann locks").answer["locks"]}
    assert owners["file:src/login.py"] == "s-ann"


def test_escape_alone_goes_back(busy: Coord) -> None:
    """It is told from the sequence of an arrow by what follows, not by a read."""
    terminal = live()
    terminal.wait_for("q quit")
    terminal.type("\r")
    terminal.wait_for("MESSAGE ")
    terminal.forget()
    terminal.type("\x1b")
    terminal.wait_for("NEEDS YOU")
    terminal.type("q")
    assert terminal.exit_code() == 0


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


def test_a_terminal_that_is_closed_ends_it(busy: Coord) -> None:
    """As a window that somebody closes: exit 129 by the signal, and no error of coord."""
    terminal = live()
    terminal.wait_for("q quit")
    assert terminal.close() == 128 + signal.SIGHUP


def test_a_terminal_without_a_size_gets_the_usual_one(busy: Coord) -> None:
    terminal = live(0)
    terminal.wait_for("q quit")
    terminal.type("q")
    assert terminal.exit_code() == 0


def test_it_follows_the_size_of_the_window(busy: Coord) -> None:
    """Smaller, too small, and large again: each time the whole screen is drawn."""
    terminal = live()
    terminal.wait_for("q quit")
    for columns, lines, text in ((50, 12, "NEEDS YOU"), (10, 3, "10x3 is t"), (120, 40, "LAST EVENTS")):
        terminal.forget()
        terminal.resize(columns, lines)
        terminal.wait_for(text)
    terminal.type("q")
    assert terminal.exit_code() == 0


def test_a_narrow_and_low_terminal_scrolls(busy: Coord) -> None:
    """Page down reaches what does not fit."""
    for number in range(30):
        busy(f"bob lock file{number:02}.py")
    terminal = live(40, lines=24)
    terminal.wait_for("ann (you)")
    assert "file29.py" not in terminal.shown
    for _ in range(30):
        terminal.type("\x1b[6~")
    terminal.wait_for("lock.acquired")
    terminal.type("q")
    assert terminal.exit_code() == 0


def test_no_colour_and_no_unicode(busy: Coord) -> None:
    """NO_COLOR is obeyed; without UTF-8 a name is escaped, and coord's own signs become plain ones."""
    busy("bob lock", "日本語.py")
    terminal = live(120, NO_COLOR="1", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    terminal.wait_for("q quit")
    terminal.wait_for(r"file:\u65e5\u672c\u8a9e.py")
    terminal.type("/日x")
    terminal.wait_for(r"/\u65e5x_")
    terminal.type("\rq")
    assert terminal.exit_code() == 0
    assert terminal.shown.isascii()
    assert "q quit . ? keys . j/k . enter open" in terminal.shown
    assert not re.search(r"\x1b\[(?:[17]|3\d)m", terminal.shown)


def beside(call: str) -> None:
    """Run a command as another process: this one has lent its output to the screen."""
    session, *words = call.split()
    process = started(session, *words)
    _, said = process.communicate()
    assert process.returncode == 0, said


class Keyboard:
    """A terminal in this process: a test types, and waits for frames."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 100))
        self.before = termios.tcgetattr(slave)
        self.stdin, self.stdout = os.fdopen(os.dup(slave)), os.fdopen(slave, "w")

    def open(self) -> "Keyboard":
        """Let the screen of this process be here; pytest puts its own back before each phase of a test."""
        self._monkeypatch.setattr(sys, "stdin", self.stdin)
        self._monkeypatch.setattr(sys, "stdout", self.stdout)
        self._monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((100, 40)))
        self._monkeypatch.setenv("TERM", "xterm")
        return self

    def wait_for(self, *texts: str) -> str:
        """Wait until one of these texts is shown; return all that was."""
        shown = b""
        while not any(text.encode() in shown for text in texts):
            shown += os.read(self.master, 65536)
        return shown.decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def run(self, client: Client, typist: Callable[[], None]) -> Screen:
        """Show a screen while another thread types."""
        self.open()
        screen = Screen(client, "name")
        thread = threading.Thread(target=typist)
        thread.start()
        screen.run()
        thread.join()
        assert termios.tcgetattr(self.stdin) == self.before
        return screen

    def close(self) -> None:
        self.stdin.close()
        self.stdout.close()
        os.close(self.master)


@pytest.fixture
def keyboard(busy: Coord, monkeypatch: pytest.MonkeyPatch):
    opened = Keyboard(monkeypatch)
    yield opened
    opened.close()


def test_nothing_is_read_while_nothing_changes(keyboard: Keyboard) -> None:
    """Keys move and filter, and times go on, but the store is read again only after a commit."""

    def typist() -> None:
        keyboard.wait_for("q quit")
        for _ in range(20):
            keyboard.type("j")
        keyboard.type("/app\r")
        keyboard.wait_for("/app")
        keyboard.type("\r")
        keyboard.wait_for("COMMANDS")
        keyboard.type("q")

    with connect(session="s-ann") as client:
        screen = keyboard.run(client, typist)
    assert screen.reads == 1


def test_it_waits_for_the_log_and_asks_once_for_each_commit(
    keyboard: Keyboard, busy: Coord, monkeypatch
) -> None:
    """No busy polling: after a commit nobody asks the log again before the store has been read."""
    waits: list[int] = []
    with connect(session="s-ann") as client:
        log = client.log
        wait = log.wait

        def counted(after: int, timeout: float) -> bool:
            waits.append(after)
            return wait(after, timeout)

        monkeypatch.setattr(log, "wait", counted)

        def typist() -> None:
            keyboard.wait_for("q quit")
            for number in range(3):
                beside(f"bob lock later{number}.py")
            keyboard.wait_for("later2.py")
            keyboard.type("q")

        screen = keyboard.run(client, typist)
    assert 2 <= screen.reads <= 5
    assert 1 <= len(waits) <= screen.reads


def test_a_store_that_is_gone_for_a_while_ends_nothing(
    keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last state stays on the screen, with the reason; when the store is back, it is read again."""
    monkeypatch.setattr(screen_module, "RETRY_S", 0.01)
    monkeypatch.setattr(screen_module, "READ_S", 0.01)
    failures = [0]

    def read(client: Client) -> Snapshot:
        failures[0] -= 1
        if failures[0] > 0:
            raise Unavailable("the server is away")
        return read_snapshot(client)

    monkeypatch.setattr(screen_module, "read_snapshot", read)
    with connect(session="s-ann") as client:

        def typist() -> None:
            keyboard.wait_for("q quit")
            failures[0] = 4
            beside("bob lock later.py")
            keyboard.wait_for("what you see is old: the server is away")
            keyboard.wait_for("later.py")
            keyboard.type("q")

        keyboard.run(client, typist)


def test_a_lock_that_changed_hands_is_not_stolen(keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user agreed to take it from bob; meanwhile bob released it and cid took it."""
    monkeypatch.setattr(screen_module, "READ_S", 60.0)
    said: list[str] = []
    with connect(session="s-ann") as client:

        def typist() -> None:
            keyboard.wait_for("q quit")
            keyboard.type("/login.py\r:locks\rsbob left\r")
            keyboard.wait_for("y runs it")
            beside("bob task release A-001-login 1")
            beside("cid lock src/login.py")
            keyboard.type("y")
            said.append(keyboard.wait_for("nothing was done", "Lock acquired", "refused"))
            keyboard.type("q")

        keyboard.run(client, typist)
        assert "nothing was done: file:src/login.py is now with s-cid; look again" in said[0]
        assert {each.resource: each.owner for each in client.locks()}["file:src/login.py"] == "s-cid"


def test_without_a_session_the_others_are_shown(busy: Coord, capfd, repository: Path) -> None:
    """A person who has not registered sees the overview, and it registers nobody."""
    assert main(["top", "--once", "-o", "table"]) == 0
    shown = capfd.readouterr().out
    assert "(you)" not in shown
    assert "file:src/app.py" in shown
    assert len(busy("ann peers").answer["peers"]) == 1
