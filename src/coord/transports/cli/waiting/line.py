"""The line that a person sees while a command waits: for what, behind whom, and for how long already.

Nothing is drawn, read or imported before the command really waits.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from coord.core.messages.quoting import visible
from coord.transports import arguments
from coord.transports.cli.output import is_terminal, say, width
from coord.transports.cli.signals import interrupts

if TYPE_CHECKING:
    import threading

    from coord.sdk.client.client import Client
    from coord.transports.cli.waiting.notices import Inbox

REDRAW_S = 1.0
ERASE = "\r\x1b[K"

Describe = Callable[[Any, float], str]
"""Returns what a reply says about the wait; the number is the age of the reply in seconds."""


@contextmanager
def showing_wait(client: "Client", what: str, wait_s: float | None, describe: Describe) -> Iterator[None]:
    """Show a line on the terminal while `client` waits in this block; without a terminal, nothing.

    A message that arrives during the wait gives a notice, if the user wants notices.
    """
    if wait_s == 0 or not is_terminal(sys.stderr):
        client.on_wait = lambda _: interrupts.check()
        yield
        return
    line = WaitLine(what, wait_s, describe)
    inbox: Inbox | None = None

    def on_wait(reply: Any) -> None:
        nonlocal inbox
        interrupts.check()
        line.update(reply)
        if inbox is None:
            from coord.transports.cli.waiting.notices import Inbox, find_notices

            inbox = Inbox(client, find_notices(os.environ))
        if reply is not None:
            inbox.look()

    client.on_wait = on_wait
    try:
        yield
    finally:
        client.on_wait = None
        line.end()


class WaitLine:
    """One line on stderr that a thread rewrites every second; the thread starts with the first reply."""

    def __init__(self, what: str, wait_s: float | None, describe: Describe) -> None:
        self._what = what
        self._describe = describe
        self._began = time.monotonic()
        self._until = None if wait_s is None else self._began + wait_s
        self._reply: Any = None
        self._read_at = self._began
        self._ended: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def update(self, reply: Any) -> None:
        """Take what the store has just said; the first time, begin to draw. None ends it."""
        if reply is None:
            self.end()
            return
        self._reply, self._read_at = reply, time.monotonic()
        if self._ended is None:
            self._begin()

    def end(self) -> None:
        """Stop drawing, and erase the line."""
        if self._ended is not None:
            self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._ended = self._thread = None
            _write(ERASE)

    def text(self, now: float) -> str:
        """Return the line: what is awaited, what the store says about it, and the time."""
        said = self._describe(self._reply, now - self._read_at)
        waited = arguments.span(now - self._began)
        limit = "" if self._until is None else f" · gives up in {arguments.span(self._until - now)}"
        return visible(f"Waiting {waited} for {self._what}{f' — {said}' if said else ''}{limit}")

    def _begin(self) -> None:
        import threading

        self._ended = threading.Event()
        if os.environ.get("TERM", "dumb") == "dumb":  # it cannot rewrite a line
            say(self.text(self._read_at))
            return
        thread = threading.Thread(target=self._draw, args=(self._ended,), daemon=True)
        thread.start()
        self._thread = thread  # not before: an interrupted start leaves none to wait for

    def _draw(self, ended: "threading.Event") -> None:
        from coord.transports.cli.table import fitted

        while True:
            _write(ERASE + fitted(self.text(time.monotonic()), width(sys.stderr) - 1).rstrip())
            if ended.wait(REDRAW_S):
                return


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # stderr is closed
