"""`coord init` and `coord uninstall`, killed at every change, are finished or undone by the next command.

Each round kills one command before one of its changes, then runs another command, and then compares every
byte, mode and link of the repository, its worktrees and its git directory.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from coord.integrations.setup.changes import Plan
from coord.integrations.setup.journal import read_journal
from coord.integrations.setup.removal import repair
from tests.support.git_folders import found, git, made_repository
from tests.support.kill_points import count_changes, run_until
from tests.support.setup_folders import planned, set_up, snapshot, take_out, write

SOAK = bool(os.environ.get("COORD_SOAK"))
ROUNDS = 8
FORMER = "#!/bin/sh\nexit 0\n"
OWN_SETTINGS = '{\n    "a": 1,\n    "hooks": {"Stop": []}\n}'


def build(shop: Path) -> None:
    """Create a repository with hooks, settings and texts of its owner, and a second worktree."""
    made_repository(shop)
    write(shop / ".git/hooks/pre-commit", FORMER, 0o755)
    write(shop / ".claude/settings.local.json", OWN_SETTINGS)
    write(shop / "AGENTS.md", "# Rules\r\n")
    git(shop, "worktree", "add", "-q", "--detach", str(shop.parent / "second"))
    write(shop.parent / "second/GEMINI.md", "# Mine")


def fresh(_: Path) -> None:
    """Start without coord."""


def fresh_with_a_manager(shop: Path) -> None:
    git(shop, "config", "core.hooksPath", ".husky/_")


def installed(shop: Path) -> None:
    set_up(shop)


def outdated(shop: Path) -> None:
    """Start with the hooks of another version: each file differs from the one that init would write."""
    os.environ["COORD_HOOK_DEADLINE"] = "30"
    try:
        set_up(shop, "claude")
    finally:
        del os.environ["COORD_HOOK_DEADLINE"]
    for path in (shop / ".git/hooks").glob("pre-*"):
        if b"written by coord" in path.read_bytes():
            path.write_bytes(path.read_bytes() + b"# older\n")


def without_folder(shop: Path) -> None:
    set_up(shop)
    shutil.rmtree(shop / ".git/coord")


def repaired(shop: Path) -> None:
    """Do what `coord doctor --fix` does."""
    repair(found(shop), os.environ)


Command = Callable[[Path], Plan | None]
CASES: list[tuple[Callable[[Path], None], Command]] = [
    (fresh, set_up),
    (fresh_with_a_manager, set_up),
    (outdated, set_up),
    (installed, take_out),
    (without_folder, take_out),
]
NEXT: tuple[Command, ...] = (set_up, take_out, repaired)


QUICK = (fresh, installed)
"""The other cases are too long for `make quick`."""


@pytest.mark.parametrize(
    ("prepare", "command"),
    [
        pytest.param(
            *case,
            id=f"{case[0].__name__}-{case[1].__name__}",
            marks=() if case[0] in QUICK else pytest.mark.long,
        )
        for case in CASES
    ],
)
def test_a_killed_command_is_finished_or_undone(
    prepare: Callable[[Path], None], command: Command, home: Path, tmp_path: Path
) -> None:
    """Issue 15: rounds, and what the next command made of them; no round leaves a wrong byte or a draft."""
    before, start = template(tmp_path, prepare)
    counts: Counter[str] = Counter()
    shop = renewed(tmp_path, start)
    points = range(1, 1 + count_changes(lambda: command(shop)))
    chosen = points if SOAK else random.Random(15).sample(points, min(ROUNDS, len(points)))
    for number, point in enumerate(chosen):
        for follow in NEXT if SOAK else (NEXT[number % len(NEXT)],):
            counts["rounds"] += 1
            counts[play(tmp_path, start, before, command, point, follow)] += 1
    assert counts["wrong"] == 0, counts
    assert counts["finished"] + counts["undone"] == counts["rounds"] > 0


def template(tmp_path: Path, prepare: Callable[[Path], None]) -> tuple[dict[str, object], Path]:
    """Return what a removal that nobody kills leaves, and the folder of a prepared repository."""
    case = tmp_path / "case"
    build(case / "shop")
    before = snapshot(case)
    prepare(case / "shop")
    shutil.copytree(case, tmp_path / "start", symlinks=True)
    take_out(case / "shop")
    left = snapshot(case)
    if prepare in (fresh, outdated, installed):
        assert left == before
    return dict(left), tmp_path / "start"


def renewed(tmp_path: Path, start: Path) -> Path:
    """Return the repository as the killed command finds it; its path is the same in every round."""
    shutil.rmtree(tmp_path / "case")
    shutil.copytree(start, tmp_path / "case", symlinks=True)
    return tmp_path / "case/shop"


def play(
    tmp_path: Path, start: Path, before: dict[str, object], command: Command, point: int, follow: Command
) -> str:
    """Kill a command, run the next one, and return what came of it."""
    shop = renewed(tmp_path, start)
    run_until(point, lambda: command(shop))
    follow(shop)
    drafts = [path for path in snapshot(tmp_path / "case") if ".coord-draft" in path]
    journal = read_journal(f"{shop}/.git/coord")
    if journal.unfinished or drafts:
        return "wrong"
    is_whole = bool(journal.edits) and not planned(shop, ",".join(journal.tools)).changes
    if not journal.edits and dict(snapshot(tmp_path / "case")) != before and follow is not repaired:
        return "wrong"
    take_out(shop)
    if dict(snapshot(tmp_path / "case")) != before:
        return "wrong"
    removes = command is take_out
    return "undone" if is_whole == removes else "finished"
