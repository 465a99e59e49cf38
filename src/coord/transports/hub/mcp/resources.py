"""Read resources: the brief, locks, the queue, what needs a person, and what happened after an offset."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from coord.core.errors import Invalid, NotFound
from coord.core.ids import short_repr
from coord.sdk.client.client import Client
from coord.transports.cli.output import fields_of, json_of
from coord.transports.hub.mcp.definitions import RESOURCES
from coord.transports.hub.mcp.tools import event_fields, happened

LOCKS_MAX = 500
TASKS_MAX = 100
EVENTS_MAX = 200
OFFSET_MAX = 2**53


def read_resource(client: Client, uri: str) -> list[dict[str, Any]]:
    """Return the contents of a resource."""
    fields = _fields(client, uri)
    return [{"uri": uri, "mimeType": "application/json", "text": json_of(fields)}]


def _fields(client: Client, uri: str) -> dict[str, Any]:
    if uri == "coord://brief":
        from coord.sdk.brief.brief import full_brief
        from coord.transports.cli.handlers.awareness.brief import brief_fields

        return brief_fields(full_brief(client))
    if uri == "coord://locks":
        page = next(iter(client.lock_pages(limit=LOCKS_MAX)))
        return {"locks": fields_of(page.locks), "more": bool(page.after)}
    if uri == "coord://tasks":
        return dict(fields_of(client.queue(limit=TASKS_MAX)))
    if uri == "coord://needs":
        return dict(fields_of(client.needs_you(client.project, limit=TASKS_MAX)))
    if uri.partition("?")[0] == "coord://events":
        found = happened(client, _after(uri), EVENTS_MAX)
        last = found[-1].offset if found else client.log.seen.offset
        return {"events": [event_fields(each) for each in found], "offset": last}
    known = ", ".join(each["uri"] for each in RESOURCES)
    raise NotFound(f"there is no resource {short_repr(uri)}", hint=f"read {known} or coord://events?after=N")


def _after(uri: str) -> int:
    try:
        given = dict(parse_qsl(urlsplit(uri).query, max_num_fields=10)).get("after", "0")
    except ValueError:
        given = ""
    number = int(given) if given.isascii() and given.isdecimal() and len(given) <= 16 else OFFSET_MAX
    if number >= OFFSET_MAX:
        raise Invalid(
            f"{short_repr(uri)} has no valid offset", hint="coord://events?after=0 begins at the first"
        )
    return number
