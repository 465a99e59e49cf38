"""Print answers: a table on a terminal, JSON in a pipe, or as asked; and one line for people on stderr."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, TextIO

from coord.core.messages.quoting import visible
from coord.transports import exit_codes

FORMS = ("table", "json", "wide")
"""The forms of an answer; `wide` is a table that leaves nothing out and cuts nothing."""
WIDTH_WITHOUT_TERMINAL = 100
WIDTH_OF_WIDE = 1_000_000
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
    drawn: Callable[[int], str] | None = None
    """Returns the text to show instead of a table; its parameter is the width of the terminal."""

    @property
    def exit_code(self) -> int:
        """The exit code of the process."""
        return self.failure.exit_code if self.failure else exit_codes.OK


def failed(failure: exit_codes.Failure) -> Answer:
    """Return the answer for a failure."""
    hint = f" ({failure.hint})" if failure.hint else ""
    return Answer(line=f"coord: {failure.message}{hint}", failure=failure)


_chosen = ""


def choose_form(chosen: str) -> None:
    """Set the form of the answers of this process; empty means the default."""
    global _chosen
    _chosen = chosen


def chosen_form() -> str:
    """Return the form that was asked for; empty if none was."""
    return _chosen


def form() -> str:
    """Return the form of the answer: the chosen one, else a table on a terminal and JSON in a pipe."""
    return _chosen or ("table" if is_terminal(sys.stdout) else "json")


def show(answer: Answer) -> int:
    """Print an answer, and return the exit code."""
    say(answer.line)
    if form() == "json":
        return _write(_as_json(answer), answer.exit_code)
    return _write(_for_people(answer, whole=form() == "wide"), answer.exit_code)


def _for_people(answer: Answer, *, whole: bool) -> str:
    room = WIDTH_OF_WIDE if whole else width(sys.stdout)
    if answer.drawn is not None:
        return answer.drawn(room)
    rows, columns = answer.rows, answer.columns
    if not rows and answer.failure is None and (whole or not is_terminal(sys.stdout)):
        rows, columns = (
            [{"field": name, "value": each} for name, each in answer.fields.items()],
            ("field", "value"),
        )
    return table_of(rows, columns) if rows else ""


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as a table of the chosen form."""
    from coord.transports.cli.table import table

    whole = form() == "wide"
    room = WIDTH_OF_WIDE if whole else width(sys.stdout)
    return table(rows, columns, room, colours=has_colours(), whole=whole)


def show_line(fields: Mapping[str, Any]) -> None:
    """Print a line of JSON before the answer."""
    _write(_json_line(fields), exit_codes.OK)


def show_part(text: str) -> int | None:
    """Print a part of a long answer; return the exit code if nobody reads stdout any more, else None."""
    exit_code = _write(text, exit_codes.OK)
    return exit_code if _unread else None


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
    kind = type(reply)
    if kind in _PLAIN:
        return reply
    names = getattr(kind, "__struct_fields__", None)
    if names is not None:
        shown = {}
        for name, shown_name in _shown_names(names):
            value = getattr(reply, name)
            if name != shown_name:
                value = timestamp(value)
            elif type(value) not in _PLAIN:
                value = fields_of(value)
            shown[shown_name] = value
        return shown
    if isinstance(reply, list | tuple):
        return [fields_of(each) for each in reply]
    if isinstance(reply, dict):
        return {key: fields_of(value) for key, value in reply.items()}
    return reply


_PLAIN = frozenset((str, int, float, bool, type(None)))


@cache
def _shown_names(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the fields of a struct with their names in JSON."""
    return [(name, f"{name.removesuffix('_ms')}_at" if name.endswith("_ms") else name) for name in names]


def timestamp(ms: int | None) -> str | None:
    """Return a time as RFC 3339 in UTC; None for 0.

    >>> timestamp(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    if not ms:
        return None
    return f"{_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(maxsize=64)  # the rows of a listing share most of their times
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def width(stream: TextIO) -> int:
    """Return the width of a stream in cells; programs such as `watch` give it in COLUMNS."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH_WITHOUT_TERMINAL
    except OSError:
        given = os.environ.get("COLUMNS", "")
        return int(given) if given.isdecimal() and int(given) else WIDTH_WITHOUT_TERMINAL


def _as_json(answer: Answer) -> str:
    reply: dict[str, Any] = {"ok": answer.failure is None, **answer.fields}
    if answer.failure is not None:
        reply["error"] = answer.failure.as_error()
    return _json_line(reply)


def _json_line(fields: Mapping[str, Any]) -> str:
    return json_of(fields) + "\n"


def json_of(data: Any) -> str:
    """Return plain data as JSON with control characters escaped."""
    # Most commands have loaded msgspec already; help and version need not.
    import msgspec

    return safe_json(msgspec.json.encode(data).decode())


def safe_json(text: str) -> str:
    """Return the same JSON with control characters escaped, and all that stdout cannot encode."""
    if text.isascii() and "\x7f" not in text:
        return text
    text = text.translate(_UNSAFE_IN_JSON)
    if sys.stdout is None or (sys.stdout.encoding or "utf-8").lower() in {"utf-8", "utf8"}:
        return text
    return "".join(each if each.isascii() else _json_escape(each) for each in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


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


_unread = False
"""Whether stdout was closed by its reader or could not be written."""


def _forget_stdout() -> None:
    """Point stdout at nothing, so that Python's own flush at the end cannot fail again."""
    global _unread
    _unread = True
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
