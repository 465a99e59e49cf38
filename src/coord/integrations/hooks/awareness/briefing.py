"""The brief that a hook gives to its agent, if something changed since the last one.

The end of a tool call says whether others changed something. Only then the brief is read, and it is given
only if its digest is not that of the last brief in this epoch. It holds what changed since: the agents that
the log names after the last brief, and what happened there. The first brief of an epoch is complete, and
after a compaction it has the rules, too.
"""

from typing import TYPE_CHECKING, NamedTuple

from coord.core.brief.commands import BeginEpoch, Brief, GetBrief, RecordBrief
from coord.core.errors import CoordError
from coord.core.locks.commands import EndToolCallReply
from coord.sdk.brief.activity import Recent, recent
from coord.sdk.brief.crew_update import crew_update

if TYPE_CHECKING:
    from coord.sdk.client.connection import Connection

BEGINS_AGAIN = ("compact", "clear", "resume")
"""The sources of a session whose context does not hold any more what it got before."""


CONTEXT_CHARS_MAX = 4_000
CONTEXT_BEGINS = "## SUBAGENT CONTEXT "
"""What a file has to begin with, so that no variable puts another file before an agent."""


class Briefing(NamedTuple):
    """The text for the agent, and the command that records it once it is printed."""

    text: str = ""
    receipt: tuple[RecordBrief, ...] = ()


NOTHING = Briefing()


def brief_of_news(connection: "Connection", ended: EndToolCallReply) -> Briefing:
    """Return what an agent has to know after a call with news; nothing if it knows it already."""
    try:
        brief: Brief = connection.call(GetBrief(connection.caller, health=False))
        if brief.digest == ended.briefed:
            return NOTHING
        if not brief.company and not ended.briefed:
            return NOTHING
        found = recent(connection.log, brief, ended.briefed_offset)
    except CoordError:  # the next call has the same news
        return NOTHING
    changed = found.sessions & {member.id for member in brief.crew}
    partly = bool(ended.briefed and changed and found.whole)
    text = crew_update(
        brief, found.events, only=changed if partly else None, rules=not ended.briefed and ended.epoch > 0
    )
    return _briefing(connection, brief, found, text)


def brief_at_start(connection: "Connection", source: str) -> Briefing:
    """Return what an agent has to know whose context begins; nothing if it is alone and holds nothing."""
    again = source in BEGINS_AGAIN
    try:
        if again:
            connection.call(BeginEpoch(connection.caller, source))
        brief: Brief = connection.call(GetBrief(connection.caller, health=False))
        if not brief.company and not (again and (brief.locks or brief.delegations)):
            return NOTHING
        found = recent(connection.log, brief)
    except CoordError:
        return NOTHING
    return _briefing(connection, brief, found, crew_update(brief, found.events, rules=again))


def worker_context(path: str) -> str:
    """Return the context that `coord work` wrote for its worker; "" if the file is not one of those."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(CONTEXT_CHARS_MAX)
    except (OSError, ValueError):
        return ""
    return text.strip() if text.startswith(CONTEXT_BEGINS) else ""


def _briefing(connection: "Connection", brief: Brief, found: Recent, text: str) -> Briefing:
    """Return a brief with its receipt; without company nothing is worth the next one, unless some comes."""
    digest = brief.digest if brief.company else ""
    receipt = RecordBrief(connection.caller, digest, found.head, len(text), brief.epoch)
    return Briefing(text, (receipt,))
