"""The brief of a session with its recent activity: data and text in one."""

import msgspec

from coord.core.brief.commands import Brief, GetBrief
from coord.sdk.brief.activity import Recent, recent
from coord.sdk.brief.crew_update import crew_update
from coord.sdk.client.connection import Connection


class FullBrief(msgspec.Struct, frozen=True):
    """What a session has to know, and what happened lately."""

    brief: Brief
    recent: Recent

    @property
    def text(self) -> str:
        """The CREW_UPDATE block."""
        return crew_update(self.brief, self.recent.events)


def full_brief(connection: Connection, *, lead: bool | None = None) -> FullBrief:
    """Return the brief of the caller; without activity if it may see only a part of the store."""
    brief: Brief = connection.call(GetBrief(connection.caller, lead))
    if not getattr(connection, "sees_events", True):
        return FullBrief(brief, Recent([], 0))
    return FullBrief(brief, recent(connection.log, brief))
