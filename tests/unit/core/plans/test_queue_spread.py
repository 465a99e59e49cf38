"""Where several want the head of a line at once, those who come late do not all want the next one."""

from typing import Any

import pytest

from coord.engine.engine import Engine
from coord.stores.contract import Commit
from tests.support.plan_harness import PlanHarness

AGENTS = [f"agent-{number}" for number in range(12)]


def late(harness: PlanHarness, agent: str, monkeypatch: pytest.MonkeyPatch, limit: int = 1) -> str:
    """Let an agent ask for work while a rival takes what it wants first; return what the agent gets first."""
    store: Any = harness.database.log("local")
    rival = Engine(harness.database, "local", clock=lambda: harness.now)
    commit = store.commit

    def beaten(asked: Commit) -> int:
        monkeypatch.setattr(store, "commit", commit)
        assert rival.call(harness.next_command(f"rival-of-{agent}", limit=limit)).task is not None
        return int(commit(asked))

    monkeypatch.setattr(store, "commit", beaten)
    return harness.take(agent, limit=limit)


def test_who_comes_late_takes_any_of_the_first_equals(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a conflict agents spread over the heads whose turn is the same, each in its own way."""
    places = set()
    for agent in AGENTS:
        harness = PlanHarness()
        harness.add_all({f"t{number}": () for number in range(9)})
        places.add(late(harness, agent, monkeypatch))
    assert places == {"t1", "t2", "t3", "t4"}


def test_who_comes_late_for_several_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """issue 6: those who take several at once spread by as many: each has the next ones."""
    places = set()
    for agent in AGENTS:
        harness = PlanHarness()
        harness.add_all({f"t{number:02d}": () for number in range(20)})
        places.add(late(harness, agent, monkeypatch, limit=3))
    assert places == {"t03", "t06", "t09", "t12"}


def test_a_turn_is_the_same_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that were added one after the other are spread over, those of a later second are not."""
    places = set()
    for agent in AGENTS:
        harness = PlanHarness()
        harness.add_all({"t0": (), "t1": ()})
        for name, pause_ms in (("t2", 400), ("t3", 599), ("t4", 1), ("t5", 0)):
            harness.now += pause_ms
            harness.add(name)
        places.add(late(harness, agent, monkeypatch))
    assert places == {"t1", "t2", "t3"}


def test_nobody_passes_over_an_earlier_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a higher priority, or has waited longer, is first however often others were faster.

    CLM-13.
    """
    for agent in AGENTS:
        harness = PlanHarness()
        harness.add_all({"a": (), "b": (), "c": ()})
        harness.add("z-urgent", priority=5)
        harness.add("z-urgent-too", priority=4)
        assert late(harness, agent, monkeypatch) == "z-urgent-too"


def test_without_a_conflict_the_first_is_first() -> None:
    """CLM-13: alone, an agent gets the tasks in their order."""
    harness = PlanHarness()
    harness.add_all({f"t{number}": () for number in range(5)})
    assert [harness.take(agent) for agent in AGENTS[:5]] == ["t0", "t1", "t2", "t3", "t4"]
