"""What a command line is made of: the words in which the table is written."""

from typing import Any, NamedTuple


class Flag(NamedTuple):
    """One flag. `value` names what follows it ("": nothing does); `kind` says how that is read."""

    name: str
    summary: str
    value: str = ""
    kind: str = "text"
    choices: tuple[str, ...] = ()
    default: Any = ""
    excludes: str = ""
    completes: str = ""

    @property
    def spelled(self) -> str:
        """The flag as it is typed."""
        return f"--{self.name}" if len(self.name) > 1 else f"-{self.name}"

    @property
    def field(self) -> str:
        """The name under which its value is found."""
        return self.name.replace("-", "_")


class Word(NamedTuple):
    """One word that a command takes; the last one may be `many`."""

    name: str
    summary: str
    many: bool = False
    optional: bool = False
    choices: tuple[str, ...] = ()
    completes: str = ""

    @property
    def spelled(self) -> str:
        """The word as usage shows it."""
        shown = "|".join(self.choices) if self.choices else self.name.upper()
        shown += "..." if self.many else ""
        return f"[{shown}]" if self.optional else shown


class Command(NamedTuple):
    """One command. `runs` is the function to call, `<module beside this one>:<name>`.

    `rest` names the words after `--` where a command takes such; `connects` is false for a command that needs
    no session.
    """

    name: str
    group: str
    summary: str
    runs: str
    examples: tuple[str, ...]
    words: tuple[Word, ...] = ()
    flags: tuple[Flag, ...] = ()
    alias: str = ""
    rest: str = ""
    connects: bool = True
    details: str = ""

    @property
    def usage(self) -> str:
        """The shape of a call."""
        parts = [
            "coord",
            self.name,
            *(["[flags]"] if self.flags else []),
            *(word.spelled for word in self.words),
        ]
        return " ".join([*parts, *(["--", f"{self.rest.upper()}..."] if self.rest else [])])
