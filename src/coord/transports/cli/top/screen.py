"""Show the view on a terminal until the user quits, and leave the terminal as it was.

A thread waits for commits and wakes the main thread, which reads the store at most once a second, after a
commit. Without one it reads when a lock expires and every half minute, because a process may die silently.
Between two reads only the times are drawn again, and only the lines that differ are written.
"""

import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from coord.core.errors import CoordError
from coord.sdk.client.client import Client
from coord.transports.cli.output import has_colours
from coord.transports.cli.top import actions
from coord.transports.cli.top.actions import Action
from coord.transports.cli.top.keys import Keys
from coord.transports.cli.top.snapshot import Snapshot, read_snapshot
from coord.transports.cli.top.view import TopView
from coord.transports.cli.waiting.notices import Inbox, find_notices

READ_S = 1.0
"""The shortest time between two reads, and the longest between two frames."""
REFRESH_S = 30.0
"""The longest time between two reads."""
RETRY_S = 2.0
"""The time between two attempts to reach a store."""
WAIT_S = 60.0
"""The longest single wait for a commit; it ends early if the store is closed."""
ESCAPE_S = 0.05
"""A sequence of a key arrives within this time; Escape alone is followed by nothing."""
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h"
LEAVE = "\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
"""Take the other screen, hide the cursor, cut long lines, mark pasted texts; and undo all of it."""
COMMIT, RESIZED, CONTINUED = b"!", b"r", b"c"
COLUMNS, LINES = 80, 24
"""The size of a terminal that does not know its own."""
CLEAR, TO_LINE_END = "\x1b[2J", "\x1b[0m\x1b[K"
ASCII = str.maketrans("·…→—✓├└│─", ".~>-*|`|-")
"""What stands for the characters that coord itself uses, where the terminal cannot show them."""


class TerminalGone(Exception):
    """Nobody can see the screen any more."""


class Screen:
    """The terminal: it reads keys and snapshots, and draws what the view says."""

    def __init__(self, client: Client, sort: str, options: list[str] | None = None) -> None:
        """`options`: the global flags of the commands that it shows."""
        self._client = client
        self._encoding = (sys.stdout.encoding or "utf-8").lower()
        self._view = TopView(client, sort, options or [], self._showable)
        self._keys = Keys()
        self._inbox = Inbox(client, find_notices(os.environ))
        self._drawn: list[str] = []
        self._size = (0, 0)
        self._read_at = self._due = 0.0
        self.reads = 0

    def run(self) -> None:
        """Show the view until the user quits."""
        watcher = Watcher(self._client)
        self._use(read_snapshot(self._client), watcher)
        try:
            with suppress(TerminalGone), _full_screen(watcher.wake):
                self._loop(watcher)
        finally:
            watcher.end()

    def _loop(self, watcher: "Watcher") -> None:
        while True:
            self._draw()
            left_s = ESCAPE_S if self._keys.unfinished else max(0.0, self._due - time.monotonic())
            ready, _, _ = select.select([sys.stdin, watcher.woken], [], [], min(left_s, READ_S))
            if watcher.woken in ready:
                self._wake(watcher.take())
            keys = self._keys.flush() if not ready and self._keys.unfinished else []
            if sys.stdin in ready:
                typed = _typed()
                if not typed:  # the terminal is gone
                    return
                keys = self._keys.feed(typed)
            for key in keys:
                asked = self._view.press(key)
                if asked is False:
                    return
                if isinstance(asked, Action):
                    self._run(asked, watcher)
            if time.monotonic() >= self._due:
                self._read(watcher)

    def _wake(self, why: bytes) -> None:
        """Act on what the watcher or a signal reported."""
        if COMMIT in why:
            self._due = min(self._due, self._read_at + READ_S)
        if CONTINUED in why:  # the shell had the terminal
            tty.setcbreak(sys.stdin)
            _write(ENTER)
        if CONTINUED in why or RESIZED in why:
            self._drawn = []

    def _read(self, watcher: "Watcher") -> None:
        """Read the store again; if that fails, show why, and try again later."""
        try:
            self._use(read_snapshot(self._client), watcher)
        except CoordError as error:
            self._view.problem = f"what you see is old: {error}; trying again"
            self._due = time.monotonic() + RETRY_S

    def _use(self, taken: Snapshot, watcher: "Watcher") -> None:
        self.reads += 1
        self._view.use(taken)
        self._read_at = time.monotonic()
        expire_s = [lock.expires_in_s for lock in taken.locks if lock.expires_in_s > 0]
        self._due = self._read_at + max(READ_S, min([REFRESH_S, *expire_s]))
        watcher.await_commit(taken.offset)
        with suppress(CoordError):
            self._inbox.look()

    def _run(self, action: Action, watcher: "Watcher") -> None:
        """Run an action, unless its row has changed since the user looked at it."""
        self._read(watcher)
        taken, command = self._view.taken, self._view.command(action)
        problem = self._view.problem
        if taken is not None and not problem and (what := actions.changed(taken, action.item)):
            problem = f"{what}; look again"
        if problem:
            self._view.note = f"nothing was done: {problem}"
            return
        done, said = actions.run(self._client, action.commands(""))
        self._read(watcher)
        self._view.note = f"$ {command}\n{said}" if done else f"$ {command}\nrefused: {said}"

    def _draw(self) -> None:
        size = os.get_terminal_size()
        columns, height = size.columns or COLUMNS, size.lines or LINES
        lines = self._view.lines(columns, height, time.monotonic(), colours=has_colours())
        if (columns, height) != self._size or not self._drawn:
            self._size, self._drawn = (columns, height), []
            _write(CLEAR)
        before = self._drawn or [""] * len(lines)
        changed = [
            f"\x1b[{at};1H{TO_LINE_END}{line}"
            for at, (line, old) in enumerate(zip(lines, before, strict=False), 1)
            if line != old
        ]
        self._drawn = lines
        _write("".join(changed) if self._is_unicode else "".join(changed).translate(ASCII))

    @property
    def _is_unicode(self) -> bool:
        return self._encoding in {"utf-8", "utf8"}

    def _showable(self, text: str) -> str:
        """Return a text with escapes for what the terminal cannot show."""
        if self._is_unicode or text.isascii():
            return text
        return text.translate(ASCII).encode(self._encoding, "backslashreplace").decode(self._encoding)


class Watcher:
    """Waits for commits in a thread, and wakes the main thread with a byte in a pipe.

    After a commit it waits no further before the main thread has read the store and says from where to wait.
    """

    def __init__(self, client: Client) -> None:
        self._log = client.log
        self._after = 0
        self._asked = threading.Event()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._thread = threading.Thread(target=self._watch, name="coord-top", daemon=True)
        self._thread.start()

    def await_commit(self, after: int) -> None:
        """Wake the main thread after a commit beyond this offset."""
        self._after = after
        self._asked.set()

    def wake(self, why: bytes) -> None:
        """Wake the main thread."""
        with self._lock, suppress(OSError):  # the pipe is full: it is awake
            if not self._ended.is_set():
                os.write(self._wake, why)

    def take(self) -> bytes:
        """Return why the main thread was woken."""
        return os.read(self.woken, 4096)

    def end(self) -> None:
        """Let the thread end; it may still wait until the store is closed."""
        with self._lock:
            self._ended.set()
        self._asked.set()
        os.close(self._wake)
        os.close(self.woken)

    def _watch(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            grown = False
            while not grown:
                try:
                    grown = self._log.wait(self._after, WAIT_S)
                except CoordError:
                    grown = not self._ended.wait(RETRY_S)
                if self._ended.is_set():
                    return
            self.wake(COMMIT)


@contextmanager
def _full_screen(wake: Callable[[bytes], None]) -> Iterator[None]:
    """Take over the terminal during a block, and restore it however the block ends."""
    before = termios.tcgetattr(sys.stdin)
    handlers = {
        signal.SIGWINCH: signal.signal(signal.SIGWINCH, lambda *_: wake(RESIZED)),
        signal.SIGCONT: signal.signal(signal.SIGCONT, lambda *_: wake(CONTINUED)),
        signal.SIGTSTP: signal.signal(signal.SIGTSTP, signal.SIG_IGN),
    }
    try:
        tty.setcbreak(sys.stdin)
        _write(ENTER)
        yield
    finally:
        with suppress(TerminalGone, termios.error):
            _write(LEAVE)
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for signum, handler in handlers.items():
            signal.signal(signum, handler)


def _typed() -> bytes:
    """Return what was typed; nothing if the terminal is gone."""
    try:
        return os.read(sys.stdin.fileno(), 4096)
    except OSError:
        return b""


def _write(text: str) -> None:
    """Write to the terminal; another program may have made it non-blocking."""
    left = memoryview(text.encode(sys.stdout.encoding or "utf-8", "replace"))
    screen = sys.stdout.fileno()
    while left:
        try:
            left = left[os.write(screen, left) :]
        except BlockingIOError:
            select.select([], [screen], [])
        except OSError as error:
            raise TerminalGone from error
