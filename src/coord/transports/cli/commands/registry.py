"""Find commands. Each group of `coord --help` is a module beside this one, imported when it is needed."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module

from coord.transports.cli.spec import CommandSpec

GROUPS = {
    "sessions": "Sessions: who is working",
    "locks": "Locks: who may change what",
    "tasks": "Tasks: claim work and submit results",
    "plans": "Plans: many tasks at once",
    "agents": "Agents: who does what",
    "git": "Git: commits, worktrees, salvaged work",
    "messages": "Messages",
    "questions": "Questions: what needs a person",
    "records": "Records: the log and the store",
    "mirrors": "Mirrors: the store as files of other layouts",
    "maintenance": "Maintenance: limits and expired records",
    "tokens": "Tokens: what may come over the network",
    "hub": "Hub: one process for all clients",
    "setup": "Setup",
}
"""The title of each group in `coord --help`."""


def commands_of(group: str) -> tuple[CommandSpec, ...]:
    """Return the commands of a group."""
    found: tuple[CommandSpec, ...] = import_module(f"coord.transports.cli.commands.{group}").COMMANDS
    return found


@cache
def all_commands() -> tuple[CommandSpec, ...]:
    """Return every command, group by group."""
    return tuple(_commands())


def find(name: str) -> CommandSpec | None:
    """Return the command with this name or alias, such as `lock` or `task next`."""
    return next((each for each in _commands() if name in (each.name, each.alias)), None) if name else None


def is_noun(word: str) -> bool:
    """Return whether a word is the first of a name of two words, as `task` in `task next`."""
    # The search stops at the first match, so that `coord lock` imports two groups of eleven.
    for command in _commands():
        if word in (command.name, command.alias):
            return False
        if command.name.startswith(f"{word} "):
            return True
    return False


def verbs(noun: str) -> list[str]:
    """Return the second words of the names that begin with a noun."""
    return [each.name.partition(" ")[2] for each in all_commands() if each.name.startswith(f"{noun} ")]


def first_words() -> list[str]:
    """Return the first word of every command, each once."""
    return list(dict.fromkeys(command.name.partition(" ")[0] for command in all_commands()))


def _commands() -> Iterator[CommandSpec]:
    for group in GROUPS:
        yield from commands_of(group)
