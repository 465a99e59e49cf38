"""Parse a command line by the command specs; anything unknown is an error."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.transports import arguments
from coord.transports.cli.commands.flags import GLOBAL_FLAGS
from coord.transports.cli.commands.registry import all_commands, find, first_words, is_noun, verbs
from coord.transports.cli.spec import IN_SECONDS, Argument, CommandSpec, Flag

HELP = ("-h", "--help")
VERSION = ("-V", "--version")


class Request(NamedTuple):
    """A parsed command line: the command, the values of its fields, and the global options.

    `wants` is "help" or "version" if the user asked for that; `noun` is the first word of a two-word name.
    """

    command: CommandSpec | None
    values: dict[str, Any]
    options: dict[str, Any]
    wants: str = ""
    noun: str = ""


def parse(argv: Sequence[str]) -> Request:
    """Return the parsed command line, or raise `Invalid`; help and version win over errors."""
    reading = _Reading(list(argv))
    wants = reading.read()
    if wants:
        return Request(reading.command, {}, {}, wants, reading.noun)
    if reading.command is None and reading.noun:
        raise Invalid(f"{reading.noun} needs a verb", hint=f"one of {', '.join(verbs(reading.noun))}")
    if reading.command is None:
        raise Invalid("no command given", hint="see coord --help")
    command = reading.command
    values = _values(command.flags, reading.found) | _assign(command, reading.words)
    if command.rest:
        values[command.rest] = _rest(command, reading.rest)
    return Request(command, values, _values(GLOBAL_FLAGS, reading.options))


class _Reading:
    """One pass over a command line."""

    def __init__(self, argv: list[str]) -> None:
        self.command: CommandSpec | None = None
        self.noun = ""
        self.found: dict[str, str] = {}
        self.options: dict[str, str] = {}
        self.words: list[str] = []
        self.rest: list[str] | None = None
        self._left = argv[::-1]

    def read(self) -> str:
        while self._left:
            typed = self._left.pop()
            if typed == "--":
                self._take_rest()
            elif typed in HELP:
                self._look_ahead()
                return "help"
            elif typed in VERSION and self.command is None:
                return "version"
            elif typed.startswith("-") and typed != "-":
                self._read_flag(typed)
            elif self.command is None and not self.noun and is_noun(typed):
                self.noun = typed
            elif self.command is None:
                self.command = _find_command(self.noun, _readable(typed))
            else:
                self.words.append(_readable(typed))
        return ""

    def _take_rest(self) -> None:
        rest, self._left = self._left[::-1], []
        if self.command is not None and self.command.rest:
            self.rest = rest
        else:
            self.words += map(_readable, rest)

    def _look_ahead(self) -> None:
        """Find the command in `coord --help lock`, `coord --help task next` and `coord task --help next`."""
        for typed in self._left[::-1] if self.command is None else ():
            if not self.noun and is_noun(typed):
                self.noun = typed
            elif self.command is None:
                self.command = find(f"{self.noun} {typed}".strip())

    def _read_flag(self, typed: str) -> None:
        name, equals, value = _readable(typed).partition("=")
        flag = self._flag(name)
        if not flag.value and equals:
            raise Invalid(f"{name} takes no value", hint="omit the value")
        if flag.implied and not equals:
            value = self._left.pop() if flag.kind in IN_SECONDS and self._next_is_duration() else flag.implied
        elif flag.value and not equals:
            if not self._left or self._left[-1].startswith("--"):
                raise Invalid(f"{name} needs a value", hint=f"{name} {flag.value}, or {name}={flag.value}")
            value = _readable(self._left.pop())
        own = self.command is not None and flag in self.command.flags
        found = self.found if own else self.options
        if flag.name in found:
            raise Invalid(f"{name} is given twice", hint="pass it once")
        found[flag.name] = value

    def _next_is_duration(self) -> bool:
        return bool(self._left) and arguments.is_duration(self._left[-1])

    def _flag(self, name: str) -> Flag:
        own = self.command.flags if self.command else ()
        known = {flag.spelled: flag for flag in (*GLOBAL_FLAGS, *own)}  # a command may redefine a flag
        if name in known:
            return known[name]
        where = f"coord {self.command.name}" if self.command else "coord"
        if not self.command and any(flag.spelled == name for each in all_commands() for flag in each.flags):
            raise Invalid(f"{name} belongs to a command", hint="write it after the command")
        raise Invalid(
            f"unknown flag {short_repr(name)}", hint=meant(name, [*known, "--help"], f"see {where} --help")
        )


def _find_command(noun: str, word: str) -> CommandSpec:
    name = f"{noun} {word}" if noun else word
    command = find(name) if " " not in word else None
    if command is not None:
        return command
    if noun:
        hint = meant(word, verbs(noun), f"see coord {noun} --help")
        raise Invalid(f"{noun} has no verb {short_repr(word)}", hint=hint)
    raise Invalid(f"unknown command {short_repr(word)}", hint=meant(word, first_words(), "see coord --help"))


def meant(word: str, known: list[str], otherwise: str) -> str:
    """Return a hint with the closest known word; difflib is imported only for errors."""
    import difflib

    bare = {each.lstrip("-"): each for each in known}  # dashes alone make no flag similar to another
    close = difflib.get_close_matches(word.lstrip("-"), bare, n=1)
    return f"did you mean {bare[close[0]]}?" if close else otherwise


def _readable(typed: str) -> str:
    """Refuse bytes that are not UTF-8, because coord could not store or show them."""
    if not typed.isascii() and any("\ud800" <= character <= "\udfff" for character in typed):
        raise Invalid(f"{short_repr(typed)} is not valid UTF-8", hint="rename it, or quote it for the shell")
    return typed


def _assign(command: CommandSpec, given: list[str]) -> dict[str, Any]:
    """Return the values of the positional arguments."""
    values: dict[str, Any] = {}
    left = list(given)
    for word in command.arguments:
        taken = left if word.many else left[:1]
        left = left[len(taken) :]
        if not taken and not word.optional:
            raise Invalid(f"{word.spelled} is missing", hint=f"usage: {command.usage}")
        read = [_value(word.name, value, word) for value in taken]
        absent = None if word.kind == "number" else ""
        values[word.field] = read if word.many else next(iter(read), absent)
    if left:
        raise Invalid(f"unexpected argument {short_repr(left[0])}", hint=f"usage: {command.usage}")
    return values


def _rest(command: CommandSpec, rest: list[str] | None) -> list[str]:
    if not rest:
        raise Invalid(f"{command.rest.upper()} is missing", hint=f"usage: {command.usage}")
    return rest


def _values(flags: Sequence[Flag], found: dict[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for flag in flags:
        if flag.name not in found:
            values[flag.field] = flag.default if flag.value else False
            continue
        if flag.excludes and flag.excludes in found:
            other = next(each.spelled for each in flags if each.name == flag.excludes)
            raise Invalid(f"{flag.spelled} and {other} cannot be combined", hint="pass one of them")
        values[flag.field] = _value(flag.spelled, found[flag.name], flag) if flag.value else True
    return values


def _value(name: str, text: str, item: Flag | Argument) -> Any:
    """Return a typed value, converted according to its kind."""
    if item.choices and text not in item.choices:
        raise Invalid(f"{name}: unknown value {short_repr(text)}", hint=f"one of {', '.join(item.choices)}")
    try:
        return _READERS[item.kind](text)
    except Invalid as error:
        raise Invalid(f"{name}: {error.message}", hint=error.hint) from error


def _or_input(text: str) -> str:
    """Return the text, or standard input for `-`."""
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise Invalid("standard input is not valid UTF-8", hint="send text") from error


def _name(text: str) -> str:
    """Refuse an empty value: an unset variable must not change the caller's identity."""
    if not text:
        raise Invalid("the value is empty", hint="is a shell variable unset? otherwise omit the flag")
    return text


_READERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "name": _name,
    "text or input": _or_input,
    "duration": arguments.duration,
    "duration or zero": lambda text: arguments.duration(text, zero=True),
    "number": arguments.number,
    "names": lambda text: [_name(each.strip()) for each in text.split(",")],
    "document": lambda text: arguments.document(_or_input(text)),
}
