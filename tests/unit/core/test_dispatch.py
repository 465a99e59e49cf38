"""Commands name their rules as strings, so a test looks whether they exist and fit."""

import inspect
import pkgutil
import typing
from importlib import import_module

import pytest

import coord.core
from coord.core.commands import Command
from coord.core.dispatch import TARGETS
from coord.core.events import Event, every_event
from coord.core.sweep import DEADLINES

DEFINED = {
    value
    for module in pkgutil.walk_packages(coord.core.__path__, "coord.core.")
    for value in vars(import_module(module.name)).values()
    if isinstance(value, type)
}
COMMANDS = [
    kind for kind in DEFINED if issubclass(kind, Command) and "reply" in vars(kind) and kind is not Command
]
BASES = {
    *("Command", "SessionCommand", "TaskCommand", "GroupCommand"),
    *("LockCommand", "NamedLocksCommand", "ResourceCommand"),
}


def test_every_command_names_a_rule() -> None:
    """A command without a rule would be answered with a defect."""
    assert all("rule" in vars(kind) for kind in COMMANDS)
    assert {kind.__name__ for kind in DEFINED if issubclass(kind, Command)} - {
        kind.__name__ for kind in COMMANDS
    } == BASES


@pytest.mark.parametrize(("name", "position"), [("rule", 1), ("prefetch_keys", 0), ("prefetch_ranges", 0)])
def test_a_rule_takes_the_command_that_names_it(name: str, position: int) -> None:
    """What mypy cannot see through names: the function exists, and takes this class of command."""
    named = [(kind, getattr(kind, name)) for kind in COMMANDS if getattr(kind, name)]
    assert named
    for kind, target in named:
        function = TARGETS[target]
        taken = list(typing.get_type_hints(function).values())[position]
        kinds = typing.get_args(taken) or (taken,)
        assert any(issubclass(kind, each) for each in kinds), (
            f"{kind.__name__}: {inspect.signature(function)}"
        )


def test_every_deadline_has_its_rule() -> None:
    """A deadline that cannot be passed would stop all those behind it."""
    for target in DEADLINES.values():
        assert list(inspect.signature(TARGETS[target]).parameters) == ["tx", "key", "now"]


def test_every_event_is_found_by_its_name() -> None:
    """An event in a module that nobody lists would be unknown to `coord log`."""
    defined = {kind for kind in DEFINED if issubclass(kind, Event) and "." in str(kind.__struct_config__.tag)}
    assert defined == {kind for kind in every_event() if kind.__module__.startswith("coord.")}
