"""`coord top`: a live view on the terminal."""

import sys
import time

from coord.sdk.client.client import Client
from coord.transports import exit_codes
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, fields_of, form, has_colours, is_terminal
from coord.transports.cli.top.frame import frame
from coord.transports.cli.top.snapshot import Snapshot, read_snapshot


class TopArgs(Args, frozen=True):
    """The arguments of `coord top`."""

    once: bool
    sort: str


def top(client: Client, args: TopArgs) -> Answer | int:
    """Show sessions, locks, tasks and messages until the user quits; without a terminal, once."""
    live = not args.once and form() == "table" and is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if not live:
        return _once(read_snapshot(client), args.sort)
    from coord.transports.cli.top.screen import Screen

    Screen(client, args.sort).run()
    return exit_codes.OK


def _once(taken: Snapshot, sort: str) -> Answer:
    def drawn(room: int) -> str:
        lines = frame(taken, room, sort=sort, now=time.monotonic(), colours=has_colours())
        return "".join(f"{line}\n" for line in lines)

    names = ("project", "sessions", "locks", "tasks", "messages")
    return Answer({name: fields_of(getattr(taken, name)) for name in names}, drawn=drawn)
