"""Shows a run: as a live table on a terminal, as plain lines elsewhere."""

import sys
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from demo.stage import Piece, Stage

CELL_CHARS = 20
NEWS_LINES = 6
PIECE_STYLES = {"free": "dim", "held": "yellow", "lost": "red", "done": "green"}
PIECE_SIGNS = {"free": "·", "held": "▸", "lost": "✝", "done": "✔"}
PART_STYLES = {
    "killed": "bold red",
    "frozen": "bold blue",
    "zombie": "bold magenta",
    "deadlock": "bold red",
    "queued": "bold cyan",
    "finished": "green",
}
TRACKS = 4
COUNTER_CHARS, BAR_LEAST = 80, 8


class Screen(Protocol):
    """The output of a run."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def show(self, stage: Stage) -> None: ...


class PlainScreen:
    """Prints the news line by line."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def show(self, stage: Stage) -> None:
        for line in stage.take_news():
            print(line, flush=True)


class LiveScreen:
    """Redraws the whole stage in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=12)
        self._news: list[str] = []

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, stage: Stage) -> None:
        self._news = [*self._news, *stage.take_news()][-NEWS_LINES:]
        self._live.update(drawn(stage, self._news, self._console.width, self._console.height))


def drawn(stage: Stage, news: list[str], width: int, height: int) -> RenderableType:
    """Return the stage for rich to draw; a low terminal shows fewer news."""
    columns = max(1, min(TRACKS, width // CELL_CHARS))
    rows = -(-len(stage.pieces) // columns)
    room = height - (len(stage.parts) + 1) - rows - 4
    shown = news[-room:] if room > 0 else []
    latest = Text("\n".join(shown), style="dim", no_wrap=True, overflow="ellipsis")
    return Group(_workers(stage), Text(), _pieces(stage, rows), Text(), _totals(stage, width), latest)


def _workers(stage: Stage) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head, chars in (("agent", 8), ("kind", 10), ("does", 10), ("task", 20), ("generation", 10)):
        table.add_column(head, header_style="dim", no_wrap=True, width=chars)
    for part in stage.parts.values():
        style = PART_STYLES.get(part.doing, "white")
        generation = str(part.generation) if part.generation else ""
        session, doing = f"[{style}]{part.session}[/]", f"[{style}]{part.doing}[/]"
        table.add_row(session, part.kind, doing, part.task, generation)
    return table


def _pieces(stage: Stage, rows: int) -> Table:
    pieces = list(stage.pieces.values())
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in range(rows):
        table.add_row(*(_cell(piece) for piece in pieces[row::rows]))
    return table


def _cell(piece: Piece) -> str:
    style, sign = PIECE_STYLES[piece.state], PIECE_SIGNS[piece.state]
    generation = f"g{piece.generation}" if piece.generation else ""
    return f"[{style}]{sign} {piece.task[:5]} {generation:<2} {piece.holder[:7]:<7}[/]"


def _totals(stage: Stage, width: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    counters = (
        f"[bold]{stage.done}[/] of {len(stage.pieces)} done  [bold]{stage.claims}[/] claims  "
        f"[bold red]{stage.kills}[/] killed  [bold magenta]{stage.refused}[/] refused  "
        f"[bold cyan]{stage.waits}[/] waited  [bold red]{stage.deadlocks}[/] deadlock  {stage.seconds:.1f} s"
    )
    room = width - COUNTER_CHARS
    bar = ProgressBar(total=len(stage.pieces), completed=stage.done, width=min(40, room))
    table.add_row(*([bar] if room >= BAR_LEAST else []), counters)
    return table


def screen_for_stdout() -> Screen:
    """Return a live table for a terminal, and plain lines for a pipe or a file."""
    return LiveScreen(Console()) if sys.stdout.isatty() else PlainScreen()
