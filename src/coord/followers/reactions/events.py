"""Which events a reaction means, and how the fields of an event get into texts and arguments.

Fields come from agents. In a text they are quoted for its reader; in a command they are whole arguments, and
never options.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import msgspec

from coord.core.errors import Invalid
from coord.core.events import SEED_NAMES, event_names
from coord.core.ids import short_repr
from coord.core.messages.quoting import visible
from coord.core.reactions.schema import hops_of
from coord.sdk.log_reader import LoggedEvent

HOPS_MAX = 3
"""An event that this number of reactions one after another caused starts no further one."""
OWN = "reaction."
"""Events about reactions: only a pattern that begins like this means them."""
FIELD_CHARS_MAX = 500
ARGUMENT_CHARS_MAX = 4096
FOUNDING: dict[str, tuple[str, dict[str, Any]]] = {
    "lock:expired": ("lock.released", {"end_reason": ["expired", "lapsed"]}),
    "agent:crashed": ("session.ended", {"end_reason": "dead"}),
    "commit": ("git.committed", {}),
    "task_completed": ("task.completed", {}),
    **{seed: (name, {}) for name, seed in SEED_NAMES.items()},
}
"""The names of the founding documents: the event, and which fields it has then (EVT-5, EVT-6, EVT-10)."""
LATER = frozenset(("agent:auto_restarted", "agent:restart_limit"))
"""Founding names of events that this version may not have."""
_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*)\}")


class Position(NamedTuple):
    """The place of an event in the log: the offset of its entry, and its number there."""

    offset: int
    number: int


class Delivery(NamedTuple):
    """An event on its way to a reaction."""

    position: Position
    event: str
    at_ms: int
    details: dict[str, Any]
    hops: int = 0
    """How many reactions had led to the event."""
    again: bool = False
    """Whether a person has asked to try it again."""

    def id_for(self, reaction: str) -> str:
        """Return the id by which a receiver recognises a repetition."""
        return f"{self.position.offset}.{self.position.number}.{reaction}"


class Pattern(msgspec.Struct, frozen=True):
    """Events by name, with the fields that they must have; a value that is a list means one of them."""

    names: tuple[str, ...]
    where: dict[str, Any] = {}

    def matches(self, event: str, details: Mapping[str, Any]) -> bool:
        """Whether an event is meant."""
        if not any(_name_matches(event, name) for name in self.names):
            return False
        return all(_field_matches(look_up(details, name), value) for name, value in self.where.items())


def delivery_of(logged: LoggedEvent, index: int) -> Delivery:
    """Return an event of the log as a delivery."""
    position = Position(logged.offset, index)
    return Delivery(position, logged.event, logged.at_ms, logged.details, hops_of(logged.details))


def read_pattern(given: str | list[str], where: Mapping[str, Any]) -> Pattern:
    """Return the pattern that a table names, or say what is wrong with it."""
    names: list[str] = []
    fields = dict(where)
    for text in [given] if isinstance(given, str) else given:
        name, more = FOUNDING.get(text, (text, {}))
        _check_name(text, name)
        names.append(name)
        if more and not isinstance(given, str):
            raise Invalid(
                f"{text} means only some events, so it stands alone", hint="write two [[on]] tables"
            )
        fields = {**more, **fields}
    if not names:
        raise Invalid("event is empty", hint='event = "task.completed"')
    for name, value in fields.items():
        if not isinstance(value, str | int | float | bool | list):
            raise Invalid(
                f"where.{name} is {short_repr(value)}", hint="use a text, a number or a list of them"
            )
    return Pattern(tuple(names), fields)


def _check_name(text: str, name: str) -> None:
    known = event_names()
    if any(_name_matches(each, name) for each in known):
        return
    if text in LATER:
        raise Invalid(f"this version of coord has no event {text}", hint="upgrade coord, or remove the table")
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    near = get_close_matches(text, sorted({*known, *FOUNDING}), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "docs/reference/events.md lists all"
    raise Invalid(f"no event is called {short_repr(text)}", hint=hint)


def _name_matches(event: str, pattern: str) -> bool:
    if pattern == "*":
        return not event.startswith(OWN)  # else a failure would cause itself
    if pattern.endswith(".*"):
        return event.startswith(pattern[:-1])
    return event == pattern


def _field_matches(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_field_matches(found, each) for each in wanted)
    if isinstance(found, list):
        return any(_field_matches(each, wanted) for each in found)
    if isinstance(wanted, str) and isinstance(found, str):
        return fnmatchcase(found, wanted) if "*" in wanted else found == wanted
    return type(found) is type(wanted) and found == wanted


def look_up(details: Mapping[str, Any], name: str) -> Any:
    """Return a field, `a.b` for one inside another; an absent field has its default, so it is empty."""
    found: Any = details
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return "" if found is None else found


def fields_of(delivery: Delivery, reaction: str) -> dict[str, Any]:
    """Return what placeholders can name: the fields of the event, and those of the delivery."""
    offset, at = delivery.position.offset, delivery.at_ms
    own = {"event": delivery.event, "offset": offset, "at_ms": at, "id": delivery.id_for(reaction)}
    return {**delivery.details, **own, "reaction": reaction}


def fill_text(template: str, fields: Mapping[str, Any]) -> str:
    """Return a text with its placeholders replaced; no value can begin a line or control a terminal."""
    return _PLACEHOLDER.sub(lambda found: _shown(look_up(fields, found[1])), template)


def fill_arguments(templates: tuple[str, ...], fields: Mapping[str, Any]) -> list[str]:
    """Return arguments with their placeholders replaced; a value is one argument, and never an option."""
    return [_argument(each, fields) for each in templates]


def check_arguments(templates: list[str]) -> None:
    """Refuse a placeholder that is only a part of an argument, or the program itself."""
    for number, text in enumerate(templates):
        if "\0" in text or (not number and not text):
            raise Invalid(f"{short_repr(text)} is no argument", hint='run = ["npm", "test"]')
        if (found := _PLACEHOLDER.search(text)) and (found[0] != text or not number):
            raise Invalid(
                f"{short_repr(text)} contains {found[0]}",
                hint="a placeholder is a whole argument, and not the program",
            )


def _argument(template: str, fields: Mapping[str, Any]) -> str:
    if not (found := _PLACEHOLDER.fullmatch(template)):
        return template
    value = look_up(fields, found[1])
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if not text or text.startswith("-") or "\0" in text or len(text) > ARGUMENT_CHARS_MAX:
        raise Invalid(
            f"{template} is {short_repr(text)}, which is no safe argument",
            hint="the command can read the environment variable COORD_EVENT",
        )
    return text


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return visible(text if len(text) <= FIELD_CHARS_MAX else f"{text[:FIELD_CHARS_MAX]}…")
