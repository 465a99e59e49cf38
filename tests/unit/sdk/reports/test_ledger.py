"""The activity ledger: the newest actions, read from the end of the log."""

import json
from typing import Any

import pytest

import coord
from coord.core.errors import Invalid
from coord.core.sessions.commands import ListSessions
from coord.sdk.log_reader import PAGE_ENTRIES
from coord.sdk.reports.ledger import (
    Ledger,
    LedgerEntry,
    LedgerFilter,
    ledger_filter,
)
from coord.stores.contract import Entry, Store
from coord.stores.open import open_store
from tests.support.stores.steps import write

EVERYTHING = LedgerFilter()


@pytest.fixture
def log() -> Store:
    return open_store("memory:").log("local")


def add(log: Store, *events: dict[str, Any], at: int = 0) -> int:
    return write(log, events=[json.dumps(event).encode() for event in events], at=at)


def lock(resource: str, session: str = "s1", agent: str = "ann") -> dict[str, Any]:
    return {"event": "lock.acquired", "resource": resource, "session": session, "agent": agent}


def renewal() -> dict[str, Any]:
    return {"event": "lock.renewed", "resource": "name:x", "session": "s1"}


def summaries(found: list[LedgerEntry]) -> list[str]:
    return [each.summary.removeprefix("Acquired lock on ") for each in found]


def test_the_newest_come_last_with_ids_that_rise(log: Store) -> None:
    """AUD-1, AUD-3: an entry with several events has several actions, in their order."""
    first = add(log, lock("name:a"), renewal(), lock("name:b"))
    second = add(log, lock("name:c"))
    found = Ledger(log, {}).newest(EVERYTHING, 10)
    assert [each.id for each in found] == [first * 10**6 + 1, first * 10**6 + 3, second * 10**6 + 1]
    assert summaries(Ledger(log, {}).newest(EVERYTHING, 2)) == ["name:b", "name:c"]


def test_the_ledger_ends_after_its_entries(log: Store) -> None:
    """AUD-8: a filter does not look further back; what is no action does not count."""
    add(log, lock("name:old", "s2"))
    for _ in range(3):
        add(log, lock("name:new"), renewal())
    assert summaries(Ledger(log, {}, entries=3).newest(EVERYTHING, 10)) == ["name:new"] * 3
    assert Ledger(log, {}, entries=3).newest(LedgerFilter(agent="s2"), 10) == []
    assert Ledger(log, {}, entries=3).summary().actions == 3
    assert Ledger(log, {}, entries=4).summary().actions == 4


def test_only_the_end_of_a_long_log_is_read(log: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2 * PAGE_ENTRIES):
        add(log, lock(f"name:{number}"), at=number)
    read: list[int] = []
    tail = log.tail

    def counting(after: int, limit: int) -> list[Entry]:
        page = tail(after, limit)
        read.append(len(page))
        return page

    monkeypatch.setattr(log, "tail", counting)
    Ledger(log, {}).newest(EVERYTHING, 5)
    assert sum(read) <= PAGE_ENTRIES + 1
    read.clear()
    Ledger(log, {}).newest(LedgerFilter(agent="nobody", since_ms=2 * PAGE_ENTRIES - 3), 5)
    assert sum(read) <= PAGE_ENTRIES + 1, "nothing is older than the time that was asked for"


def test_actions_are_filtered_by_session_agent_type_and_time(log: Store) -> None:
    add(log, lock("name:a"), at=1000)
    add(log, lock("name:b", "s2", "bob"), at=2000)
    add(log, {"event": "task.claimed", "task": "t1", "session": "s2", "agent": "bob"}, at=3000)

    def found(**which: Any) -> list[str]:
        return summaries(Ledger(log, {}).newest(ledger_filter(**which), 10))

    assert found(agent="s2") == found(agent="bob") == ["name:b", "Started task t1"]
    assert found(type_="task_started") == ["Started task t1"]
    assert found(since_ms=2000) == ["name:b", "Started task t1"]
    with pytest.raises(Invalid, match="no action"):
        ledger_filter(type_="lock.acquired")
    with pytest.raises(Invalid, match="invalid number"):
        Ledger(log, {}).newest(EVERYTHING, 0)


def test_the_role_is_that_of_the_session_or_else_the_name_of_the_agent() -> None:
    """AUD-7: `agent_role` is never missing while the event or the session says who it was."""
    with (
        coord.connect("memory:", session="s1", agent="ann", role="qa") as client,
    ):
        client.register()
        client.acquire("name:x")
        listed = client.call(ListSessions(client.caller, everyone=True))
        sessions = {session.session_id: session for session in listed}
        assert [each.agent_role for each in Ledger(client.log, sessions).newest(EVERYTHING, 9)] == ["qa"]
        assert [each.agent_role for each in Ledger(client.log, {}).newest(EVERYTHING, 9)] == ["ann"]


def test_the_summary_counts_types_agents_and_files(log: Store) -> None:
    """OBS-26."""
    add(log, lock("file:a.py"), lock("name:x"), lock("file:b.py", "s2"), at=1000)
    add(log, {"event": "file.edited", "resource": "file:b.py", "session": "s2", "agent": "bob"}, at=2000)
    found = Ledger(log, {}).summary()
    assert found.by_type == {"file_edit": 1, "lock_acquired": 3}
    assert found.by_agent == {"s1": {"lock_acquired": 2}, "s2": {"file_edit": 1, "lock_acquired": 1}}
    assert list(found.files.items()) == [("b.py", 2), ("a.py", 1)]
    assert (found.first_ms, found.newest_ms) == (1000, 2000)


def test_who_may_not_see_an_event_does_not_see_its_action(log: Store) -> None:
    add(log, lock("name:a"), {**lock("name:b"), "project": "shop"})
    ledger = Ledger(log, {}, is_visible=lambda details: details.get("project") == "shop")
    assert summaries(ledger.newest(EVERYTHING, 9)) == ["name:b"]
    assert ledger.summary().actions == 1
