"""The table of rules: it names functions, so a test looks whether they exist and fit."""

import inspect
import pkgutil
import typing
from importlib import import_module

import pytest

import coord.core
from coord.core.commands import Command
from coord.core.dispatch import READS, RULES, imported
from coord.core.sweep import DEADLINES

COMMANDS = {
    name: kind
    for module in pkgutil.walk_packages(coord.core.__path__, "coord.core.")
    for name, kind in vars(import_module(module.name)).items()
    if isinstance(kind, type) and issubclass(kind, Command) and kind is not Command and "reply" in vars(kind)
}


def test_every_command_has_a_rule() -> None:
    """A command whose line was forgotten would be answered with a defect."""
    assert RULES.names.keys() == COMMANDS.keys()
    assert READS.names.keys() < COMMANDS.keys()


@pytest.mark.parametrize(("table", "place"), [(RULES, 1), (READS, 0)], ids=["rules", "reads"])
def test_a_rule_takes_the_command_that_it_answers(table, place: int) -> None:
    """What mypy cannot see through names: the function exists, and takes this class of command."""
    for name in table.names:
        function = table[COMMANDS[name]]
        taken = list(typing.get_type_hints(function).values())[place]
        kinds = typing.get_args(taken) or (taken,)
        assert any(issubclass(COMMANDS[name], kind) for kind in kinds), (
            f"{name}: {inspect.signature(function)}"
        )


def test_every_deadline_has_its_rule() -> None:
    """A deadline that cannot be passed would stop all those behind it."""
    for name in DEADLINES.values():
        assert list(inspect.signature(imported(name)).parameters) == ["tx", "key", "now"]
