"""`GET /v1/page`: what the page draws, now or at an earlier offset, and the rules for what comes after it."""

import asyncio
import time
from pathlib import PurePath
from typing import Annotated, Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Meta

from coord.core.errors import Invalid
from coord.core.page.notices import NOTICES, Notice
from coord.core.page.rules import DELIVERED
from coord.core.page.state import Fields, PageState, Table
from coord.core.tokens.schema import Role
from coord.host.store_location import StoreLocation
from coord.sdk.page.kept_states import KeptStates, kept_states
from coord.sdk.page.past import PastStates
from coord.sdk.page.snapshot import take_snapshot
from coord.sdk.remote.wire import VERSION
from coord.stores.contract import Store
from coord.transports.hub.api.endpoint import Asking, Endpoint, reading
from coord.transports.hub.api.fields import NUMBER_MAX, PublicBody
from coord.transports.hub.api.recently_used import TENANTS_MAX, recently_used
from coord.transports.hub.api.this_repository import sees_files
from coord.transports.hub.page.assets import page_id
from coord.transports.hub.stores import OpenStore

PATH = "/v1/page"
SHARED_S = 1.0
"""How long a snapshot serves whoever asks next: what came since then is in the stream."""
Offset = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]


class PageQuery(PublicBody, frozen=True, kw_only=True):
    """Which state: after the entry `at`, or at a `time` in milliseconds; the present one without both.

    `nearest`: if the state at that offset is not known, the one that is next to it.
    """

    at: Offset | None = None
    time: Offset | None = None
    nearest: bool = False


class Reader(msgspec.Struct, frozen=True):
    """Who reads the page: this decides which acts it offers; `expires_ms` is 0 if the token never expires.

    Events that the reader causes name the `token` by its id, and messages to the reader go to `session`.
    """

    user: str
    role: Role
    project: str
    label: str
    expires_ms: int
    token: str
    session: str


class HubInfo(msgspec.Struct, frozen=True):
    """Which hub, and what it serves; `page` names the files of its page.

    `files`: this reader may see what reads the files of the repository.
    """

    version: str
    repository: str
    store: str
    tenant: str
    files: bool
    page: str


class PageReply(msgspec.Struct, frozen=True):
    """The state after the entry at `offset`, written `at` that time.

    `rules` say what later entries change, and `notices` which of them a reader is notified of.
    """

    offset: int
    at: int
    now_ms: int
    first_offset: int
    tables: dict[str, Table]
    recent: dict[str, list[Fields]]
    rules: dict[str, Any]
    notices: dict[str, tuple[Notice, ...]]
    who: Reader
    hub: HubInfo


class Look(NamedTuple):
    """A state, and the oldest offset whose state was known then."""

    state: PageState
    first: int
    at_s: float


class LogPages:
    """The states of one log for all who look at it."""

    def __init__(self, log: Store, kept: KeptStates) -> None:
        self._past = PastStates(log, kept)
        self._log = log
        self._taking = asyncio.Lock()
        self._reading = asyncio.Lock()
        """A look at the past may take seconds; nobody who looks at the present waits for it."""
        self._newest: Look | None = None

    async def newest(self, asking: Asking) -> Look:
        """Return a state that is at most a second old; many who reconnect together cost one look."""
        async with self._taking:
            found = self._newest
            if found is None or time.monotonic() - found.at_s > SHARED_S:
                found = self._newest = await asking.hub.stores.run(self._take)
                asyncio.get_running_loop().call_later(SHARED_S, self._forget, found)
            return found

    async def at(self, asking: Asking, query: PageQuery) -> Look:
        """Return an earlier state."""
        async with self._reading:
            found: Look = await asking.hub.stores.run(self._at, query)
            return found

    def _take(self) -> Look:
        at_s = time.monotonic()
        return Look(take_snapshot(self._log), self._past.first(), at_s)

    def _forget(self, look: Look) -> None:
        """Drop a state that serves nobody any more: it may be large."""
        if self._newest is look:
            self._newest = None

    def _at(self, query: PageQuery) -> Look:
        offset = query.at if query.at is not None else self._past.offset_at(query.time or 0)
        state = self._past.at(offset, nearest=query.nearest)
        return Look(state, self._past.first(), time.monotonic())


_pages: "WeakKeyDictionary[OpenStore, dict[str, LogPages]]" = WeakKeyDictionary()


def pages_of(asking: Asking) -> LogPages:
    """Return the states of the log that a request means."""
    store, tenant = asking.store, asking.tenant

    def make() -> LogPages:
        return LogPages(store.log(tenant), kept_states(store.location, tenant))

    return recently_used(_pages.setdefault(store, {}), tenant, make, TENANTS_MAX)


async def show_page(asking: Asking) -> Any:
    """Return what the page draws, now or at an earlier offset."""
    query: PageQuery = asking.values
    if query.at is not None and query.time is not None:
        raise Invalid("an offset and a time name two states", hint="name one of them")
    pages = pages_of(asking)
    is_past = query.at is not None or query.time is not None
    state, first, _ = await (pages.at(asking, query) if is_past else pages.newest(asking))
    token, location = asking.identity.token, asking.store.location
    project = token.project if token is not None else ""
    return PageReply(
        offset=state.offset,
        at=state.at,
        now_ms=asking.store.log(asking.tenant).now(),
        first_offset=first,
        tables=visible_tables(state, project),
        recent=visible_recent(state, project),
        rules=DELIVERED,
        notices=NOTICES,
        who=_reader(asking),
        hub=HubInfo(
            VERSION,
            _name(location),
            location.url.partition(":")[0],
            asking.tenant,
            sees_files(asking),
            page_id(),
        ),
    )


def _reader(asking: Asking) -> Reader:
    identity, token = asking.identity, asking.identity.token
    if token is None:
        return Reader(identity.user, identity.role, "", "", 0, "", "")
    return Reader(
        identity.user,
        identity.role,
        token.project,
        token.label,
        token.expires_ms,
        token.id,
        identity.person_session,
    )


def _name(location: StoreLocation) -> str:
    """Return how people call a repository: its folder, or the id of one that is not on this machine."""
    if location.repository is None:
        return location.repository_id
    return PurePath(location.repository.root or location.repository.commondir).name


def visible_tables(state: PageState, project: str) -> dict[str, Table]:
    """Return what a reader may see: one who is limited to a project gets what states it, as in the stream.

    Who holds up all agents is shown to everybody.
    """
    if not project:
        return state.tables
    return {
        name: rows
        if name == "held"
        else {key: row for key, row in rows.items() if row.get("project") == project}
        for name, rows in state.tables.items()
    }


def visible_recent(state: PageState, project: str) -> dict[str, list[Fields]]:
    """Return the recent events that a reader may see."""
    if not project:
        return state.recent
    return {
        name: [event for event in events if event.get("project") == project]
        for name, events in state.recent.items()
    }


def endpoints() -> list[Endpoint]:
    """Return the route."""
    return [reading(PATH, "showPage", show_page, PageReply, tag="events", query=PageQuery)]
