"""Notices for people: the terminal's bell and the desktop, if the user wants them.

COORD_NOTIFY=bell,desktop or `[notify] bell = true` in the user's `coord.toml` turns them on. A repository's
`coord.toml` cannot.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.host.config import read_configuration, user_configuration_file
from coord.transports.cli.output import is_terminal, visible

KINDS = ("bell", "desktop")
BELL = "\a"
CHARS_MAX = 200


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
