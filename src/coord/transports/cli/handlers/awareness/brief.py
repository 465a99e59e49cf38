"""Print the brief of a session."""

from typing import Any

import msgspec

from coord.core.brief.delivery import estimated_tokens
from coord.sdk.brief.activity import RecentEvent
from coord.sdk.brief.brief import FullBrief, full_brief
from coord.sdk.client.client import Client
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, chosen_form, fields_of, timestamp


class BriefArgs(Args, frozen=True):
    """The arguments of `coord brief`."""

    lead: bool


def brief(client: Client, args: BriefArgs) -> Answer | str:
    """Print the CREW_UPDATE block, or with --json the same as data."""
    found = full_brief(client, lead=args.lead or None)
    return Answer(brief_fields(found)) if chosen_form() == "json" else f"{found.text}\n"


def brief_fields(found: FullBrief) -> dict[str, Any]:
    """Return a brief as plain data, with its text; agents have the names of the founding documents."""
    text = found.text
    return {
        **fields_of(found.brief),
        "crew": msgspec.to_builtins(found.brief.crew),
        "ended": msgspec.to_builtins(found.brief.ended),
        "activity": [_event_fields(each) for each in found.recent.events],
        "offset": found.recent.head,
        "text": text,
        "chars": len(text),
        "tokens": estimated_tokens(len(text)),
    }


def _event_fields(event: RecentEvent) -> dict[str, Any]:
    return {
        "offset": event.offset,
        "at": timestamp(event.at_ms),
        "session": event.session,
        "agent": event.agent,
        "what": event.what,
    }
