"""Lay out rows for people: aligned columns if they fit, else a block per row.

The first column and ids are never cut. Widths count terminal cells, not characters or colours.
"""

import functools
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from coord.core.messages.quoting import visible
from coord.transports import arguments

Row = Mapping[str, Any]

GAP = 2
BETWEEN = " · "
NARROWEST, NARROWEST_SENTENCE = 14, 24
"""The cells that a column keeps when it is cut or wrapped; below that, a row becomes a block."""
WRAPPED = frozenset(("value", "message", "hint", "problem", "warning", "because", "why", "reason", "what"))
"""Columns with sentences, which continue on the next line instead of being cut."""
IDS = frozenset(("task_id", "event"))
"""Columns that name a row although another one comes first."""
SENTENCES_MAX = 40
"""The most rows whose sentences are wrapped; a longer listing cuts them and keeps one line per row."""
SOON_S = 60.0

RESET, GREEN, YELLOW, RED, DIM = "\x1b[0m", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m"
COLOURED = frozenset(("state", "liveness", "status", "outcome", "end_reason", "release_reason"))
"""Columns whose first word has a colour."""
COLOURS = {
    **dict.fromkeys(("live", "working", "done", "ok", "merged", "accepted", "submitted"), GREEN),
    **dict.fromkeys(
        (
            "stale",
            "silent",
            "in_progress",
            "blocked",
            "waiting",
            "warn",
            "expired",
            "preempted",
            "suspect",
            "hung",
        ),
        YELLOW,
    ),
    **dict.fromkeys(
        (
            "dead",
            "crashed",
            "failed",
            "errored",
            "bad",
            "denied",
            "rejected",
            "conflict",
            "stolen",
            "revoked",
        ),
        RED,
    ),
    **dict.fromkeys(("ended", "skipped", "exited", "terminated", "unchanged", "nothing_new"), DIM),
}


def table(
    rows: Sequence[Row], columns: Sequence[str], room: int, *, colours: bool = False, whole: bool = False
) -> str:
    """Return rows as text in lines of at most `room` cells; `whole` cuts nothing and leaves no column out."""
    lines = table_lines(rows, columns, room, colours=colours, whole=whole)
    return "".join(f"{line}\n" for _, line in lines)


def table_lines(
    rows: Sequence[Row],
    columns: Sequence[str],
    room: int,
    *,
    colours: bool = False,
    whole: bool = False,
    wraps: bool = True,
) -> list[tuple[int, str]]:
    """Return the lines of a table, each with the number of its row; that of the headings is -1.

    Without `wraps` a sentence is cut as other cells are, so that each row that fits has one line.
    """
    if not rows:
        return []
    cells = [[_cell(row, column, whole=whole) for column in columns] for row in rows]
    if whole:
        widths = [_widest(columns, cells, at) for at in range(len(columns))]
        return _aligned(rows, columns, cells, widths, colours, wraps)
    kept = _kept(columns, cells, room)
    columns = [columns[at] for at in kept]
    cells = [[line[at] for at in kept] for line in cells]
    fit = _fit(columns, [_widest(columns, cells, at) for at in range(len(columns))], room)
    if fit is None:
        return list(_blocks(rows, columns, cells, room, colours))
    return _aligned(rows, columns, cells, fit, colours, wraps)


def cells_wide(text: str) -> int:
    """Return how many terminal cells a text takes, according to Unicode."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def fitted(text: str, room: int) -> str:
    """Return a text cut or padded to exactly `room` cells."""
    if cells_wide(text) > room:
        text = _split(text, room - 1)[0] + "…"
    return text + " " * (room - cells_wide(text))


def wrapped(text: str, room: int) -> list[str]:
    """Return a text as lines of at most `room` cells, broken at spaces where possible.

    >>> wrapped("one two three", 8)
    ['one two', 'three']
    """
    start = len(text) - len(text.lstrip(" "))
    first, *words = text[start:].split(" ")
    lines = [""]
    for word in [text[:start] + first, *words]:
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cells_wide(joined) <= room:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        rest = word
        while cells_wide(rest) > room:
            head, rest = _split(rest, room)
            lines[-1:] = [head, ""]
        lines[-1] = rest
    return lines if lines[-1] or len(lines) == 1 else lines[:-1]


def paragraphs(text: str, room: int, indent: str = "") -> str:
    """Return a text of several lines, each one safe for a terminal, wrapped and indented."""
    lines = [visible(line.rstrip().expandtabs(4)) for line in text.split("\n")]
    parts = (part for line in lines for part in wrapped(line, room - len(indent)))
    return "".join(f"{indent}{part}".rstrip() + "\n" for part in parts)


def ago(at: str) -> str:
    """Return a time of RFC 3339 as people say it: `3 s ago`, `5m ago`, `in 4m30s`; other texts unchanged."""
    try:
        seconds = time.time() - datetime.fromisoformat(at).timestamp()
    except ValueError:
        return at
    if seconds < 0:
        return f"in {arguments.span(-seconds)}"
    for unit, size in arguments.UNITS.items():
        if seconds >= size and unit != "s":
            return f"{int(seconds // size)}{unit} ago"
    return f"{int(seconds)} s ago"


def painted(column: str, row: Row, text: str) -> str:
    """Return a text with the colour of its value, if it has one."""
    colour = _colour(column, row)
    return f"{colour}{text}{RESET}" if colour else text


def _colour(column: str, row: Row) -> str:
    if column == "expires_in":
        left_s = row.get("expires_in_s", SOON_S)
        return RED if left_s <= 0 else YELLOW if left_s < SOON_S else ""
    name = row.get("field") if column == "value" else column.lower()
    if name not in COLOURED:
        return ""
    return COLOURS.get(str(row.get(column)).partition(" ")[0].rstrip(":").lower(), "")


def _aligned(
    rows: Sequence[Row],
    columns: Sequence[str],
    cells: list[list[str]],
    widths: list[int],
    colours: bool,
    wraps: bool,
) -> list[tuple[int, str]]:
    lines = [(-1, _joined(map(fitted, map(_heading, columns), widths)).rstrip())]
    wrap = [wraps and column in WRAPPED and len(rows) <= SENTENCES_MAX for column in columns]
    for number, (row, line) in enumerate(zip(rows, cells, strict=True)):
        parts = [
            wrapped(cell, room) if wraps_cell else [cell]
            for cell, room, wraps_cell in zip(line, widths, wrap, strict=True)
        ]
        for at in range(max(map(len, parts))):
            texts = [
                fitted(part[at] if at < len(part) else "", room)
                for part, room in zip(parts, widths, strict=True)
            ]
            if colours:
                texts = [painted(column, row, text) for column, text in zip(columns, texts, strict=True)]
            lines.append((number, _joined(texts).rstrip()))
    return lines


def _joined(texts: Iterable[str]) -> str:
    return (" " * GAP).join(texts)


def _blocks(
    rows: Sequence[Row], columns: Sequence[str], cells: list[list[str]], room: int, colours: bool
) -> Iterator[tuple[int, str]]:
    """Yield a block per row: the first column, and below it the others that have a value."""
    for number, (row, line) in enumerate(zip(rows, cells, strict=True)):
        yield from ((number, part) for part in wrapped(line[0], room))
        lines: list[str] = []
        left = 0
        for column, cell in zip(columns[1:], line[1:], strict=True):
            if cell == "-":
                continue
            for part in wrapped(f"{_heading(column).lower()}: {cell}", room - GAP):
                text = painted(column, row, part) if colours else part
                if lines and cells_wide(part) + len(BETWEEN) <= left:
                    lines[-1] += BETWEEN + text
                    left -= cells_wide(part) + len(BETWEEN)
                else:
                    lines.append(" " * GAP + text)
                    left = room - GAP - cells_wide(part)
        yield from ((number, each) for each in lines)


def _heading(column: str) -> str:
    """Return the heading of a column; a name with capitals is one already."""
    if column != column.lower():
        return column
    for suffix in ("_at", "_s"):
        column = column.removesuffix(suffix)
    return column.upper().replace("_", " ")


def _cell(row: Row, column: str, *, whole: bool) -> str:
    value = row.get(column)
    name = str(row.get("field", "")) if column == "value" else column
    if column == "field" and isinstance(value, str):
        return visible(_heading(value).lower())
    if not whole and isinstance(value, str) and (name == "at" or name.endswith("_at")):
        return visible(ago(value))
    if isinstance(value, int | float) and not isinstance(value, bool) and name.endswith("_s"):
        return arguments.span(value)
    return visible(_text(value))


def _text(value: Any) -> str:
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name}={_text(each)}" for name, each in value.items()) or "-"
        case list() | tuple():
            return ", ".join(map(_text, value)) or "-"
        case _:
            return str(value)


def _widest(columns: Sequence[str], cells: list[list[str]], at: int) -> int:
    return max(cells_wide(_heading(columns[at])), *(cells_wide(line[at]) for line in cells))


def _kept(columns: Sequence[str], cells: list[list[str]], room: int) -> list[int]:
    """Return the columns to show: if not all of them fit, those that have a value in some row."""
    every = range(len(columns))
    if sum(_widest(columns, cells, at) + GAP for at in every) - GAP <= room:
        return list(every)
    return [at for at in every if at == 0 or any(line[at] != "-" for line in cells)]


def _fit(columns: Sequence[str], widths: list[int], room: int) -> list[int] | None:
    """Narrow the widest columns but the first until a line fits; None if they cannot be narrowed enough."""
    fit = list(widths)
    floors = [
        widths[at] if column in IDS else NARROWEST_SENTENCE if column in WRAPPED else NARROWEST
        for at, column in enumerate(columns)
    ]
    excess = sum(fit) + GAP * (len(fit) - 1) - room
    for _ in range(excess):
        widest = max(range(1, len(fit)), key=lambda at: (fit[at] > floors[at], fit[at]), default=0)
        if not widest or fit[widest] <= floors[widest]:
            return None
        fit[widest] -= 1
    return fit


def _split(text: str, room: int) -> tuple[str, str]:
    """Split a text after at most `room` cells, but after one character at least."""
    used = 0
    for at, character in enumerate(text):
        used += _character_width(character)
        if used > room and at:
            return text[:at], text[at:]
    return text, ""


@functools.cache
def _character_width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
