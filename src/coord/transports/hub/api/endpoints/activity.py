"""The routes of the activity ledger, with the paths and the field names of the founding document."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from coord.core.activity.actions import LEDGER_MAX
from coord.core.activity.settings import ledger_settings
from coord.core.errors import CoordError, Invalid
from coord.core.ids import short_repr
from coord.core.sessions.commands import ListSessions, SessionInfo
from coord.host.consent import read_consented
from coord.host.store_location import StoreLocation
from coord.sdk.reports.ledger import Ledger, LedgerEntry, LedgerSummary, ledger_filter
from coord.transports.hub.api.endpoint import Asking, Endpoint, role_of
from coord.transports.hub.api.endpoints.commands import caller_of
from coord.transports.hub.api.endpoints.events import is_visible
from coord.transports.hub.api.fields import OptionalId, PublicBody

logger = logging.getLogger("coord.hub")
ACTIVITY = "/api/coordination/activity"
SUMMARY = "/api/coordination/summary"
SHOWN = 50
Found = TypeVar("Found")
Since = Annotated[str, Meta(max_length=40, description="a time such as 2026-11-18T13:45:00Z; UTC by default")]


class ActivityQuery(PublicBody, frozen=True, kw_only=True, rename="camel"):
    """Which actions: of an agent (its session or its name), of a type, since a time."""

    agent_id: OptionalId = ""
    type: Annotated[str, Meta(max_length=32, description="such as file_edit or error")] = ""
    limit: Annotated[int, Meta(ge=1, le=LEDGER_MAX)] = SHOWN
    since: Since = ""


class SummaryQuery(PublicBody, frozen=True, kw_only=True):
    """Since when."""

    since: Since = ""


class ActionInfo(msgspec.Struct, frozen=True, rename="camel"):
    """An action of an agent, with the columns of the founding table `activity_log`."""

    id: int
    agent_id: str
    agent_role: str
    action_type: str
    summary: str
    details: dict[str, Any]
    timestamp: str


class ActivityReply(msgspec.Struct, frozen=True):
    """Actions, oldest first."""

    activity: list[ActionInfo]


class BusyFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file, and how many actions concern it."""

    file_path: str
    actions: int


class SummaryReply(msgspec.Struct, frozen=True, rename="camel"):
    """How many actions there are, by type and by agent, and the files that most of them concern."""

    total: int
    by_type: dict[str, int]
    by_agent: dict[str, dict[str, int]]
    busiest_files: list[BusyFile]
    first_at: str
    newest_at: str


async def list_activity(asking: Asking) -> Any:
    """List the newest actions of agents."""
    query: ActivityQuery = asking.values
    which = ledger_filter(query.agent_id, query.type, _time_ms(query.since))
    ledger = await _ledger(asking)
    found: list[LedgerEntry] = await asking.hub.stores.run(ledger.newest, which, query.limit)
    return ActivityReply([_action(each) for each in found])


async def summarize(asking: Asking) -> Any:
    """Count the actions of agents."""
    query: SummaryQuery = asking.values
    since_ms = _time_ms(query.since)
    ledger = await _ledger(asking)
    found: LedgerSummary = await asking.hub.stores.run(ledger.summary, since_ms)
    files = [BusyFile(path, actions) for path, actions in found.files.items()]
    times = (_text(found.first_ms), _text(found.newest_ms))
    return SummaryReply(found.actions, found.by_type, found.by_agent, files, *times)


async def _ledger(asking: Asking) -> Ledger:
    command = ListSessions(caller_of(asking, {}, ListSessions), everyone=True)
    sessions: list[SessionInfo] = await asking.ask(command)
    known = {session.session_id: session for session in sessions}
    entries: int = await asking.hub.stores.run(_entries, asking.store.location, asking.hub.stores.environ)
    log = asking.store.log(asking.tenant)
    return Ledger(log, known, entries=entries, is_visible=partial(is_visible, asking))


def _entries(location: StoreLocation, environ: Mapping[str, str]) -> int:
    """Return how many actions the ledger has; a wrong setting counts as none, and the hub logs why."""
    found = read_consented(location.repository, environ)
    try:
        return ledger_settings(found.tables, found.file).entries
    except CoordError as error:
        logger.warning("coord.toml: %s", error.message)
        return LEDGER_MAX


def _action(entry: LedgerEntry) -> ActionInfo:
    fields = (entry.agent_id, entry.agent_role, entry.action_type, entry.summary, entry.details)
    return ActionInfo(entry.id, *fields, _text(entry.at_ms))


def _text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds") if ms else ""


def _time_ms(text: str) -> int:
    """Return a time in any form that the founding documents use (CFL-28); without a zone it is in UTC."""
    if not text:
        return 0
    try:
        found = datetime.fromisoformat(text)
        return max(0, round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise Invalid(f"{short_repr(text)} is not a time", hint="use 2026-11-18T13:45:00Z") from error


def endpoints() -> list[Endpoint]:
    """Return the routes."""
    role = role_of(ListSessions)
    return [
        Endpoint(
            "GET",
            ACTIVITY,
            "listActivity",
            list_activity,
            summary=str(list_activity.__doc__),
            tag="founding",
            role=role,
            query=ActivityQuery,
            replies={200: ActivityReply},
        ),
        Endpoint(
            "GET",
            SUMMARY,
            "summarizeActivity",
            summarize,
            summary=str(summarize.__doc__),
            tag="founding",
            role=role,
            query=SummaryQuery,
            replies={200: SummaryReply},
        ),
    ]
