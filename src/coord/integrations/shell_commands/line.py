"""A command line as hooks see it: its commands, what they write, and what stays unknown."""

import os
import re
from collections.abc import Mapping
from functools import cached_property
from itertools import islice, zip_longest

from coord.integrations.shell_commands.git_commands import global_options
from coord.integrations.shell_commands.grammar import load_error, parse
from coord.integrations.shell_commands.programs import coord_writes
from coord.integrations.shell_commands.state import Command, Disk, Effects, State, Write

_SEPARATORS = re.compile(r"[;&|\n(){}`]+")
FOLDER_OPTIONS = (
    "-C",
    "--work-tree",
    "--git-dir",
    "--directory",
    "--prefix",
    "--cwd",
    "--chdir",
    "--project",
)
"""Options of many programs that name the folder to work in."""
PRINTERS = frozenset(
    (
        *(
            "cat",
            "tac",
            "head",
            "tail",
            "less",
            "more",
            "nl",
            "bat",
            "batcat",
            "sed",
            "awk",
            "cut",
            "od",
            "xxd",
        ),
        *("grep", "egrep", "fgrep", "rg", "zgrep", "zcat", "jq", "yq", "diff", "cmp", "strings", "hexdump"),
    )
)
"""Programs that print what is in the files that they are given."""
READS_MAX = 64
"""How many of their words are looked at."""
NO_ENVIRON: Mapping[str, str] = {}


class CommandLine:
    """A command line in a folder; it is read when it is first asked for something."""

    def __init__(
        self, text: str, cwd: str = "/", environ: Mapping[str, str] = NO_ENVIRON, *, ask_git: bool = True
    ) -> None:
        """`ask_git`: ask git which files its commands would change."""
        self.text = text
        self.cwd = cwd
        self._environ = environ
        self._ask_git = ask_git

    @cached_property
    def effects(self) -> Effects:
        """Everything that the line does."""
        from coord.integrations.shell_commands.walk import Walker

        effects = Effects()
        if not self.text.strip():
            return effects
        walker = Walker(Disk(self._environ, ask_git=self._ask_git), effects)
        walker.run(self.text, State(self.cwd, self._environ))
        return effects

    @property
    def writes(self) -> list[Write]:
        """The files that the line writes, as far as it shows them."""
        return list(self.effects.writes)

    @property
    def reads(self) -> list[str]:
        """The words of commands that print files, as paths; whether a word names a file is not known here."""
        written = {write.path for write in self.writes}
        found = (
            os.path.join(folder or "/", word)
            for command in self.commands
            if command.name in PRINTERS
            for word in command.known[1:]
            for folder in command.folders
            if not word.startswith("-") and (folder is not None or word.startswith("/"))
        )
        return [path for path in dict.fromkeys(islice(found, READS_MAX)) if path not in written]

    @property
    def commands(self) -> list[Command]:
        """The simple commands, also those inside of functions, `sh -c '…'` and `$(…)`."""
        return self.effects.commands

    @property
    def folders(self) -> list[str]:
        """The folders in which commands run, the first one first."""
        found = [self.cwd]
        for command in self.commands:
            for folder in command.folders:
                if folder is not None:
                    found += [folder, *(os.path.join(folder, each) for each in _named_folders(command))]
        return list(dict.fromkeys(found))

    @property
    def outlives_call(self) -> bool:
        """Whether a command may still run after its line has ended: `git push &`, `setsid make`."""
        return self.effects.background

    @property
    def runs_unknown(self) -> bool:
        """Whether a program runs whose effects no table names, or the line cannot be read."""
        return self.effects.strange

    def words(self) -> list[list[str]]:
        """Return the words of each command.

        If the line cannot be read, its plain words stand for them: that asks for a lock too many.
        """
        found = [command.known for command in self.commands if not command.guarded]
        script = parse(self.text)
        if script is None or not script.whole:
            found += [part.split() for part in _SEPARATORS.split(self.text) if part.strip()]
        return [_without_options([os.path.basename(words[0]), *words[1:]]) for words in found if words]

    def only_reads(self, *, store: bool = True) -> bool:
        """Whether every command is known to only read files.

        Without a `store` commands of coord do not count as reading: they would create a new store.
        """
        effects = self.effects
        if not effects.commands or effects.unknown or effects.acts or effects.writes:
            return False
        asks = [command.known[1:] for command in effects.commands if command.name == "coord"]
        return store or all(words == ["doctor"] for words in asks)

    def only_coord(self) -> bool:
        """Whether the line only asks coord, and lets it neither write files nor run other commands."""
        effects = self.effects
        if not effects.commands or effects.unknown or effects.writes:
            return False
        return all(
            command.name == "coord"
            and not command.guarded
            and "doctor" not in command.known
            and not coord_writes(command.known[1:])
            for command in effects.commands
        )


def _named_folders(command: Command) -> list[str]:
    """Return the folders that options name: `git -C there`, `make -C there`, `--work-tree=there`."""
    found: list[str] = []
    for option, following in zip_longest(command.words[1:], command.words[2:]):
        if option in FOLDER_OPTIONS and following:
            found.append(following)
        elif option is not None and option.startswith(tuple(f"{name}=" for name in FOLDER_OPTIONS)):
            found.append(option.partition("=")[2])
        elif option is not None and option.startswith("-C") and len(option) > 2:
            found.append(option[2:])
    found += [value for name in ("GIT_WORK_TREE", "GIT_DIR") if (value := command.environ.get(name))]
    return found


def _without_options(words: list[str]) -> list[str]:
    """Return `git -C there push` as `git push`."""
    if words[0] != "git":
        return words
    _, rest = global_options(tuple(words))
    return ["git", *(word for word in rest if word is not None)]


def parser_error() -> str:
    """Return why command lines cannot be read on this machine; "" if they can."""
    return load_error()
