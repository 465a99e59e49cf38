"""The rules of the page name events and fields that exist, and cover every table."""

import msgspec
import pytest

from coord.core.events import every_event
from coord.core.page.rules import RECENT, RULES, SILENT, TABLES

KINDS = {str(kind.__struct_config__.tag): kind for kind in every_event()}
CHANGES = [(name, each) for name, found in RULES.items() for each in found if "table" in each]


def test_every_rule_is_about_an_event_that_exists() -> None:
    assert RULES.keys() <= KINDS.keys()


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=lambda each: each if isinstance(each, str) else "")
def test_every_source_is_a_field_of_the_event(name: str, change: dict[str, object]) -> None:
    """A field that an event was renamed to would leave the page empty without a word."""
    fields = change.get("fields", {})
    assert isinstance(fields, dict)
    sources = [each.partition("+")[2] if each[0] == "@" else each.lstrip("!") for each in fields.values()]
    wanted = {each for each in sources if each and each[0] != "="} | {*_names(change)}
    assert wanted <= {field.encode_name for field in msgspec.structs.fields(KINDS[name])}


def _names(change: dict[str, object]) -> list[str]:
    found = [change["key"], change.get("to", [])]
    return [name for names in found if isinstance(names, list) for name in names]


def test_what_is_silent_are_events_of_a_session_and_their_fields() -> None:
    for name, field in SILENT.items():
        fields = {each.encode_name for each in msgspec.structs.fields(KINDS[name])}
        assert {"session", field or "session"} <= fields, name


def test_every_table_and_list_is_written_and_bounded() -> None:
    """A table whose records nothing deletes would grow with the log; tasks and agents stay in the store."""
    done = {(each["op"], each["table"]) for _, each in CHANGES}
    assert {table for _, table in done} == {*TABLES}
    assert {table for kind, table in done if kind == "drop"} == {*TABLES} - {"tasks", "agents"}
    pushed = {each["list"]: each["most"] for found in RULES.values() for each in found if "list" in each}
    assert pushed == RECENT
