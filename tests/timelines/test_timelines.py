"""The documents' timelines, run as they are written on every store; `COORD_REWRITE=1` writes their output."""

import os
import re
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from coord import TaskCoordinator
from coord.engine.engine import Engine
from coord.stores.database import Database
from coord.stores.open import open_store
from tests.support.hub.in_process import TRANSPORTS, shared_hub
from tests.timelines.runner import EPOCH_MS, Clock, Opener, Runner, duration_ms, moment, read_timeline

TIMELINES = sorted((Path(__file__).parent / "scripts").glob("*.txt"))
ASKED_FOR = {*range(1, 6), *range(8, 17)}
"""The numbers of the scenarios that have a timeline."""


def through_a_hub(transport: str, stack: ExitStack) -> Opener:
    """Return how to open a store behind a hub, which keeps the clock of the timeline."""

    def opened(url: str, clock: Clock) -> TaskCoordinator:
        def new_engine(database: Database[Any], tenant: str) -> Engine:
            return Engine(database, tenant, clock=clock)

        database = stack.enter_context(closing(open_store(url)))
        return TaskCoordinator(
            stack.enter_context(shared_hub().serving(database, transport, new_engine)), clock
        )

    return opened


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("path", TIMELINES, ids=lambda path: path.stem)
def test_timeline_through_a_hub(path: Path, transport: str, make_url: Callable[[str], str]) -> None:
    """Each command prints the same through a hub."""
    with ExitStack() as stack:
        play(path, Runner(make_url("sqlite"), through_a_hub(transport, stack)))


@pytest.mark.parametrize("path", TIMELINES, ids=lambda path: path.stem)
def test_timeline(path: Path, store_url: str) -> None:
    """Each command of a timeline prints exactly what the timeline says, whatever the store."""
    play(path, Runner(store_url))


def play(path: Path, runner: Runner) -> None:
    """Carry out a timeline and compare what it prints."""
    timeline = read_timeline(path)
    try:
        printed = []
        for block in timeline.blocks:
            if timeline.needs_durable and not runner.durable and {"reopen", "kill"} & {*block.commands}:
                assert_forgets_at_the_end(runner)
                break
            printed.append([line for command in block.commands for line in runner.run(command)])
        if os.environ.get("COORD_REWRITE") and len(printed) == len(timeline.blocks):
            path.write_text(timeline.text(printed), encoding="utf-8")
            return
        wanted = [block.expected for block in timeline.blocks]
        assert timeline.text(printed + wanted[len(printed) :]) == timeline.text(wanted)
    finally:
        runner.close()


def assert_forgets_at_the_end(runner: Runner) -> None:
    """A store that does not promise to be durable begins anew when it is opened again."""
    assert runner.coordinator.database.log("local").seen.offset > 0
    runner.run("reopen")
    assert runner.coordinator.database.log("local").tail(0, 1) == []


def test_every_scenario_has_its_timeline() -> None:
    """One file each, named after it, that says in a comment which one it proves."""
    named = {int(path.stem.split("-")[1]): path for path in TIMELINES}
    assert named.keys() == ASKED_FOR
    for number, path in named.items():
        heading = " ".join(read_timeline(path).heading)
        assert re.search(rf"\bSCN-{number}\b", heading), f"{path.name} does not name SCN-{number}"


def test_a_wrong_expectation_is_noticed(tmp_path: Path) -> None:
    """A script that claims something else than what happens does not pass."""
    wrong = tmp_path / "scn-99-wrong.txt"
    wrong.write_text("# no scenario\n\nclaim t agent=a session=s\n----\nDENIED_COMPLETED\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="DENIED_COMPLETED"):
        test_timeline(wrong, "memory:")


def test_times_are_read_and_written_alike() -> None:
    """Relative times survive reading and writing."""
    for text in ("0s", "15s", "1m", "1m30s", "90m", "1s5ms"):
        assert moment(EPOCH_MS + duration_ms(text)) == f"T={text}"
    assert duration_ms("2") == 2_000
