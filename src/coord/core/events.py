"""The base class of events, and the names that the founding documents use for some of them.

Each domain defines its events, in the past tense, in `<domain>/schema.py`.
"""

from importlib import import_module
from typing import Any

import msgspec

DEPTH_MAX = 32
"""How deep an event may nest: a deeper one could be read here and not be written elsewhere."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="event"):
    """The base of every event; the entry around it has the offset and the time."""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a command came from; every event that it causes says so (AUD-21, API-11).

    Over the network: the user, the id of the token, and the address. From a reaction: its name, and how many
    reactions one after another led to it.
    """

    user: str = ""
    token: str = ""
    address: str = ""
    reaction: str = ""
    hops: int = 0

    def as_field(self) -> bytes:
        """Return it as the last field of an event in JSON."""
        return b',"origin":' + msgspec.json.encode(self)


class ClockAccepted(Event, frozen=True, tag="clock.accepted"):
    """Somebody confirmed the clock although the log was ahead of it."""

    newest_ms: int


SEED_NAMES = {
    "task.claimed": "CLAIM_ACQUIRED",
    "task.renewed": "LEASE_RENEWED",
    "task.released": "CLAIM_RELEASED",
    "task.expired": "CLAIM_EXPIRED",
    "task.superseded": "CLAIM_LOST",
    "task.completed": "RESULT_SUBMITTED",
    "task.result_rejected": "RESULT_REJECTED",
    "lock.acquired": "lock_acquired",
    "lock.released": "lock_released",
    "lock.denied": "lock_denied",
    "message.sent": "message_sent",
    "message.sent_to_group": "group_message",
    "delegation.added": "delegated",
    "delegation.cancelled": "delegation_cancelled",
    "session.compacted": "agent:context_compacted",
    "file.edited": "file_edit",
    "file.read": "file_read",
    "question.answered": "decision_made",
    "alert.raised": "alert:new",
}
"""The names that the founding documents use for the same (CFL-23)."""

MODULES = (
    "coord.core.settings",
    "coord.core.messages.work_mode",
    "coord.core.limits",
    "coord.core.sessions.schema",
    "coord.core.activity.schema",
    "coord.core.tokens.schema",
    "coord.core.messages.schema",
    "coord.core.questions.schema",
    "coord.core.usage.schema",
    "coord.core.locks.schema",
    "coord.core.tasks.schema",
    "coord.core.git_log",
    "coord.core.reactions.schema",
    "coord.core.brief.schema",
    "coord.core.alerts.schema",
)
"""Where events are defined; imported only when somebody asks for all names."""


UNREADABLE = "unreadable"
"""The name of an event that cannot be read."""


def read_event(raw: bytes) -> dict[str, Any] | None:
    """Return the fields of a stored event; None if they are unreadable, for every reader alike."""
    try:
        fields = _decode(raw)
    except (ValueError, RecursionError):
        return None
    return fields if _is_flat(fields, DEPTH_MAX) else None


def read_or_name(raw: bytes) -> dict[str, Any]:
    """Return the fields of a stored event; what is unreadable is an event of that name, so that it counts."""
    return read_event(raw) or {"event": UNREADABLE}


def _is_flat(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    parts = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(each, levels - 1) for each in parts)


def every_event() -> list[type[Event]]:
    """Return every event, in the order in which the modules define them; bases are left out."""
    return [
        kind
        for module in (__name__, *MODULES)
        for kind in vars(import_module(module)).values()
        if isinstance(kind, type) and issubclass(kind, Event) and kind.__module__ == module and _tag(kind)
    ]


def event_names() -> frozenset[str]:
    """Return the name of every event."""
    return frozenset(map(_tag, every_event()))


def _tag(kind: type[Event]) -> str:
    tag = str(kind.__struct_config__.tag)
    return tag if "." in tag else ""
