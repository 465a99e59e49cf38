"""The table of notices decides about every event, and names only what its events have."""

import typing
from enum import Enum

import msgspec
import pytest

from coord.core.events import every_event
from coord.core.page.notices import LEVELS, NOTICES, SILENT

KINDS = {str(kind.__struct_config__.tag): kind for kind in every_event()}
TONES = {"ok", "work", "wait", "ask", "bad", "idle"}
NEEDED = {
    "agent": {"session"},
    "busy": {"session"},
    "me": {"to"},
    "lock": {"resource"},
    "task": {"project", "task"},
}
"""The fields without which a link or a condition makes no sense."""


def fields(name: str) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(KINDS[name])}


def test_every_event_has_a_notice_or_deliberately_none() -> None:
    assert NOTICES.keys() | SILENT == KINDS.keys()
    assert not NOTICES.keys() & SILENT


@pytest.mark.parametrize("name", NOTICES)
def test_a_row_names_what_its_event_has(name: str) -> None:
    """A renamed field or a value that no event has would silence a notice."""
    types = typing.get_type_hints(KINDS[name])
    for row in NOTICES[name]:
        assert row.level in LEVELS
        assert row.tone in TONES
        assert row.to.startswith("/") or NEEDED[row.to] <= fields(name)
        assert not row.only or NEEDED[row.only] <= fields(name)
        for other in row.until:
            same = {"id", "project", "task"} & fields(name)
            assert same <= fields(other), "an end that says nothing of it would end others, too"
        for field, values in row.when.items():
            kind = types[field]
            if isinstance(kind, type) and issubclass(kind, Enum):
                assert set(values) <= {each.value for each in kind}
            else:
                assert all(isinstance(value, kind) for value in values)


@pytest.mark.parametrize("name", NOTICES)
def test_no_row_hides_a_later_one(name: str) -> None:
    """The first row that fits counts, so one without a condition comes last."""
    *first, _ = NOTICES[name]
    assert all(row.when or row.only for row in first)


def test_a_kind_has_one_place_and_says_the_same_of_several() -> None:
    """Notices of a kind become one."""
    rows = [row for found in NOTICES.values() for row in found]
    for row in rows:
        assert {(each.to, each.many) for each in rows if each.kind == row.kind} == {(row.to, row.many)}
