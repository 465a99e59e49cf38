"""The types in which the commands of `coord` are written down: `CommandSpec`, `Flag`, `Argument`."""

from typing import Any, NamedTuple

IN_SECONDS = ("duration", "duration or zero")
"""The kinds of value that are seconds; the field of such a flag ends in `_s`."""


class Flag(NamedTuple):
    """A flag. `value` names its value in the usage ("": it takes none); `kind` says how to read the value."""

    name: str
    summary: str
    value: str = ""
    kind: str = "text"
    choices: tuple[str, ...] = ()
    default: Any = ""
    excludes: str = ""
    completes: str = ""
    dest: str = ""
    implied: str = ""
    """The value of the flag without one; another value follows `=`."""

    @property
    def spelled(self) -> str:
        """The flag as a user types it."""
        return f"--{self.name}" if len(self.name) > 1 else f"-{self.name}"

    @property
    def field(self) -> str:
        """The field of the handler's arguments that takes the value."""
        name = self.dest or self.name.replace("-", "_")
        return f"{name}_s" if self.kind in IN_SECONDS else name


class Argument(NamedTuple):
    """A positional argument; the last one may be `many`."""

    name: str
    summary: str
    many: bool = False
    optional: bool = False
    choices: tuple[str, ...] = ()
    completes: str = ""
    kind: str = "text"
    dest: str = ""

    @property
    def spelled(self) -> str:
        """The argument as the usage shows it."""
        shown = "|".join(self.choices) if self.choices else self.name.upper()
        shown += "..." if self.many else ""
        return f"[{shown}]" if self.optional else shown

    @property
    def field(self) -> str:
        """The field of the handler's arguments that takes the value."""
        return self.dest or self.name


class CommandSpec(NamedTuple):
    """A command. `handler` is the function that runs it, as `module:function`; it is imported on first use.

    `rest` names the words after `--`, for commands that run another program. A command with `connects=False`
    gets the global options instead of a client. A command that `reads` creates no store and no pin.
    """

    name: str
    summary: str
    handler: str
    examples: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()
    flags: tuple[Flag, ...] = ()
    alias: str = ""
    rest: str = ""
    connects: bool = True
    reads: bool = False
    details: str = ""

    @property
    def usage(self) -> str:
        """The form of a call."""
        parts = [
            "coord",
            self.name,
            *(["[flags]"] if self.flags else []),
            *(argument.spelled for argument in self.arguments),
        ]
        return " ".join([*parts, *(["--", f"{self.rest.upper()}..."] if self.rest else [])])
