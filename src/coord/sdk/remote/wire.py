"""Commands, replies and errors as bytes between a client and a hub (`POST /v1/call` and its siblings).

Everything is msgpack. A command is a struct tagged with its class; a reply has the type that its command
names; an error travels with its class, so that `except Denied` works on both sides.
"""

from collections.abc import Iterable, Iterator
from functools import cache, reduce
from importlib import import_module
from operator import or_
from typing import Any

import msgspec

from coord.core import errors
from coord.core.commands import Command
from coord.core.errors import CoordError, Invalid
from coord.stores.contract import Entry, Limits

VERSION = "0.1.0"
"""The version of this coord; `coord.__version__` is the same, but imports may not point upwards."""
PROTOCOL = 1
"""A client and a hub with different numbers do not talk; the client uses the store itself."""
CONTENT_TYPE = "application/msgpack"
HELLO, CALL, WAIT, TAIL, TRIM = "/v1/hello", "/v1/call", "/v1/wait", "/v1/tail", "/v1/trim"
COMMAND_MODULES = (
    *("coord.core.git_log", "coord.core.limits", "coord.core.followers", "coord.core.settings"),
    *("coord.core.sweep", "coord.core.brief.commands", "coord.core.lifecycle.commands"),
    *("coord.core.locks.commands", "coord.core.messages.commands", "coord.core.plans.commands"),
    *("coord.core.routing.commands", "coord.core.sessions.commands", "coord.core.tasks.commands"),
    *("coord.core.questions.commands", "coord.core.tokens.commands", "coord.core.usage.commands"),
    *("coord.core.reactions.commands", "coord.core.why.commands"),
)
"""The modules that define commands; a test compares them with what the core has."""


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """The log that a request is about: that of a tenant in the store of a repository.

    `root` is the worktree of a client on the same machine; empty means the store of its user. Over TCP the
    token and the header `Coord-Repository` name the store, and an empty tenant is that of the token.
    """

    root: str = ""
    tenant: str = "local"
    store: str = ""
    """The id of the store that the client began with: another one must not get its commands."""
    version: str = ""
    """The version of a client that has begun; the hub may have been replaced since."""


class Hello(msgspec.Struct, frozen=True):
    """A client begins: its protocol and version, and the store that it wants."""

    target: Target
    protocol: int = PROTOCOL
    version: str = ""


class Welcome(msgspec.Struct, frozen=True):
    """The hub's answer: which store it has opened, and the head of which tenant's log it gives."""

    protocol: int
    version: str
    tenant: str
    store_id: str
    epoch: int
    repository_id: str
    limits: Limits
    head: "LogHead"


class LogHead(msgspec.Struct, frozen=True, array_like=True):
    """The newest entry that the hub has seen, and the time of the store."""

    offset: int
    at: int
    now: int


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """Commands that run together; each has an id, or none."""

    target: Target
    commands: list[msgspec.Raw]
    ids: list[str] = []
    timeout_s: float = 10.0
    hops: int = 0
    """How many reactions one after another led to these commands."""


class ErrorData(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error: its class, its texts, and the other fields of that class."""

    kind: str
    code: str
    message: str
    hint: str = ""
    fields: dict[str, Any] = {}


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The reply to a command, or its error."""

    reply: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: ErrorData | None = None


class Answers(msgspec.Struct, frozen=True):
    """One answer for each command, in order."""

    head: LogHead
    answers: list[Answer]


class Wait(msgspec.Struct, frozen=True):
    """Ask to hear when the log grows beyond an offset."""

    target: Target
    after: int
    timeout_s: float


class Tail(msgspec.Struct, frozen=True):
    """Ask for the entries after an offset."""

    target: Target
    after: int
    limit: int


class Entries(msgspec.Struct, frozen=True):
    """Entries of the log."""

    head: LogHead
    entries: list[Entry]


class Trim(msgspec.Struct, frozen=True):
    """Ask the hub to trim a log as its settings say."""

    target: Target


encode = msgspec.msgpack.Encoder().encode


def raw(value: Any) -> msgspec.Raw:
    """Return a value that is encoded already."""
    return msgspec.Raw(encode(value))


def decode_reply(command: Command, answer: Answer) -> Any:
    """Return the reply to a command, or raise its error."""
    if answer.error is not None:
        raise error_of(answer.error)
    if command.reply is None:
        return None
    return msgspec.msgpack.decode(answer.reply, type=command.reply)


@cache
def command_decoder() -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of every command; it imports all definitions."""
    return msgspec.msgpack.Decoder(reduce(or_, command_types()))


@cache
def command_types() -> tuple[type[Command], ...]:
    """Return the commands that can be asked for."""
    for name in COMMAND_MODULES:
        import_module(name)
    return tuple(kind for kind in _subclasses(Command) if hasattr(kind, "rule"))


def decode_commands(raws: Iterable[msgspec.Raw]) -> list[Command]:
    """Return the commands of a call."""
    decoder = command_decoder()
    try:
        return [decoder.decode(each) for each in raws]
    except (ValueError, RecursionError) as error:  # also text that is not UTF-8
        raise Invalid(f"the hub does not know this command: {error}", hint="use the same version") from error


def error_data(error: CoordError) -> ErrorData:
    """Return an error as data."""
    known = type(error) if type(error).__name__ in _error_types() else _nearest(type(error))
    fields = {name: value for name, value in vars(error).items() if name not in ("message", "hint")}
    return ErrorData(known.__name__, error.code, error.message, error.hint, fields)


def error_of(data: ErrorData) -> CoordError:
    """Return the error that some data describes."""
    kind = _error_types().get(data.kind, CoordError)
    error = kind.__new__(kind)
    CoordError.__init__(error, data.message, hint=data.hint)
    vars(error).update(data.fields)
    return error


@cache
def _error_types() -> dict[str, type[CoordError]]:
    named = {kind.__name__: kind for kind in _subclasses(CoordError) if kind.__module__ == errors.__name__}
    return {**named, CoordError.__name__: CoordError}


def _nearest(kind: type[CoordError]) -> type[CoordError]:
    return next(each for each in kind.__mro__ if each.__name__ in _error_types())


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
