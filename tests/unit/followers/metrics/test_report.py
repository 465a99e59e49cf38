"""The report says of a time what a naive count of its events says, and fits on one screen."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks
from coord.core.tasks.commands import ClaimTask, SubmitResult
from coord.followers.follower import LogSource
from coord.followers.metrics.report import SLOTS, _Reader, report
from coord.host.store_location import StoreLocation
from coord.sdk.log_reader import LoggedEvent
from coord.stores.open import open_store
from coord.transports.cli.handlers.awareness.report import chart, report_fields, report_text
from tests.support.store_harness import StoreHarness

HOUR = 3_600_000
AGENTS = st.sampled_from(["ada", "bob", "cid"])


@pytest.fixture
def harness() -> Iterator[StoreHarness]:
    with closing(open_store("memory:")) as database:
        yield StoreHarness(database)


def source_in(harness: StoreHarness) -> LogSource:
    location = StoreLocation("memory:", "repository", None, harness.database.store_id, 0, "/nowhere")
    return LogSource(harness.local, harness.store, location, {}, lambda: harness.now)


def claimed(harness: StoreHarness, task: str, agent: str) -> int:
    """Claim a task; return its generation."""
    reply = harness.local.call(ClaimTask("local", "shop", task, agent, f"{agent}-1", 60_000))
    return int(reply.claim.generation)


def submitted(harness: StoreHarness, task: str, agent: str, generation: int) -> Any:
    return harness.local.call(SubmitResult("local", "shop", task, f"{agent}-1", generation, b"{}", ""))


def worked(harness: StoreHarness) -> LogSource:
    """Let ada do one task before the last hour; then ada one, bob one, and ada come back as a zombie."""
    submitted(harness, "old", "ada", claimed(harness, "old", "ada"))
    harness.now += 2 * HOUR
    generation = claimed(harness, "a", "ada")
    harness.now += 30_000
    submitted(harness, "a", "ada", generation)
    zombie = claimed(harness, "b", "ada")
    harness.now += 61_000
    generation = claimed(harness, "b", "bob")
    submitted(harness, "b", "ada", zombie)
    harness.now += 10_000
    submitted(harness, "b", "bob", generation)
    for name in ("x", "y", "z"):
        caller = Caller(name)
        harness.local.call(AcquireLocks(caller, "repository", ("file:hot.py",)))
    return source_in(harness)


def test_a_report_is_about_its_time(harness: StoreHarness) -> None:
    """OBS-7, OBS-8, OBS-10, OBS-26: tasks, latency, zombies, agents and the files that were wanted most."""
    source = worked(harness)
    found = report(source, 3600)
    assert (found.tasks_done, found.claims, found.zombies_refused, found.leases_expired) == (2, 3, 1, 1)
    assert (found.tasks_per_hour, found.completion.count, found.locks_granted) == (2.0, 2, 1)
    agents = {each.agent: each for each in found.agents}
    assert (agents["ada"].done, agents["bob"].done) == (1, 1)
    assert agents["bob"].utilisation == 1.0
    assert agents["ada"].busy_s == pytest.approx(91, abs=1)
    assert [(each.resource, each.times) for each in found.hotspots] == [("file:hot.py", 2)]
    assert sum(found.done_by_slot) == 2
    assert len(found.done_by_slot) == SLOTS
    assert report(source, 86_400).tasks_done == 3
    assert found.overwrites_prevented == {"lock": 2}
    with pytest.raises(Invalid):
        report(source, 0)


def test_a_report_starts_at_the_first_entry_of_its_time(harness: StoreHarness) -> None:
    """However long the log is, entries before the time are found by halves and not read."""
    for number in range(40):
        harness.now += HOUR
        submitted(harness, f"t{number}", "ada", claimed(harness, f"t{number}", "ada"))
    for hours in range(1, 40):
        assert report(source_in(harness), hours * 3600).tasks_done == hours + 1


@given(st.lists(st.tuples(st.integers(0, HOUR), AGENTS, st.integers(0, HOUR)), max_size=40))
def test_agents_and_slots_are_what_a_naive_count_says(done: list[tuple[int, str, int]]) -> None:
    """Every completed task is in one slot, and nobody is busy for longer than it was there."""
    reader = _Reader("local", 0, HOUR)
    for offset, (at_ms, agent, worked_ms) in enumerate(sorted(done)):
        details = {"project": "p", "task": f"t{offset}", "generation": 1, "agent": agent}
        reader.apply(LoggedEvent(offset, at_ms, "task.completed", {**details, "worked_ms": worked_ms}))
    found = reader.report(0)
    assert sum(found.done_by_slot) == len(done)
    assert {each.agent: each.done for each in found.agents} == Counter(agent for _, agent, _ in done)
    assert all(0 <= each.utilisation <= 1 for each in found.agents)
    assert all(0 <= each.seen_s <= HOUR / 1000 for each in found.agents)


def test_a_report_fits_on_one_screen_whatever_names_say() -> None:
    """Escape sequences in names reach no terminal, no line is too long, and JSON has the same numbers."""
    reader = _Reader("local", 0, HOUR)
    for number in range(60):
        name = f"a{number}\x1b[2J\u202e\x7f\n" + "c" * 200
        about = {"project": name, "task": name, "generation": 1, "agent": name, "worked_ms": 5000}
        reader.apply(LoggedEvent(number + 1, 10_000, "task.completed", about))
        denied = {"resources": [name], "session": "s", "agent": name, "holder": "h"}
        reader.apply(LoggedEvent(number + 1, 10_000, "lock.denied", denied))
    found = reader.report(0)
    text = report_text(found, 80)
    assert not {"\x1b", "\u202e", "\x7f"} & set(text)
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 80
    assert "60 done" in text
    assert "… and 42 more agents" in text
    fields = json.loads(json.dumps(report_fields(found)))
    assert fields["tasks_done"] == 60
    assert fields["agents"][0]["utilisation"] == 1.0


def test_an_empty_report_is_a_report(harness: StoreHarness) -> None:
    text = report_text(report(source_in(harness), 3600), 80)
    assert "0 done" in text
    assert "recovery: none" in text


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30), st.integers(1, 4))
def test_the_chart_shows_every_value_that_is_not_zero(values: list[int], rows: int) -> None:
    """The highest value reaches the top, and a small one is not drawn as nothing."""
    lines = chart(values, rows)
    assert len(lines) == rows + 1
    bottom = lines[rows - 1][: 2 * len(values)]
    assert [cell != " " for cell in bottom[::2]] == [value > 0 for value in values]
    if max(values):
        assert "█" in lines[0]
