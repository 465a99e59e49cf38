"""Run the rule that a command names."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from coord.core.commands import Command
from coord.core.ranges import Range
from coord.core.transaction import Transaction


class Targets(dict[str, Callable[..., Any]]):
    """Functions by `module:function`, each imported on first use."""

    def __missing__(self, target: str) -> Callable[..., Any]:
        module, _, name = target.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), name)
        self[target] = found
        return found


TARGETS = Targets()


def dispatch(tx: Transaction, command: Command, now: int) -> Any:
    """Answer a command by its rule; what it changes is in the transaction."""
    return TARGETS[command.rule](tx, command, now)


def keys_to_prefetch(command: Command) -> list[str]:
    """Return keys that are worth loading before the rule runs."""
    target = command.prefetch_keys
    found: list[str] = TARGETS[target](command) if target else []
    return found


def ranges_to_prefetch(command: Command) -> list[Range]:
    """Return ranges that are worth loading together with those keys."""
    target = command.prefetch_ranges
    found: list[Range] = TARGETS[target](command) if target else []
    return found
