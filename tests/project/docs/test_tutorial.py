"""The console sessions of the documents are played by two shells, word for word."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

import coord
from coord.sdk.plans.check import check_plan
from coord.sdk.plans.file import parse_plan
from coord.transports.cli.plan_view.text import picture
from tests.support.docs.pages import blocks_in

pytestmark = pytest.mark.long

PAGES = {
    "docs/tutorial.md": 20,
    "docs/tutorial-plan.md": 20,
    "docs/how-to/split-a-task.md": 10,
    "docs/how-to/mirrors.md": 20,
    "docs/how-to/run-agents.md": 5,
    "docs/how-to/set-up-agents.md": 8,
    "docs/how-to/claude-code.md": 6,
    "docs/how-to/codex.md": 6,
    "docs/how-to/gemini.md": 6,
    "docs/how-to/merge.md": 12,
    "docs/how-to/alerts.md": 9,
    "docs/how-to/awareness.md": 8,
    "docs/how-to/isolate-tenants.md": 6,
    "docs/how-to/questions.md": 12,
    "docs/how-to/reactions.md": 9,
    "README.md": 5,
}
"""And how many commands each has at least."""
PROMPT = re.compile(r"(?P<who>ada|bob)\$ (?P<command>.+)")
WAIT_S = 30


class Step(NamedTuple):
    """One command of one shell, and what it says."""

    who: str
    command: str
    said: list[str]


class Shell:
    """One terminal: its environment, and the command that it left in the background."""

    def __init__(self, folder: Path, home: Path) -> None:
        programs = str(Path(sys.executable).parent)
        self.environ = {
            "HOME": str(home),
            "PATH": os.pathsep.join((programs, os.environ["PATH"])),
            "XDG_RUNTIME_DIR": str(home),
            "COORD_HUB": "off",  # a hub of the user who runs the tests
        }
        self.folder = folder
        self.background: subprocess.Popen[str] | None = None

    def run(self, command: str) -> list[str]:
        if command.startswith("export "):
            self.environ |= dict(word.split("=", 1) for word in shlex.split(command)[1:])
            return []
        if command == "wait":
            assert self.background is not None
            return self._said(self.background)
        process = self._start(command.removesuffix(" &"))
        if command.endswith(" &"):
            self.background = process
            self._wait_in_line()
            return []
        return self._said(process)

    def _start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _wait_in_line(self) -> None:
        """Come back when the command in the background stands in line: the log says so."""
        with closing(coord.open_store(f"sqlite://{self.folder}/.git/coord/store/coord.db")) as database:
            store = database.log("local")
            for _ in range(WAIT_S):
                if any(b"lock.waiting" in event for entry in store.tail(0, 10_000) for event in entry.events):
                    return
                store.wait(store.seen.offset, 1)
        raise AssertionError("nobody came to wait")

    def _said(self, process: subprocess.Popen[str]) -> list[str]:
        _, err = process.communicate(timeout=WAIT_S)
        lines = [line for line in err.splitlines() if line]
        return [*lines, f"[exit {process.returncode}]"] if process.returncode else lines


def steps_of(page: str) -> Iterator[Step]:
    for block in blocks_in(page, "console"):
        step: Step | None = None
        for line in block.splitlines():
            if match := PROMPT.fullmatch(line):
                if step is not None:
                    yield step
                step = Step(match["who"], match["command"], [])
            else:
                assert step is not None, f"{page}: {line} comes before any command"
                step.said.append(line)
        if step is not None:
            yield step


def same(line: str) -> str:
    """A line without what differs from run to run: seconds that went by, folders, ids of all kinds."""
    line = re.sub(r"\S*/repository/", "/repository/", re.sub(r"\b[0-9a-f]{10,12}\b", "COMMIT", line))
    line = re.sub(r"\(\d+s\)", "(AGE)", line)
    line = re.sub(r"(-gen\d+-)[0-9a-f]{6}", r"\1ID", line)
    line = re.sub(r"\[\d\d:\d\d:\d\d\]", "[TIME]", line)
    line = re.sub(r"until [\d:]+ UTC \(\w+ from now\)", "until TIME", line)
    return re.sub(r"expires in \w+", "expires in TIME", re.sub(r"\d{13}-\w+", "ID", line))


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_played_as_it_says(page: str, tmp_path: Path) -> None:
    """SCN-17, SCN-18: two shells play the page, and each says what the page says."""
    folder, home = tmp_path / "repository", tmp_path / "home"
    (folder / "src").mkdir(parents=True)
    (folder / "src/app.py").write_text("print('hello')\n", encoding="utf-8")
    (folder / "docs").mkdir()
    home.mkdir(mode=0o700)
    for plan in blocks_in(page, "yaml"):
        (folder / "plan.yaml").write_text(plan, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    shells = {who: Shell(folder, home) for who in ("ada", "bob")}
    for who, shell in shells.items():
        shell.run(f"export COORD_SESSION_ID={who} COORD_AGENT={who}")
    steps = list(steps_of(page))
    for step in steps:
        said = shells[step.who].run(step.command)
        said = [line.replace(str(folder), "/repository") for line in said]
        assert [same(line) for line in said] == [same(line) for line in step.said], step.command
    assert len(steps) >= PAGES[page]


def test_the_plan_is_drawn_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture on the page is what `coord plan show` draws of the plan on the page."""
    (text,), (shown,) = (blocks_in("docs/tutorial-plan.md", language) for language in ("yaml", "picture"))
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    with coord.connect("memory:", session="ada", project="shop") as client:
        client.add_tasks(check_plan(parse_plan(text)).tasks)
        assert picture(client.task_list(), 100) == shown
