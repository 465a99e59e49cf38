"""The types of fields in public requests: what may come from outside, checked where it is decoded.

Commands trust their callers; these types are why they may. The OpenAPI document shows the same limits.
"""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coord.core.limits import LEASE_MS_MAX
from coord.core.locks.resources import NAMED_RESOURCES_MAX
from coord.core.questions.answer import ANSWER_CHARS_MAX
from coord.core.questions.questions import OPTION_CHARS_MAX, OPTIONS_MAX
from coord.core.questions.questions import TEXT_CHARS_MAX as QUESTION_CHARS_MAX
from coord.sdk.validation import arguments
from coord.sdk.validation.arguments import DURATION_S_MAX, HOPS_MAX, LINE_CHARS_MAX, PRIORITY_MAX

NUMBER_MAX = 2**53 - 1
PAGE_MAX = 1000
LISTED_MAX = 1000
DURATION_MS_MAX = round(DURATION_S_MAX * 1000)
TEXT_CHARS_MAX = 4096
MANY_LINES = frozenset(("body", "text"))
"""The texts that may have several lines."""

_ID = "[A-Za-z0-9_][A-Za-z0-9_.:@+=,~#-]*"
Id = Annotated[str, Meta(pattern=f"^{_ID}$", max_length=128)]
OptionalId = Annotated[str, Meta(pattern=f"^({_ID})?$", max_length=128)]
Line = Annotated[str, Meta(max_length=LINE_CHARS_MAX)]
Subject = Annotated[str, Meta(max_length=arguments.SUBJECT_CHARS_MAX)]
Word = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$", max_length=32)]
Text = Annotated[str, Meta(max_length=arguments.BODY_BYTES_MAX)]
Kind = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_.-]*$", max_length=32)]
Page = Annotated[str, Meta(max_length=2048)]
Resource = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS_MAX)]
Resources = Annotated[tuple[Resource, ...], Meta(max_length=NAMED_RESOURCES_MAX)]
Milliseconds = Annotated[int, Meta(ge=0, le=DURATION_MS_MAX)]
Lease = Annotated[int, Meta(ge=1, le=LEASE_MS_MAX)]
Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
Priority = Annotated[int, Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX)]
Hops = Annotated[int, Meta(ge=0, lt=HOPS_MAX)]
Limit = Annotated[int, Meta(ge=1, le=PAGE_MAX)]
Parts = Annotated[int, Meta(ge=2, le=250)]
Count = Annotated[int, Meta(ge=0, le=10_000)]
Ids = Annotated[tuple[Id, ...], Meta(max_length=LISTED_MAX)]
Words = Annotated[tuple[Word, ...], Meta(max_length=100)]
Time = Annotated[int, Meta(ge=0, le=10**13 - 1)]
Capabilities = Annotated[dict[str, float], Meta(max_length=arguments.CAPABILITIES_MAX)]
Seconds = Annotated[float, Meta(gt=0, le=LEASE_MS_MAX / 1000)]

Question = Annotated[str, Meta(min_length=1, max_length=QUESTION_CHARS_MAX)]
Option = Annotated[str, Meta(min_length=1, max_length=OPTION_CHARS_MAX)]

BY_NAME: dict[str, Any] = {
    **dict.fromkeys(("session", "agent", "replaces"), OptionalId),
    **dict.fromkeys(("to", "name", "project", "task", "track", "id"), Id),
    **dict.fromkeys(
        ("reason", "note", "bin", "version", "model", "phase", "status", "reply_to", "role"), Line
    ),
    **dict.fromkeys(("ttl_ms", "wait_ms", "grace_ms", "progress_ms", "for_ms", "limited_ms"), Milliseconds),
    **dict.fromkeys(("types", "tracks", "roles", "has"), Words),
    **dict.fromkeys(("ids", "tasks", "exclude"), Ids),
    **dict.fromkeys(("before", "fence", "generation"), Number),
    **dict.fromkeys(("subject", "what", "label"), Subject),
    **dict.fromkeys(("mode", "profile"), Word),
    "after": Page,
    "answer": Annotated[str, Meta(min_length=1, max_length=ANSWER_CHARS_MAX)],
    "agents_max": Count,
    "before_ms": Time | None,
    "body": Text,
    "capabilities": Capabilities | None,
    "hops": Hops,
    "kind": Kind,
    "lease_ms": Lease,
    "limit": Limit,
    "options": Annotated[tuple[Option, ...], Meta(max_length=OPTIONS_MAX)],
    "parts": Parts,
    "priority": Priority,
    "resources": Resources,
    "since_ms": Time,
    "text": Question,
}
"""The type of a field by its name; a name has the same limits in every command."""


IN_QUERIES: dict[str, Any] = {
    **dict.fromkeys(("tasks", "exclude"), Annotated[tuple[Id, ...], Meta(max_length=64)]),
    "resources": Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=512)], ...], Meta(max_length=32)
    ],
}
"""The lists that may stand in a URL, which is shorter than a body."""


class PublicBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of what a client sends; an unknown field is an error, because it may be a misspelt one."""


class NewTaskBody(PublicBody, frozen=True, kw_only=True):
    """A task to add; `files` are paths from the top of the repository, or globs."""

    task_id: Id
    description: Annotated[str, Meta(max_length=2000)] = ""
    type: Word = ""
    track: Word | None = None
    role: Word = ""
    needs: Words = ()
    priority: Priority = 0
    files: Resources = ()
    depends_on: Ids = ()
    requirements: dict[str, Any] = {}
    deadline_ms: Annotated[int, Meta(ge=1, le=10**13 - 1)] | None = None
    estimate_s: Annotated[float, Meta(ge=0, le=DURATION_S_MAX)] = 0
    retries_max: Annotated[int, Meta(ge=0, le=100)] = 3


def public_type(name: str, kind: Any) -> Any:
    """Return the public type of a command's field; one without limits would be a hole."""
    optional = type(None) in getattr(kind, "__args__", ())
    if name in BY_NAME:
        return BY_NAME[name] | None if optional else BY_NAME[name]
    free = kind is bool or "dict[str, typing.Any]" in str(kind) or issubclass(kind, StrEnum)
    assert free, f"the field {name} has no limits"
    return kind


def checked(name: str, value: Any) -> Any:
    """Return a value whose texts are printable and whose free data is JSON within its limits."""
    if isinstance(value, str):
        if name in MANY_LINES:
            return arguments.body(value, broadcast=False)
        return arguments.one_line(name, value, TEXT_CHARS_MAX)
    if name == "capabilities":
        return arguments.capabilities(value)
    if isinstance(value, dict):
        return arguments.blob(value)
    if isinstance(value, tuple):
        return tuple(checked(name, each) for each in value)
    return value
