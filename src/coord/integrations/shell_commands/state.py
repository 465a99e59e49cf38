"""What the shell knows while it runs a line, what the line does, and the disk that it runs on."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from coord.integrations.shell_commands.grammar import Script

FOLDERS_MAX = 16
WRITES_MAX = 20_000
READ_BYTES_MAX = 4 * 1024 * 1024
GIT_SHARE = 1 / 7
"""The part of a hook's deadline that all questions of a line to git may take."""
KNOWN_VARIABLES = (
    *("HOME", "USER", "LOGNAME", "TMPDIR", "CLAUDE_PROJECT_DIR"),
    *("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
)
"""Variables that a shell of an agent inherits unchanged."""
Words = tuple[str | None, ...]
"""The words of a command; None stands for any number of unknown words."""


class Write(NamedTuple):
    """A path that a line writes, creates or removes.

    `tree`: also everything below it. `committed`: git puts committed content there, which needs no lock but
    destroys edits in this worktree.
    """

    path: str
    tree: bool = False
    committed: bool = False


class Command(NamedTuple):
    """A simple command: its words without wrappers, the folders it may run in, and changed variables."""

    words: Words
    folders: tuple[str | None, ...]
    environ: Mapping[str, str | None] = {}
    """Variables that the command gets besides those of the shell; None: unset or unknown."""
    guarded: bool = False
    """Whether `coord guard` runs it."""

    @property
    def name(self) -> str:
        """The program without its folder; "" if it is unknown."""
        return os.path.basename(self.words[0] or "") if self.words else ""

    @property
    def known(self) -> list[str]:
        """The words that are known, with the bare name of the program."""
        return [self.name, *(word for word in self.words[1:] if word is not None)]


class Disk:
    """The files around a line; only questions, and bounded."""

    def __init__(self, environ: Mapping[str, str], *, ask_git: bool = True) -> None:
        self.environ = environ
        self._git_s = 0.0
        if ask_git:
            from coord.integrations.deadline import deadline_s

            self._git_s = deadline_s() * GIT_SHARE

    def is_folder(self, path: str) -> bool:
        return "\0" not in path and os.path.isdir(path)

    def list_folder(self, path: str) -> Iterator[tuple[str, bool]]:
        """Yield the names in a folder, and whether each is a folder itself."""
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    yield entry.name, entry.is_dir()
        except (OSError, ValueError):
            return

    def read(self, path: str) -> str | None:
        """Return the text of a regular file; None if it cannot be read or is large."""
        try:
            if not os.path.isfile(path) or os.path.getsize(path) > READ_BYTES_MAX:
                return None
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                return file.read()
        except (OSError, ValueError):
            return None

    def git(self, folder: str, *words: str, stdin: bytes = b"") -> list[str] | None:
        """Return the names that git prints, separated by NUL; None if it fails or takes too long."""
        if self._git_s <= 0 or not self.is_folder(folder):
            return None
        import time

        from coord.core.errors import CoordError
        from coord.integrations.git.run import Git

        began = time.monotonic()
        try:
            done = Git(folder, environ=self.environ).run(*words, stdin=stdin, timeout_s=self._git_s)
        except (CoordError, OSError, ValueError):
            return None
        finally:
            self._git_s -= time.monotonic() - began
        return done.names if done.code == 0 else None


class Effects:
    """What a line does, as far as its text shows."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.writes: dict[Write, None] = {}
        self.unknown = False
        """Whether something may write files that `writes` does not name."""
        self.strange = False
        """Whether a program runs that is in no table, or a part of the line cannot be read."""
        self.acts = False
        """Whether a command does more than to read, even if it writes no file."""
        self.background = False
        """Whether a process may outlive the line."""
        self.links: dict[str, set[str]] = {}
        """Links that the line makes, and what each may lead to."""
        self.made: set[str] = set()
        """Folders that the line makes."""

    def write(
        self, folders: Iterable[str | None], path: str | None, *, tree: bool = False, committed: bool = False
    ) -> None:
        """Record a write to a path, below each folder that the command may run in."""
        if path is None or len(self.writes) >= WRITES_MAX:
            self.unknown = self.strange = True
            return
        if not path:
            return
        for folder in folders:
            if folder is None and not path.startswith("/"):
                self.unknown = True
            else:
                self._add(Write(os.path.join(folder or "/", path), tree, committed))

    def _add(self, write: Write) -> None:
        """Add a write, and what it reaches through links of this line."""
        path = os.path.normpath(write.path)
        parts = path.split("/")
        inside = {"/".join(parts[:end]) for end in range(2, len(parts))}
        self.unknown |= any(other.path in inside for other in self.writes)
        self.writes[write] = None
        for link, targets in list(self.links.items()):
            if path == link or link in inside:
                self.unknown = True
                for target in targets:
                    reached = write._replace(path=f"{target}{path[len(link) :]}")
                    if reached not in self.writes:
                        self.writes[reached] = None

    def link(self, path: str, target: str) -> None:
        """Record a link that the line makes, and what it may lead to."""
        self.links.setdefault(os.path.normpath(path), set()).add(os.path.normpath(target))


class State:
    """The folders, variables and functions of a shell at one point of a line."""

    def __init__(self, cwd: str, environ: Mapping[str, str]) -> None:
        self.folders: tuple[str | None, ...] = (cwd,)
        self.before: tuple[str | None, ...] = (None,)
        """The folders of `cd -`."""
        self.failed: tuple[str | None, ...] = ()
        """The folders if the last command was a `cd` that may have failed."""
        self.variables: dict[str, str | None] = {
            name: environ[name] for name in KNOWN_VARIABLES if name in environ
        }
        self.arguments: tuple[str, ...] | None = None
        self.functions: dict[str, tuple[tuple[Script, Any], ...]] = {}
        """The bodies that each function may have."""
        self.exported: dict[str, str | None] = {}
        """Variables that the line exports or unsets (None)."""

    def copy(self) -> "State":
        """Return the state of a subshell."""
        other = State.__new__(State)
        other.folders, other.before, other.failed = self.folders, self.before, ()
        other.variables, other.functions = dict(self.variables), dict(self.functions)
        other.arguments, other.exported = self.arguments, dict(self.exported)
        return other

    def merge(self, other: "State") -> None:
        """Allow for everything that is so in another state."""
        self.folders = union(self.folders, other.folders)
        self.before = union(self.before, other.before)
        for name in {*self.variables, *other.variables}:
            if self.variables.get(name) != other.variables.get(name):
                self.variables[name] = None
        if self.arguments != other.arguments:
            self.arguments = None
        for name, bodies in other.functions.items():
            self.functions[name] = tuple(dict.fromkeys((*self.functions.get(name, ()), *bodies)))
        self.exported |= other.exported

    def forget(self) -> None:
        """Know nothing any more: a script that cannot be read has run in this shell."""
        self.folders = self.before = (None,)
        self.variables = dict.fromkeys(self.variables)
        self.arguments = None


def union(some: tuple[str | None, ...], others: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Return the folders of both; unknown if they are many."""
    found = tuple(dict.fromkeys((*some, *others)))
    return found if len(found) <= FOLDERS_MAX else (None,)
