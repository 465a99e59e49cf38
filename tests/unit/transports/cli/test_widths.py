"""Every listing on a real terminal of 40, 80 and 200 columns: it fits, and each row says which it is."""

import re
import subprocess
import unicodedata
from pathlib import Path
from typing import NamedTuple

import pytest

from coord.transports.cli.commands.registry import all_commands
from coord.transports.cli.table import cells_wide
from tests.support.cli import PROGRAM, Coord
from tests.support.terminals import Terminal

LONG = "src/components/checkout/payment_provider_adapter.py"
WIDE = "docs/日本語/設計ドキュメント.md"
TALE = "a reason that goes on and on, with 全角文字 in it"
NASTY = "\x1b[31mred\x07 \u202eevil "
TASK = "A-001-rework-the-payment-provider-adapter"


class Listing(NamedTuple):
    """A command that prints rows, and texts that identify some of them."""

    words: str
    shows: tuple[str, ...]


LISTINGS = (
    Listing("locks", (f"file:{LONG}", f"file:{WIDE}", "name:main-push")),
    Listing("waits", ("s-bob", LONG)),
    Listing("lock other.py", ("file:other.py",)),
    Listing("renew", ("file:own.py",)),
    Listing(f"check {LONG}", (f"file:{LONG}",)),
    Listing("peers", ("s-ann",)),
    Listing("dashboard", ("ann",)),
    Listing("register", ("s-ann",)),
    Listing("status", ("s-bob", "file:own.py")),
    Listing("session show s-ann", ("s-ann", TASK)),
    Listing("recv --peek", ("please review",)),
    Listing("task list", (TASK, "B-001-second")),
    Listing(f"task show {TASK}", (TASK,)),
    Listing("task history C-001-third", ("s-ann",)),
    Listing("task lineage C-001-third", ("s-ann",)),
    Listing("plan show", ()),
    Listing("plan show --table", (TASK,)),
    Listing("plan load plan.json --dry-run", ("A-002-new",)),
    Listing("plan check bad.json", ()),
    Listing("agent list", ("ann",)),
    Listing(f"route {TASK} --explain", ("ann",)),
    Listing("worktree list", ()),
    Listing("salvage list", ("refs/coord/salvage/",)),
    Listing("log tail", ("lock.acquired",)),
    Listing("log stats", ("lock.acquired",)),
    Listing("log locks", (f"file:{LONG}",)),
    Listing("limits show", ()),
    Listing("delegation list", ("s-bob",)),
    Listing("group list", ("reviewers",)),
    Listing("token list", ("operate", "the screen in the hall")),
    Listing("group show reviewers -o wide", ()),
    Listing("delegation list", ("s-bob", "write the tests of the payment provider")),
    Listing("mirror list", ("contract",)),
    Listing("alerts", ()),
    Listing("decisions", ()),
    Listing("install --dry-run", ()),
    Listing("doctor", ("store",)),
    Listing("reactions list", ()),
)


@pytest.fixture
def full(coord: Coord, repository: Path) -> Path:
    """A repository in which every listing has something to show, some of it long, wide or hostile."""
    git = ["git", "-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    (repository / "own.py").write_text("1\n")
    subprocess.run([*git, "add", "own.py"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    coord("ann register --task", "rework the whole payment provider " * 3)
    coord("bob register")
    coord(f"ann lock {LONG} {WIDE} main-push --reason", TALE)
    coord("bob lock own.py --ttl 30s")
    coord(f"bob lock {LONG} --no-wait")
    (repository / "own.py").write_text("2\n")
    assert coord("bob salvage keep --why", TALE).code == 0
    coord(f"ann task add {TASK} --type code_gen --description", TALE)
    coord(f"ann task add B-001-second --depends-on {TASK}")
    coord(f"ann task claim {TASK}")
    coord("ann task add C-001-third")
    coord("ann task claim C-001-third")
    coord("ann task fail C-001-third 1 --note", "it does not work " * 5)
    coord("ann send s-bob request", "please review this " * 6, "--body", NASTY + "word " * 100)
    assert coord("ann group create reviewers").code == 0
    assert coord("ann delegation add s-bob", TALE).code == 0
    assert coord("ann group join reviewers").code == 0
    label = "the screen in the hall of the second floor"
    assert coord("ann token create --role operate --session s-ann --label", label).code == 0
    assert coord("ann delegation add bob", "write the tests of the payment provider").code == 0
    (repository / "plan.json").write_text('{"tasks": [{"id": "A-002-new", "description": "new"}]}')
    (repository / "bad.json").write_text('{"tasks": [{"id": "A-003-x", "depends_on": ["A-999-missing"]}]}')
    return repository


WIDER = [pytest.param(columns, marks=pytest.mark.long) for columns in (80, 200)]


@pytest.mark.parametrize("columns", [40, *WIDER])
def test_every_listing_fits_and_names_its_rows(full: Path, columns: int) -> None:
    """No line is wider than the terminal, no name is cut, and nothing stored commands the terminal."""
    for listing in LISTINGS:
        terminal = Terminal(
            *PROGRAM[1:],
            *("--session", "s-bob", *listing.words.split()),
            columns=columns,
            show_stderr=False,
        )
        terminal.exit_code()
        shown = re.sub(r"\x1b\[[0-9]*m", "", terminal.shown.replace("\r\n", "\n"))
        too_wide = [line for line in shown.splitlines() if cells_wide(line) > columns]
        assert not too_wide, f"{listing.words} at {columns}: {too_wide}"
        controls = {each for each in shown if unicodedata.category(each) == "Cc"} - {"\n"}
        assert not controls, f"{listing.words} at {columns}: {controls}"
        unwrapped = re.sub(r"\s+", "", shown)
        missing = [text for text in listing.shows if text.replace(" ", "") not in unwrapped]
        assert not missing, f"{listing.words} at {columns}: {missing}\n{shown}"


def test_every_command_that_lists_is_among_them() -> None:
    """A new listing has to be looked at, too."""
    tested = {each.words for each in LISTINGS}
    plural = [
        each.name for each in all_commands() if each.name.endswith((" list", "locks", "peers", " show"))
    ]
    left = [name for name in plural if not any(words.startswith(name) for words in tested)]
    assert left == ["salvage show"]
