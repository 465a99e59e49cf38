"""Whole sessions of a real agent with the stand-in hook, in a repository of their own."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.agents import stand_in_hook
from tests.support.agents.drive import Outcome, run_agent
from tests.support.agents.recordings import Json, normalised, read_journal
from tests.support.agents.script import Edit, Read, Replace, Say, Script, Shell, SubAgent

HELD = "held.txt"
WORK: Script = (
    Edit("new.txt", "new\n"),
    Edit(HELD, "stolen\n"),
    Read("old.txt"),
    Replace("old.txt", "one", "two"),
    *(Edit(name, "new\n") for name in stand_in_hook.FAILURES),
    Shell("echo shell > by-shell.txt"),
    SubAgent((Edit("part.txt", "part\n"),)),
    Say("I would stop here."),
    Shell("echo more > more.txt"),
)
"""Everything that a hook has to see."""


@dataclass
class Place:
    """A repository with one commit, a home for the agent, and the journal of its hooks."""

    repository: Path
    home: Path
    journal: Path

    def hook_command(self, tool: str) -> str:
        """The stand-in hook's command line for a tool."""
        program = Path(stand_in_hook.__file__)
        return f"{sys.executable} -I -S {program} {tool} {self.journal} {HELD}"

    def run(self, tool: str, script: Script, **options: Any) -> Outcome:
        """Run an agent here, with the stand-in hook on every event unless told otherwise."""
        options.setdefault("hooks", stand_in_hook.hooks_for(tool, self.hook_command(tool)))
        return run_agent(tool, script, self.repository, self.home, **options)

    def events(self) -> list[Json]:
        """What the hooks were given so far."""
        return read_journal(self.journal)

    def payloads(self) -> dict[str, Json]:
        """The same, one of each kind, as it is kept in files."""
        return normalised(self.events(), self.repository, self.home)

    def read(self, name: str) -> str | None:
        """A file's content, or None if there is no such file."""
        path = self.repository / name
        return path.read_text() if path.exists() else None


def make_place(folder: Path) -> Place:
    """Prepare a place below a folder."""
    folder = folder.resolve()
    repository = folder / "repository"
    repository.mkdir(parents=True)
    (repository / "old.txt").write_text("one\n")
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], [*identity, "commit", "-q", "-m", "begin"]):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    return Place(repository, folder / "home", folder / "journal")
