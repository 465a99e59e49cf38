"""`coord top`: a live view on the terminal."""

import os
import sys
import time
from typing import Any

from coord.core.errors import Invalid
from coord.sdk.client.client import Client
from coord.transports import exit_codes
from coord.transports.cli.args import Args, Options
from coord.transports.cli.connect import connected
from coord.transports.cli.output import Answer, fields_of, form, has_colours, is_terminal
from coord.transports.cli.table import fitted, table

INSTEAD = "coord dashboard prints the state once, coord top --once one frame"


class TopArgs(Args, frozen=True):
    """The arguments of `coord top`."""

    once: bool
    sort: str


def top(options: Options, args: TopArgs) -> Answer | int:
    """Show agents, locks, the queue and the last events until the user quits."""
    if not args.once:
        _check_terminal()
    with connected(options, create=False) as client:
        if args.once:
            return _once(client, args.sort)
        from coord.transports.cli.top.actions import global_words
        from coord.transports.cli.top.screen import Screen

        Screen(client, args.sort, global_words(options)).run()
    return exit_codes.OK


def _check_terminal() -> None:
    """Refuse to begin where no screen can be drawn or no key be read."""
    if not is_terminal(sys.stdout) or not is_terminal(sys.stdin):
        raise Invalid("coord top needs a terminal for its input and output", hint=INSTEAD)
    if form() == "json":
        raise Invalid("coord top draws a screen, and JSON was asked for", hint=INSTEAD)
    if os.environ.get("TERM", "dumb") == "dumb":
        raise Invalid("coord top needs a terminal that can move its cursor, and TERM says dumb", hint=INSTEAD)


def _once(client: Client, sort: str) -> Answer:
    from coord.transports.cli.top.sections import sections, title
    from coord.transports.cli.top.snapshot import read_snapshot

    taken = read_snapshot(client)
    found = sections(taken, sort=sort, now=time.monotonic())

    def drawn(room: int) -> str:
        parts = [fitted(title(taken), room).rstrip() + "\n"]
        for section in found:
            rows = [item.row for item in section.items]
            heading = f"{section.title} ({section.total})" if rows else f"{section.title}: none"
            parts.append(
                f"\n{heading}\n{table(rows, section.columns, room, colours=has_colours()) if rows else ''}"
            )
        return "".join(parts)

    fields: dict[str, Any] = {"project": taken.project, "session_id": taken.own or None}
    for section in found:
        fields[section.name] = [{**item.row, "id": item.key} for item in section.items]
    return Answer(fields_of(fields), drawn=drawn)
