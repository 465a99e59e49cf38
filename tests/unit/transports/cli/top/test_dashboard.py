"""`coord dashboard`: the table of the first document, with the tickets and the queue, once."""

import re

import pytest

from coord.transports.cli.main import main
from tests.support.cli import PROGRAM, Coord, started
from tests.support.terminals import Terminal


@pytest.fixture
def busy(coord: Coord) -> Coord:
    """Beatrice has three tasks, Rem none; and there is a queue."""
    for name, more in (
        ("id123", ()),
        ("id124", ()),
        ("id125", ()),
        ("low", ()),
        ("high", ("--priority", "9")),
    ):
        coord(f"Beatrice task add {name}", *more, "--description", f"Add feature {name}")
    for name in ("id125", "id124", "id123"):
        coord(f"Beatrice task claim {name}")
    coord("Beatrice lock Y --reason", "rework")
    coord("Rem register")
    return coord


def test_the_rows_of_the_first_document(busy: Coord) -> None:
    """OBS-1, OBS-2, CLI-3: who works on what, who waits for which lock, and who does nothing."""
    busy("Otto task add id200")
    busy("Otto task claim id200")
    waiter = started("Otto", "lock", "./Y", "--wait", "60s")
    try:
        while not busy("Rem dashboard").answer["waits"]:
            assert waiter.poll() is None, "it ended without waiting"
        rows = {row["Agent"]: row for row in busy("Rem dashboard").answer["table"]}
    finally:
        waiter.terminate()
        waiter.communicate()
    assert all(
        list(row) == ["Agent", "State", "Current Task", "QueueDepth", "LastHeartbeat"]
        for row in rows.values()
    )
    assert all(re.fullmatch(r"\d\d:\d\d:\d\dZ", row.pop("LastHeartbeat")) for row in rows.values())
    assert [list(row.values()) for row in rows.values()] == [
        ["Beatrice", "working", "Add feature id123 (id123)", 2],
        ["Rem", "idle", "(none)", 0],
        ["Otto", "blocked", "Waiting for lock on Y", 1],
    ]


def test_tickets_and_queued_tasks(busy: Coord) -> None:
    """OBS-3: each lock with its holder, and the queue in its order with priorities."""
    answer = busy("Rem dashboard").answer
    assert [(each["file"], each["by"]) for each in answer["tickets"]] == [
        ("Y", "Beatrice"),
        ("name:Y", "Beatrice"),
    ]
    assert [(each["task_id"], each["priority"]) for each in answer["queued"]] == [("high", 9), ("low", 0)]


def test_a_task_that_is_kept_for_an_agent_is_in_its_queue(busy: Coord) -> None:
    assert busy("Beatrice task assign low Rem").code == 0
    depth = {row["Agent"]: row["QueueDepth"] for row in busy("Rem dashboard").answer["table"]}
    assert depth == {"Beatrice": 2, "Rem": 1}


def test_a_terminal_gets_the_literal_columns(busy: Coord) -> None:
    """The headings are those of the document; the tickets and the queue come below."""
    terminal = Terminal(*PROGRAM[1:], "dashboard", columns=100, show_stderr=False)
    assert terminal.exit_code() == 0
    lines = re.sub(r"\x1b\[[0-9]*m", "", terminal.shown).splitlines()
    assert re.split(r"\s{2,}", lines[0]) == ["Agent", "State", "Current Task", "QueueDepth", "LastHeartbeat"]
    assert re.split(r"\s{2,}", lines[1])[:4] == ["Beatrice", "working", "Add feature id123 (id123)", "2"]
    assert "2 active tickets" in lines
    assert "2 queued tasks" in lines


def test_wide_cuts_nothing_and_nobody_gets_registered(busy: Coord, capfd: pytest.CaptureFixture[str]) -> None:
    long = "word " * 60
    busy("Rem register --task", long.strip())
    assert main(["dashboard", "-o", "wide"]) == 0
    assert long.strip() in capfd.readouterr().out
    assert len(busy("Rem dashboard").answer["table"]) == 2
