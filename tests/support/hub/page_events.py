"""One event of every kind that the page draws, with every field, so that no rule is left out."""

from typing import Any

import msgspec

from coord.core.events import Event, every_event
from coord.core.page.rules import RULES

SAMPLES = {
    "project": "p",
    "task": "t",
    "session": "ada",
    "resource": "file:a.py",
    "id": "w1",
    "agent": "claude",
}


def _sample(field: msgspec.structs.FieldInfo, number: int) -> Any:
    """Return a value of about the type of a field: its name says more than its annotation."""
    text = str(field.type)
    if field.encode_name in SAMPLES:
        return SAMPLES[field.encode_name]
    if "bool" in text:
        return True
    if "int" in text or "float" in text:
        return 1_000 + number
    if "tuple" in text or "list" in text:
        return ["x", f"{field.encode_name}-{number}"]
    if "dict" in text:
        return {"x": number}
    return f"{field.encode_name}-{number}"


def sample_event(kind: type[Event], number: int) -> dict[str, Any]:
    """Return an event with a value in each field."""
    fields = {each.encode_name: _sample(each, number) for each in msgspec.structs.fields(kind)}
    return {"event": str(kind.__struct_config__.tag), **fields}


EVERY_EVENT = [
    sample_event(kind, number)
    for number, kind in enumerate(every_event())
    if str(kind.__struct_config__.tag) in RULES
]

ADDED = """events => import("/static/core/store.js").then(async ({liveState, touch}) => {
  const {applyEntry} = await import("/static/core/state.js"), state = liveState(), {offset} = state;
  const at = Date.now(), {rules} = await (await fetch("/v1/page")).json();
  for (const event of events) applyEntry(state, rules, {offset: state.offset + 1, at, events: [event]});
  state.offset = offset;
  touch();
})"""
"""Gives a page events as the stream would, also those that no store takes.

Its offset stays that of the log, so that no view waits for a hub that knows more.
"""
