"""The last act, with real git: three agents in worktrees, an overwrite by a shell command, a merge too late.

gus edits a file. A shell command of hana overwrites it in his worktree, and the hook detects this. ivo
commits under a lock and sleeps until the lock expires. hana takes the lock after him, and her branch is
merged. coord refuses to merge his.
"""

import json
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from demo.author import COORD, Author, Broken, environment
from demo.screen import Screen
from demo.stage import Part, Stage

AUTHORS = ("gus", "hana", "ivo")
OVERWRITTEN, CONTESTED = "src/app.py", "src/payment.py"
SHORT_TTL, PATIENCE = "1s", "20s"


class MergeAnswer(NamedTuple):
    """The answer to a merge, and the line that the agent wanted to bring into main."""

    session: str
    branch: str
    tip: str
    path: str
    line: str
    merged: bool
    why: str = ""


class Overwrite(NamedTuple):
    """A file that a shell command overwrote, and the messages to both sides."""

    holder: str
    writer: str
    path: str
    wrote: str
    kept: str
    """The file as its holder left it."""
    found: str
    """The file after the hook."""
    writer_told: str
    holder_told: str
    aside: str
    """The ref that keeps the text of the shell command."""


@dataclass
class Landing:
    """The result of the last act as the agents saw it; the proof reads the log and the repository."""

    began_at: str = ""
    """The commit of main at the start."""
    told: list[MergeAnswer] = field(default_factory=list)
    overwrite: Overwrite | None = None


def git(folder: Path, *words: str) -> str:
    """Return the output of a git command."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment(), check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise Broken(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def begin(folder: Path) -> str:
    """Commit the files of the plan's tasks, and install the hooks with `coord init`; return the commit."""
    git(folder, "config", "user.name", "Director")
    git(folder, "config", "user.email", "director@example.org")
    git(folder, "add", "--all", "--", ":!workers.err")
    git(folder, "commit", "--quiet", "--message", "What the plan has made")
    init = [*COORD, "init", "--yes", "--tools", "claude"]
    done = subprocess.run(init, cwd=folder, env=environment(), check=False, capture_output=True, text=True)
    if done.returncode:
        raise Broken(f"coord init: {done.stderr}")
    return git(folder, "rev-parse", "main")


def installed_hook(folder: Path) -> str:
    """Return the hook command that `coord init` wrote for Claude Code."""
    settings = json.loads((folder / ".claude" / "settings.local.json").read_text())
    return str(settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"])


class GitAct:
    """Directs the act."""

    def __init__(self, folder: Path, stage: Stage, screen: Screen) -> None:
        self._folder, self._stage, self._screen = folder, stage, screen
        self._begin = time.monotonic() - stage.seconds
        self.landing = Landing()

    def run(self) -> Landing:
        """Run the act; leave no process behind, even after an error."""
        with ExitStack() as stack:
            self._tell("the plan is done; its work goes to main, and coord init puts hooks there")
            self.landing.began_at = begin(self._folder)
            hook = installed_hook(self._folder)
            errors = stack.enter_context(open(self._folder / "workers.err", "ab"))
            authors = []
            for name in AUTHORS:
                author = Author(name, self._folder, hook, errors.fileno())
                stack.callback(author.end)
                self._stage.parts[name] = Part(name, "author", author.session)
                author.enter()
                self._does(author, "settles in")
                authors.append(author)
            gus, hana, ivo = authors
            self._tell("gus-1, hana-1 and ivo-1 have worktrees: coord worktree add")
            self._overwrite(gus, hana)
            self._come_late(ivo, hana)
        return self.landing

    def _overwrite(self, holder: Author, writer: Author) -> None:
        """Let a shell command overwrite a file that the holder edits; then merge the holder's branch."""
        line = f"{holder.session} opens the shop"
        kept = (holder.folder / OVERWRITTEN).read_text() + line + "\n"
        self._does(holder, "edits", OVERWRITTEN)
        holder.write(OVERWRITTEN, kept)
        self._does(writer, "strays", OVERWRITTEN)
        wrote = f"{writer.session} was here"
        writer_told = writer.shell(
            f"""python3 -c "print('{wrote}', file=open('{OVERWRITTEN}', 'w'))" """, holder.folder
        )
        mail = holder.coord("recv", "--drain")["messages"]
        holder_told = " ".join(
            f"{each['subject']}: {each['body']}" for each in mail if each["kind"] == "overwrite"
        )
        found = (holder.folder / OVERWRITTEN).read_text()
        aside = writer_told.partition("git show ")[2].partition(":")[0]
        self.landing.overwrite = Overwrite(
            holder.session, writer.session, OVERWRITTEN, wrote, kept, found, writer_told, holder_told, aside
        )
        self._tell(
            f"a shell command of {writer.session} writes over {OVERWRITTEN} in {holder.session}'s worktree"
        )
        if holder_told and found == kept:
            self._tell(
                f"OVERWRITE caught: both are notified, and {OVERWRITTEN} is restored for {holder.session}"
            )
        holder.coord("commit", "-m", "Open the shop", "--unlock")
        self._merge(holder, OVERWRITTEN, line)

    def _come_late(self, late: Author, heir: Author) -> None:
        """Let one agent lose its lock after a commit, another take it and merge, and the first merge late."""
        late_line, line = f"{late.session} pays in gold", f"{heir.session} pays by card"
        self._does(late, "edits", CONTESTED)
        late.coord("lock", CONTESTED)
        late_file = (
            late.folder / CONTESTED
        )  # one line goes to the top, the other to the end: git alone would merge both
        late_file.write_text(f"{late_line}\n{late_file.read_text()}")
        late.coord("commit", "-m", "Pay in gold")
        late.coord("renew", CONTESTED, "--ttl", SHORT_TTL)
        self._does(late, "asleep", CONTESTED)
        self._tell(f"{late.session} commits {CONTESTED}, renews its lock for {SHORT_TTL}, and sleeps")
        self._does(heir, "queued", CONTESTED)
        heir.coord("lock", CONTESTED, "--wait", PATIENCE)
        file = heir.folder / CONTESTED
        file.write_text(f"{file.read_text()}{line}\n")
        heir.coord("commit", "-m", "Pay by card", "--unlock")
        self._merge(heir, CONTESTED, line)
        self._does(late, "zombie", CONTESTED)
        self._merge(late, CONTESTED, late_line)

    def _merge(self, author: Author, path: str, line: str) -> None:
        """Ask coord to merge a branch, and record the answer."""
        (answer,) = author.coord("merge", author.branch)["branches"]
        merged = answer["status"] == "merged"
        why = "; ".join(finding["what"] for finding in answer["findings"]) or answer["status"]
        told = MergeAnswer(
            author.session, author.branch, answer["tip"], path, line, merged, "" if merged else why
        )
        self.landing.told.append(told)
        self._does(author, "merged" if merged else "refused", path)
        how = f"is MERGED: main is at {answer['commit'][:10]}" if merged else f"is REFUSED: {why}"
        self._tell(f"{author.branch} {how}")

    def _does(self, author: Author, doing: str, path: str = "") -> None:
        part = self._stage.parts[author.name]
        part.doing, part.task = doing, path
        self._show()

    def _tell(self, line: str) -> None:
        self._show()
        self._stage.tell(line)
        self._screen.show(self._stage)

    def _show(self) -> None:
        self._stage.seconds = time.monotonic() - self._begin
        self._screen.show(self._stage)
