"""Notices for people: the terminal's bell and the desktop, if the user wants them.

COORD_NOTIFY=bell,desktop or `[notify] bell = true` in the user's `coord.toml` turns them on. A repository's
`coord.toml` cannot.
"""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from coord.core.errors import CoordError, Invalid
from coord.core.ids import short_repr
from coord.core.messages.quoting import quote, visible
from coord.host.config import read_configuration, user_configuration_file
from coord.sdk.client.client import Client
from coord.transports.cli.output import is_terminal

KINDS = ("bell", "desktop")
BELL = "\a"
CHARS_MAX = 200
WAIT_S = 0.5
"""The longest wait for a commit, and so for the thread that waits."""


class Notices:
    """The kinds of notice that the user wants; false if there are none."""

    def __init__(self, kinds: frozenset[str]) -> None:
        self._kinds = kinds

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def send(self, text: str) -> None:
        """Ring the terminal's bell, and show a text on the desktop; failures are ignored."""
        if "bell" in self._kinds and is_terminal(sys.stderr):
            with suppress(OSError):
                sys.stderr.write(BELL)
                sys.stderr.flush()
        if "desktop" in self._kinds:
            _show_on_desktop(visible(text)[:CHARS_MAX])


def find_notices(environ: Mapping[str, str]) -> Notices:
    """Return the notices that COORD_NOTIFY asks for or, if it is not set, the user's `coord.toml`."""
    given = environ.get("COORD_NOTIFY")
    if given is not None:
        words = {word.strip() for word in given.split(",")} - {""}
        unknown = sorted(words - set(KINDS))
        if unknown:
            hint = f"one of {', '.join(KINDS)}"
            raise Invalid(f"COORD_NOTIFY: unknown value {short_repr(unknown[0])}", hint=hint)
        return Notices(frozenset(words))
    file = user_configuration_file(environ)
    table = read_configuration(file).get("notify", {})
    if not isinstance(table, dict) or not all(
        name in KINDS and isinstance(value, bool) for name, value in table.items()
    ):
        raise Invalid(f"[notify] in {file} is invalid", hint="for example: [notify] bell = true")
    return Notices(frozenset(name for name, value in table.items() if value))


class Inbox:
    """Gives a notice for each message that arrives after the first look."""

    def __init__(self, client: Client, notices: Notices) -> None:
        self._client = client
        self._notices = notices
        self._known: set[str] | None = None

    def look(self) -> None:
        """Look for new messages; if the user wants no notices, this reads nothing."""
        if not self._notices:
            return
        unread = self._client.recv(peek=True).messages
        known, self._known = self._known, {each.id for each in unread}
        for each in unread:
            if known is not None and each.id not in known:
                self._notices.send(f"message from {each.from_session_id}: {quote(each.subject)}")


@contextmanager
def announcing_messages(client: Client, notices: Notices) -> Iterator[None]:
    """Give notices for messages that arrive during a block; errors of the store are ignored."""
    if not notices:
        yield
        return
    inbox, ended, store = Inbox(client, notices), threading.Event(), client.log
    start = store.seen.offset
    with suppress(CoordError):
        inbox.look()

    def watch() -> None:
        after = start
        while not ended.is_set():
            try:
                if store.wait(after, WAIT_S):
                    after = store.seen.offset
                    inbox.look()
            except CoordError:
                ended.wait(WAIT_S)

    watcher = threading.Thread(target=watch, name="coord-inbox", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _show_on_desktop(text: str) -> None:
    """Start `notify-send` and do not wait for it; it reads markup, so its characters are escaped."""
    body = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    with suppress(OSError):  # not every machine has the program
        os.posix_spawnp(
            "notify-send",
            ["notify-send", "--app-name=coord", "--", "coord", body],
            os.environ,
            file_actions=quiet,
        )
