"""A view of a repository without a terminal: keys go in, lines come out."""

import time
from collections.abc import Callable, Iterator

import pytest

from coord.sdk.client.client import Client, connect
from coord.transports.cli.top import actions
from coord.transports.cli.top.actions import Action
from coord.transports.cli.top.keys import Key
from coord.transports.cli.top.snapshot import read_snapshot
from coord.transports.cli.top.view import TopView
from tests.support.cli import Coord


class Driver:
    """A view of a client; actions run as the screen runs them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.view = TopView(client, "name", [], lambda text: text)
        self.ended = False
        self.size = (100, 40)
        self.read()

    def read(self) -> None:
        self.view.use(read_snapshot(self.client))
        self.lines()

    def press(self, *keys: str) -> str:
        """Press keys by their names; a longer text is typed at once. Return what is shown then."""
        for name in keys:
            known = len(name) == 1 or name in ("enter", "escape", "down", "up", "tab", "page down", "end")
            for each in [Key(name, name if len(name) == 1 else "")] if known else [Key(c, c) for c in name]:
                asked = self.view.press(each)
                self.ended = self.ended or asked is False
                if isinstance(asked, Action):
                    done, said = actions.run(self.client, asked.commands(""))
                    self.read()
                    self.view.note = f"{done} {self.view.command(asked)}\n{said}"
            self.lines()
        return self.shown()

    def lines(self, columns: int = 0, height: int = 0, *, colours: bool = False) -> list[str]:
        columns, height = columns or self.size[0], height or self.size[1]
        return self.view.lines(columns, height, time.monotonic(), colours=colours)

    def shown(self, columns: int = 0, height: int = 0) -> str:
        return "\n".join(self.lines(columns, height))

    @property
    def selected(self) -> str:
        """The row with the mark."""
        (row,) = [line for line in self.lines(200) if line.startswith("> ")]
        return row[2:]


@pytest.fixture
def drive(coord: Coord) -> Iterator[Callable[[str], Driver]]:
    """Return a function that makes the view of a session."""
    clients: list[Client] = []

    def make(session: str) -> Driver:
        clients.append(connect(session=f"s-{session}", agent=session))
        return Driver(clients[-1])

    yield make
    for client in clients:
        client.close()
