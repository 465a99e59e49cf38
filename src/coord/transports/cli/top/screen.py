"""Show frames on a terminal until the user quits, and leave the terminal as it was.

A thread waits for commits and wakes the main thread, which reads the store at most once a second and not at
all while nothing changes. Between two reads only the times are drawn again.
"""

import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from coord.core.errors import CoordError
from coord.sdk.client.client import Client
from coord.transports.cli.output import has_colours
from coord.transports.cli.table import fitted
from coord.transports.cli.top.frame import SORTS, frame
from coord.transports.cli.top.snapshot import Snapshot, read_snapshot
from coord.transports.cli.waiting.notices import Inbox, find_notices

READ_S = 1.0
"""The shortest time between two reads."""
WAIT_S = 0.5
"""The longest wait for a commit, and so for the thread that waits."""
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, TO_LINE_END, TO_SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"
UP, DOWN, PAGE_UP, PAGE_DOWN = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~"
HELP = "q quit · s sort ({sort}) · arrows scroll"


class Screen:
    """The view, with its sort order and the line that it is scrolled to."""

    def __init__(self, client: Client, sort: str) -> None:
        self._client = client
        self._sort = sort
        self._scroll = 0
        self._inbox = Inbox(client, find_notices(os.environ))
        self.reads = 0

    def run(self) -> None:
        """Show the view until the user presses q."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        ended = threading.Event()
        after = self._client.log.seen.offset
        watcher = threading.Thread(target=self._watch, args=(after, wake, ended), daemon=True)
        try:
            with _full_screen(wake):
                taken, read_at = self._read(), time.monotonic()
                watcher.start()
                changed = False
                while True:
                    self._draw(taken)
                    ready, _, _ = select.select([sys.stdin, woken], [], [], READ_S)
                    if woken in ready:
                        changed = b"!" in os.read(woken, 4096) or changed
                    if sys.stdin in ready and not self._press(
                        os.read(sys.stdin.fileno(), 64).decode(errors="replace")
                    ):
                        return
                    if changed and time.monotonic() - read_at >= READ_S:
                        taken, read_at, changed = self._read(), time.monotonic(), False
        finally:
            ended.set()
            if watcher.is_alive():
                watcher.join()
            os.close(wake)
            os.close(woken)

    def _watch(self, after: int, wake: int, ended: threading.Event) -> None:
        """Wake the main thread after each commit beyond `after`."""
        store = self._client.log
        while not ended.is_set():
            try:
                if not store.wait(after, WAIT_S):
                    continue
            except CoordError:
                ended.wait(READ_S)
                continue
            after = store.seen.offset  # read before the wake-up: the main thread then sees all up to here
            with suppress(OSError):
                os.write(wake, b"!")

    def _read(self) -> Snapshot:
        taken = read_snapshot(self._client)
        self.reads += 1
        self._inbox.look()
        return taken

    def _press(self, keys: str) -> bool:
        """Act on pressed keys; return whether to go on."""
        page = max(1, os.get_terminal_size().lines - 2)
        if "q" in keys:
            return False
        if "s" in keys:
            self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        for key, step in ((UP, -1), (DOWN, 1), (PAGE_UP, -page), (PAGE_DOWN, page)):
            self._scroll = max(0, self._scroll + step * keys.count(key))
        return True

    def _draw(self, taken: Snapshot) -> None:
        columns, height = os.get_terminal_size()
        now = time.monotonic()
        lines = frame(taken, columns, sort=self._sort, now=now, colours=has_colours())
        room = max(1, height - 1)
        self._scroll = max(0, min(self._scroll, len(lines) - room))
        shown = lines[self._scroll : self._scroll + room]
        shown += [""] * (room - len(shown))
        shown.append(fitted(HELP.format(sort=self._sort), columns).rstrip())
        sys.stdout.write(HOME + f"{TO_LINE_END}\r\n".join(shown) + TO_LINE_END + TO_SCREEN_END)
        sys.stdout.flush()


@contextmanager
def _full_screen(wake: int) -> Iterator[None]:
    """Take over the terminal during a block, and restore it however the block ends."""

    def resized(_signum: int, _frame: object) -> None:
        with suppress(OSError):
            os.write(wake, b"r")

    before = termios.tcgetattr(sys.stdin)
    handlers = {
        signal.SIGWINCH: signal.signal(signal.SIGWINCH, resized),
        signal.SIGTSTP: signal.signal(signal.SIGTSTP, signal.SIG_IGN),
    }
    try:
        tty.setcbreak(sys.stdin)
        sys.stdout.write(ENTER)
        yield
    finally:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for signum, handler in handlers.items():
            signal.signal(signum, handler)
