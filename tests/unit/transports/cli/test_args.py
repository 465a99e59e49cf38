"""Every handler takes a typed value whose fields are the flags and arguments of its command."""

import types
from collections.abc import Sequence
from importlib import import_module
from typing import Any, get_type_hints

import pytest

from coord.transports.cli.args import Options, args_type
from coord.transports.cli.commands.flags import GLOBAL_FLAGS
from coord.transports.cli.commands.registry import all_commands
from coord.transports.cli.parser import parse
from coord.transports.cli.spec import Argument, CommandSpec, Flag

TYPES: dict[str, Any] = {
    **dict.fromkeys(("text", "name", "text or input"), str),
    **dict.fromkeys(("duration", "duration or zero"), float),
    "number": int,
    "names": Sequence[str],
    "document": Any,
}
COMMANDS = pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.name)


def type_of(item: Flag | Argument) -> Any:
    """Return the type that the values of a flag or argument have."""
    kind = TYPES[item.kind]
    if isinstance(item, Argument):
        kind = kind | None if item.optional and kind is int else kind
        return types.GenericAlias(list, (kind,)) if item.many else kind
    if not item.value:
        return bool
    return kind | None if item.default is None and kind is not Any else kind


def items_of(command: CommandSpec) -> list[Flag | Argument]:
    return [*command.arguments, *command.flags]


def handler_of(command: CommandSpec) -> Any:
    module, _, function = command.handler.partition(":")
    return getattr(import_module(module), function)


@COMMANDS
def test_the_arguments_of_a_handler_are_those_of_its_command(command: CommandSpec) -> None:
    """The spec and the type agree in names and types, so mypy checks what a handler does with them."""
    expected = {item.field: type_of(item) for item in items_of(command)}
    if command.rest:
        expected[command.rest] = list[str]
    assert get_type_hints(args_type(handler_of(command))) == expected


@COMMANDS
def test_a_handler_takes_a_client_or_the_options(command: CommandSpec) -> None:
    """A command that connects gets a client, any other the global options; both get their arguments."""
    first, second, *_ = get_type_hints(handler_of(command)).values()
    assert first.__name__ == ("Client" if command.connects else "Options")
    assert second is args_type(handler_of(command))


def test_the_options_are_the_global_flags() -> None:
    """One flag, one field, of the same type."""
    assert get_type_hints(Options) == {flag.field: type_of(flag) for flag in GLOBAL_FLAGS}


def test_a_duration_is_a_field_in_seconds() -> None:
    """`--ttl 5m` is `ttl_s`, as in the SDK."""
    request = parse(["lock", "x", "--ttl", "5m"])
    assert request.command is not None
    assert args_type(handler_of(request.command))(**request.values).ttl_s == 300.0  # type: ignore[attr-defined]
