"""The texts of `--help`, made from the command specs."""

from collections.abc import Iterator, Sequence

from coord.transports.cli.commands.flags import GLOBAL_FLAGS
from coord.transports.cli.commands.registry import GROUPS, all_commands, commands_of
from coord.transports.cli.spec import CommandSpec, Flag


def help_of(command: CommandSpec | None, noun: str = "") -> str:
    """Return the help of a command, of a noun, or (without both) of `coord`."""
    if command is not None:
        return command_help(command)
    return noun_help(noun) if noun else overview()


def overview() -> str:
    """Return the help of `coord` itself."""
    return "\n".join(_overview()) + "\n"


def command_help(command: CommandSpec) -> str:
    """Return the help of one command."""
    return "\n".join(_command_help(command)) + "\n"


def noun_help(noun: str) -> str:
    """Return the help of a noun, which lists its verbs."""
    own = [each for each in all_commands() if each.name.startswith(f"{noun} ")]
    pairs = _pairs([(each.name, each.summary) for each in own])
    lines = [
        f"usage: coord {noun} VERB ...",
        "",
        *pairs,
        "",
        f"For more, name a verb: coord {own[0].name} --help",
    ]
    return "\n".join(lines) + "\n"


def flag_shape(flag: Flag) -> str:
    """Return a flag with its value, as in `--ttl DURATION`."""
    value = "|".join(flag.choices) or flag.value
    return f"{flag.spelled} {value}" if value else flag.spelled


def _overview() -> Iterator[str]:
    yield "usage: coord [flags] COMMAND ..."
    yield ""
    yield "Keep AI coding agents from overwriting each other's work."
    for group, title in GROUPS.items():
        yield ""
        yield title
        yield from _pairs([(each.name, each.summary) for each in commands_of(group)])
    yield ""
    yield "Global flags"
    yield from _pairs([(flag_shape(flag), flag.summary) for flag in GLOBAL_FLAGS])
    yield from _pairs([("--help, --version", "show this text or, after a command, its help")])
    yield ""
    yield "Replies are JSON on stdout (a table on a terminal), plus a line for people on stderr."
    yield "Durations: 90, 90s, 5m, 1h, 7d."
    yield "Exit codes: 0 done, 1 refused, 2 invalid, 3 timed out, 4 not found, 69 unavailable, 70 corrupt,"
    yield "75 try again, 78 unsupported."


def _command_help(command: CommandSpec) -> Iterator[str]:
    yield f"usage: {command.usage}"
    yield ""
    yield f"{command.summary[0].upper()}{command.summary[1:]}."
    if command.details:
        yield command.details
    if command.alias:
        yield f"Also called {command.alias}."
    if command.arguments:
        yield ""
        yield from _pairs([(word.spelled, word.summary) for word in command.arguments])
    if command.flags:
        yield ""
        yield "Flags (see coord --help for the global ones)"
        yield from _pairs([(flag_shape(flag), flag.summary) for flag in command.flags])
    yield ""
    yield "Examples"
    yield from (f"  {example}" for example in command.examples)


def _pairs(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = min(28, max(len(left) for left, _ in pairs))
    for left, right in pairs:
        yield f"  {left:<{width}}  {right}"
