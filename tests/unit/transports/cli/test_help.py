"""Help and documents follow from the table, and the table from the code."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

import coord
from coord.transports.cli import help as texts
from coord.transports.cli.commands.registry import GROUPS, all_commands, find, first_words, is_noun
from coord.transports.cli.parser import parse
from coord.transports.cli.spec import CommandSpec
from tests.support.docs.cli_reference import pages
from tests.support.docs.pages import text_of

REQUIRED = [
    "register",
    "heartbeat",
    "peers",
    "lock",
    "unlock",
    "steal",
    "send",
    "recv",
    "update",
    "broadcast",
    "dereg",
    "deregister",
    "project-lock",
    "project-unlock",
    "status",
    "locks",
    "check",
    "guard",
    "renew",
    "preempt",
    "ack",
    "init",
    "completion",
]
NAMED = pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.name)


@pytest.mark.parametrize("name", REQUIRED)
def test_the_commands_have_the_names_they_were_given(name: str) -> None:
    """The operations of the third founding document keep their names.

    CLI-7, CLI-8, CLI-9, CLI-10, CLI-11, CLI-12, CLI-13, CLI-14, CLI-15, CLI-16, CLI-17, CLI-18,
    CLI-19, CLI-20, CLI-21.
    """
    assert find(name) is not None


@NAMED
def test_a_command_runs_a_function_that_exists(command: CommandSpec) -> None:
    """The table names a function for each command, in the module of its group."""
    module, _, function = command.handler.partition(":")
    assert callable(getattr(import_module(module), function))


@NAMED
def test_every_command_has_help_with_an_example_that_parses(command: CommandSpec) -> None:
    """Issue 3, part 4: `--help` with an example for every command; an example is valid."""
    text = texts.command_help(command)
    assert text.startswith(f"usage: coord {command.name}")
    assert all(flag.spelled in text for flag in command.flags)
    assert command.examples
    for example in command.examples:
        assert example in text
        call = example.removeprefix('eval "$(').removesuffix(')"').partition(" > ")[0]
        program, *argv = shlex.split(call)
        assert program == "coord"
        assert parse(argv).command == command


@NAMED
def test_help_texts_are_short(command: CommandSpec) -> None:
    """A summary is an imperative below 60 characters, so that it fits on a line; so is the text of a flag."""
    of_arguments = [item.summary for item in command.arguments]
    of_flags = [item.summary for item in command.flags]
    for text in (command.summary, *of_arguments, *of_flags):
        assert len(text) < 60
        assert not text.endswith(".")


def test_the_overview_lists_every_command_once_in_its_group() -> None:
    """CLI-23: `coord --help` shows the commands in groups, one line each."""
    lines = texts.overview().splitlines()
    for command in all_commands():
        name = command.name.split()
        assert [line for line in lines if line.split()[: len(name)] == name] == [
            line for line in lines if line.rstrip().endswith(command.summary)
        ]
    assert all(title in lines for title in GROUPS.values())
    assert max(map(len, lines)) <= 110


@pytest.mark.parametrize("name", pages())
def test_a_reference_page_is_as_the_table_makes_it(name: str) -> None:
    """The pages of the command say what the parser knows, no more and no less."""
    assert text_of(name) == pages()[name], "run: .venv/bin/python -m tests.support.docs.cli_reference"


def named_commands() -> set[str]:
    """Return the commands that messages and hints of the package name, by the words after `coord`."""
    package = Path(coord.__file__).parent
    texts = re.findall(
        r"(?:hint|message|next_step)=f?[\"'][^\n]*",
        "\n".join(file.read_text() for file in package.rglob("*.py")),
    )
    return set(re.findall(r"\bcoord ([a-z][a-z-]+(?: [a-z]+)?)", "\n".join(texts)))


def test_hints_name_commands_that_exist() -> None:
    """A next step that does not exist is worse than none."""
    found = named_commands()
    assert {"locks", "init"} <= {name.split()[0] for name in found}
    prose = {"made", "inside", "there", "may", "records", "on", "does"}
    wrong = [name for name in found if name.split()[0] not in {*first_words(), *prose}]
    wrong += [name for name in found if is_noun(name.split()[0]) and " " in name and find(name) is None]
    assert wrong == []
