"""The table of actions: every event is an action, or it is listed with a reason."""

from enum import StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.activity.actions import (
    ACTIONS,
    EVENTS_PER_ENTRY,
    NOT_ACTIONS,
    OFFSET_BITS,
    SUMMARY_PARTS,
    TYPES,
    TYPES_WITH_RECIPIENT,
    Action,
    action_id,
    action_of,
)
from coord.core.events import SEED_NAMES, Event, event_names, every_event
from coord.stores.database import EPOCH_BITS
from coord.stores.sqlite.store import SqliteStore

KINDS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in every_event()}
TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


def test_every_event_is_an_action_or_says_why_not() -> None:
    """AUD-1: nothing is left out by accident, and nothing that does not exist is listed."""
    listed = {action.event for action in ACTIONS}
    assert not listed & NOT_ACTIONS.keys()
    assert listed | NOT_ACTIONS.keys() == event_names()
    assert all(NOT_ACTIONS.values())


def test_the_types_are_those_of_the_founding_document() -> None:
    """AUD-5."""
    named = """file_edit file_read decision_made task_started task_completed sub_agent_spawned lock_acquired
        lock_released message_sent delegated agent_terminated delegation_cancelled group_message error"""
    assert tuple(named.split()) == TYPES
    assert {action.type for action in ACTIONS} == set(TYPES)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: f"{action.event}-{action.type}")
def test_a_row_names_fields_of_its_event(action: Action) -> None:
    """A renamed field of an event would leave a hole in the ledger; SQL shows only texts and numbers."""
    fields = {each.name: each.type for each in msgspec.structs.fields(KINDS[action.event])}
    shown = [name for _, name in action.parts if name]
    for name in (*shown, action.only_if, action.agent, action.to_role):
        kind = fields[name] if name else str
        assert kind in (str, int) or issubclass(kind, StrEnum), name
    assert len(action.parts) <= SUMMARY_PARTS
    assert not action.to or action.to in fields
    assert (action.type in TYPES_WITH_RECIPIENT) <= bool(action.to and action.to_role), "AUD-6"


def test_no_event_matches_two_rows() -> None:
    """SQL joins the table, so that a second row would show an action twice."""
    for name in event_names():
        rows = [action for action in ACTIONS if action.event == name]
        if len(rows) > 1:
            assert len({action.only_if for action in rows}) == 1
            values = [value for action in rows for value in action.values]
            assert len(values) == len(set(values))
            assert all(action.values for action in rows)


def test_the_names_of_streams_are_those_of_the_ledger() -> None:
    """One action has one name, wherever it appears (CFL-23)."""
    for action in ACTIONS:
        if SEED_NAMES.get(action.event) in TYPES:
            assert SEED_NAMES[action.event] == action.type


@pytest.mark.parametrize(
    ("event", "details", "expected"),
    [
        (
            "lock.acquired",
            {"session": "s1", "agent": "ann", "resource": "file:a.py"},
            "Acquired lock on a.py",
        ),
        ("lock.acquired", {"session": "s1", "resource": "name:x"}, "Acquired lock on name:x"),
        ("session.registered", {"session": "s2", "parent": "s1", "agent": "x"}, "Started sub-agent s2"),
        ("session.registered", {"session": "s2", "agent": "x"}, None),
        ("session.ended", {"session": "s2", "end_reason": "deregistered"}, None),
        ("session.ended", {"session": "s2", "end_reason": "dead", "evidence": "gone"}, "Session died: gone"),
        ("task.released", {"task": "t", "session": "s1", "reason": "VOLUNTARY"}, None),
        ("task.released", {"task": "t", "session": "s1", "reason": "ERROR", "note": "x"}, "Failed task t: x"),
        ("session.hung", {"session": "s1", "silent_s": 61}, "Session silent for 61 s"),
        ("unheard.of", {"session": "s1"}, None),
    ],
)
def test_an_event_becomes_an_action(event: str, details: dict[str, Any], expected: str | None) -> None:
    found = action_of(event, details)
    assert (None if found is None else found.summary) == expected


@pytest.mark.parametrize(
    ("to", "expected"), [("s2", "s2"), (["s2"], "s2"), (["s2", "s3"], ""), ([], ""), (7, ""), (None, "")]
)
def test_an_action_names_the_one_that_it_concerns(to: object, expected: str) -> None:
    """AUD-6, MSG-17: several recipients are in `to`."""
    found = action_of("message.sent", {"session": "s1", "to": to, "to_role": "qa", "subject": "hi"})
    assert found is not None
    assert (found.details["toAgentId"], found.details["toRole"]) == (expected, "qa")


def test_whoever_terminates_an_agent_acts() -> None:
    """AUD-6: the one that was terminated is the recipient."""
    ended = {"session": "s2", "agent": "bob", "end_reason": "terminated", "by": "s1", "role": "qa"}
    found = action_of("session.ended", ended)
    assert found is not None
    assert (found.type, found.agent_id, found.agent) == ("agent_terminated", "s1", "")
    assert (found.details["toAgentId"], found.details["toRole"]) == ("s2", "qa")


@given(
    st.sampled_from(sorted(KINDS)),
    st.dictionaries(st.sampled_from(["session", "to", "resource", *"ab"]), VALUES),
)
def test_no_content_of_an_event_breaks_the_ledger(event: str, details: dict[str, Any]) -> None:
    """Other versions and damaged stores have events that this one does not expect; texts stay texts."""
    found = action_of(event, details)
    if found is not None:
        assert found.type in TYPES
        assert all(isinstance(each, str) for each in (found.agent_id, found.agent, found.summary))
        assert found.details["event"] == event
        assert {**found.details, **details, "event": event} == found.details


def test_ids_cannot_collide() -> None:
    """An entry has fewer events than an id has room for: the shortest event takes more than 20 bytes."""
    assert OFFSET_BITS == EPOCH_BITS
    assert action_id((1 << OFFSET_BITS) - 1, EVENTS_PER_ENTRY) < 2**63, "SQL counts no further"
    assert SqliteStore.limits.commit_bytes // 20 < EVENTS_PER_ENTRY
