"""Print answers: JSON on stdout (a table on a terminal), and one line for people on stderr."""

import os
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from coord.transports import exit_codes

WIDTH_WITHOUT_TERMINAL = 100
NARROWEST = 6
_UNSAFE_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# JSON escapes control characters below space; these, too, control a terminal or reverse its text.
_UNSAFE_IN_JSON = {
    code: f"\\u{code:04x}"
    for code in (*range(0x7F, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
}


class Answer(NamedTuple):
    """The answer of a command: JSON fields, a line for people, and perhaps a table or a picture."""

    fields: Mapping[str, Any] = {}
    line: str = ""
    rows: Sequence[Mapping[str, Any]] = ()
    columns: tuple[str, ...] = ()
    failure: exit_codes.Failure | None = None
    drawn: Callable[[], str] | None = None
    """Returns the text that a terminal shows instead of a table."""

    @property
    def exit_code(self) -> int:
        """The exit code of the process."""
        return self.failure.exit_code if self.failure else exit_codes.OK


def failed(failure: exit_codes.Failure) -> Answer:
    """Return the answer for a failure."""
    hint = f" ({failure.hint})" if failure.hint else ""
    return Answer(line=f"coord: {failure.message}{hint}", failure=failure)


def show(answer: Answer, *, as_json: bool) -> int:
    """Print an answer, and return the exit code."""
    say(answer.line)
    if as_json or not is_terminal(sys.stdout):
        return _write(_as_json(answer), answer.exit_code)
    if answer.drawn is not None:
        return _write(answer.drawn(), answer.exit_code)
    if answer.rows:
        return _write(table(answer.rows, answer.columns, width(sys.stdout)), answer.exit_code)
    return answer.exit_code


def show_line(fields: Mapping[str, Any]) -> None:
    """Print a line of JSON before the answer."""
    _write(_json_line(fields), exit_codes.OK)


def show_text(text: str) -> int:
    """Print a text without JSON, such as help."""
    return _write(text, exit_codes.OK)


def say(line: str) -> None:
    """Print a line for people on stderr; a closed stderr is ignored."""
    if not line or sys.stderr is None:
        return
    try:
        sys.stderr.write(visible(line) + "\n")
        sys.stderr.flush()
    except OSError:
        pass


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "lock"), count(2, "lock")
    ('1 lock', '2 locks')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def has_colours() -> bool:
    """Return whether to colour stdout: it is a terminal, and NO_COLOR is not set."""
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return is_terminal(sys.stdout) and not unwanted


def fields_of(reply: Any) -> Any:
    """Return a reply as plain data; a struct's times (`…_ms`) become `…_at`, user data stays unchanged."""
    names = getattr(type(reply), "__struct_fields__", None)
    if names is not None:
        return dict(_field(name, getattr(reply, name)) for name in names)
    if isinstance(reply, list | tuple):
        return [fields_of(each) for each in reply]
    if isinstance(reply, dict):
        return {key: fields_of(value) for key, value in reply.items()}
    return reply


def _field(name: str, value: Any) -> tuple[str, Any]:
    if name.endswith("_ms"):
        return f"{name.removesuffix('_ms')}_at", timestamp(value)
    return name, fields_of(value)


def timestamp(ms: int | None) -> str | None:
    """Return a time as RFC 3339 in UTC; None for 0.

    >>> timestamp(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    if not ms:
        return None
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(ms // 1000))}.{ms % 1000:03d}Z"


def visible(text: str) -> str:
    """Return a text with control characters escaped, so that a terminal shows them."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible_character(character) for character in text)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], most: int) -> str:
    """Return rows as aligned columns with a heading, in lines of at most `most` cells."""
    cells = [[column.upper().replace("_", " ") for column in columns]]
    cells += [[visible(_cell(row.get(column))) for column in columns] for row in rows]
    widths = _fit([max(map(cells_wide, each)) for each in zip(*cells, strict=True)], most)
    lines = ("  ".join(fitted(cell, room) for cell, room in zip(line, widths, strict=True)) for line in cells)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def cells_wide(text: str) -> int:
    """Return how many terminal cells a text takes, according to Unicode."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _visible_character(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE_CATEGORIES:
        return character
    return character.encode("unicode_escape").decode()


def _cell(value: Any) -> str:
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(str, value)) or "-"
        case _:
            return str(value)


def _fit(widths: Iterable[int], most: int) -> list[int]:
    """Narrow the widest columns until a line fits, but none below `NARROWEST`."""
    fitted = list(widths)
    while sum(fitted) + 2 * (len(fitted) - 1) > most and max(fitted) > NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def fitted(text: str, room: int) -> str:
    """Return a text cut or padded to exactly `room` cells."""
    if cells_wide(text) > room:
        text = _cut(text, room - 1) + "…"
    return text + " " * (room - cells_wide(text))


def _cut(text: str, room: int) -> str:
    kept = ""
    for character in text:
        if cells_wide(kept) + _character_width(character) > room:
            break
        kept += character
    return kept


def width(stream: TextIO) -> int:
    """Return the width of a stream in cells."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH_WITHOUT_TERMINAL
    except OSError:
        return WIDTH_WITHOUT_TERMINAL


def _as_json(answer: Answer) -> str:
    reply: dict[str, Any] = {"ok": answer.failure is None, **answer.fields}
    if answer.failure is not None:
        reply["error"] = answer.failure.as_error()
    return _json_line(reply)


def _json_line(fields: Mapping[str, Any]) -> str:
    # Most commands have loaded msgspec already; help and version need not.
    import msgspec

    return safe_json(msgspec.json.encode(fields).decode()) + "\n"


def safe_json(text: str) -> str:
    """Return the same JSON with control characters escaped."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_UNSAFE_IN_JSON)


def _write(text: str, exit_code: int) -> int:
    """Write to stdout; a closed pipe is not an error."""
    if sys.stdout is None:
        return exit_code
    try:
        left = memoryview(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
        while left:  # an unbuffered stdout may take a part of it
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _forget_stdout()
    except OSError as error:
        _forget_stdout()
        say(f"coord: cannot write the answer: {error.strerror} (the command itself is done)")
        return exit_code or exit_codes.TRY_AGAIN
    return exit_code


def _forget_stdout() -> None:
    """Point stdout at nothing, so that Python's own flush at the end cannot fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
