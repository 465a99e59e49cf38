"""The state of the page at an offset, and what the next entry makes of it.

`static/core/state.js` of the hub's page does the same; tests compare both on recorded logs.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from coord.core.events import read_event
from coord.core.page.rules import JOINTS, RECENT, RULES, SILENT, TABLES, Operation

Fields = dict[str, Any]
Table = dict[str, Fields]
NUMBER_MAX = 2**52
"""A larger number is not added to another one: a browser would round the sum."""


class PageState(msgspec.Struct):
    """Tables and recent as they are after the entry at `offset`, which was written `at` that time."""

    offset: int = 0
    at: int = 0
    tables: dict[str, Table] = msgspec.field(default_factory=lambda: {name: {} for name in TABLES})
    recent: dict[str, list[Fields]] = msgspec.field(default_factory=lambda: {name: [] for name in RECENT})


def apply_entry(state: PageState, offset: int, at: int, events: Iterable[bytes]) -> None:
    """Change the state as the events of the next entry say; an unreadable event changes nothing."""
    state.offset, state.at = offset, at
    for raw in events:
        event = read_event(raw)
        if event is None:
            continue
        for operation in RULES.get(str(event.get("event")), ()):
            _OPERATIONS[operation["op"]](state, operation, event)
        session = state.tables["sessions"].get(_part(event.get("session")))
        if session is not None and _says_seen(event):
            session["seen_ms"] = at
            session.pop("hung_s", None)


def _says_seen(event: Fields) -> bool:
    """Whether the session of an event caused it."""
    field = SILENT.get(str(event.get("event")))
    return field is None or (field != "" and not event.get(field))


def _key(table: str, names: Iterable[str], event: Fields) -> str:
    """Return the key that an event means."""
    return JOINTS.get(table, "\n").join(_part(event.get(name)) for name in names)


def _part(value: Any) -> str:
    """Return a part of a key: a text, or texts; anybody who has the store may have written something else."""
    if isinstance(value, list):
        return "\n".join(each if isinstance(each, str) else "" for each in value)
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | float:
    return value if isinstance(value, int | float) and abs(value) <= NUMBER_MAX else 0


def _value(state: PageState, event: Fields, source: str) -> Any:
    """Return what a field gets; an empty value means none."""
    if source[0] == "=":
        return source[1:]
    if source[0] == "@":
        base, _, more = source.partition("+")
        return (state.offset if base == "@offset" else state.at) + _number(event.get(more))
    return not event.get(source[1:]) if source[0] == "!" else event.get(source)


def _change(state: PageState, operation: Operation, event: Fields, record: Fields) -> Fields:
    for name, source in operation["fields"].items():
        value = _value(state, event, source)
        if value:
            record[name] = value
        else:
            record.pop(name, None)
    return record


def _put(state: PageState, operation: Operation, event: Fields) -> None:
    table = operation["table"]
    state.tables[table][_key(table, operation["key"], event)] = _change(state, operation, event, {})


def _save(state: PageState, operation: Operation, event: Fields) -> None:
    table = operation["table"]
    _change(state, operation, event, state.tables[table].setdefault(_key(table, operation["key"], event), {}))


def _found(state: PageState, operation: Operation, event: Fields) -> Fields | None:
    table = operation["table"]
    return state.tables[table].get(_key(table, operation["key"], event))


def _set(state: PageState, operation: Operation, event: Fields) -> None:
    if (record := _found(state, operation, event)) is not None:
        _change(state, operation, event, record)


def _note(state: PageState, operation: Operation, event: Fields) -> None:
    given = {name: source for name, source in operation["fields"].items() if event.get(source)}
    _set(state, {**operation, "fields": given}, event)


def _add(state: PageState, operation: Operation, event: Fields) -> None:
    if (record := _found(state, operation, event)) is not None:
        for name, source in operation["fields"].items():
            if total := _number(record.get(name)) + _number(event.get(source)):
                record[name] = total


def _drop(state: PageState, operation: Operation, event: Fields) -> None:
    table = operation["table"]
    state.tables[table].pop(_key(table, operation["key"], event), None)


def _rekey(state: PageState, operation: Operation, event: Fields) -> None:
    table = operation["table"]
    record = state.tables[table].pop(_key(table, operation["key"], event), None)
    if record is not None:
        changed = _change(state, operation, event, record)
        state.tables[table][_key(table, operation["to"], event)] = changed


def _push(state: PageState, operation: Operation, event: Fields) -> None:
    events = state.recent[operation["list"]]
    events.append({**event, "offset": state.offset, "at": state.at})
    del events[: -operation["most"]]


_OPERATIONS: dict[str, Callable[[PageState, Operation, Fields], None]] = {
    "put": _put,
    "save": _save,
    "set": _set,
    "note": _note,
    "add": _add,
    "drop": _drop,
    "rekey": _rekey,
    "push": _push,
}
