"""What the views of the page read beside its state: sentences, messages, diffs, and numbers over time."""

import asyncio
from typing import Annotated, Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec
from msgspec import Meta

from coord.core.errors import Invalid
from coord.core.page.sentences import SENTENCES
from coord.core.page.series import RULES
from coord.sdk.page.messages import PageMessage, page_messages
from coord.sdk.page.numbers import Numbers
from coord.transports.hub.api.endpoint import Asking, Endpoint, reading
from coord.transports.hub.api.fields import OptionalId, PublicBody, Time
from coord.transports.hub.api.recently_used import TENANTS_MAX, recently_used
from coord.transports.hub.api.this_repository import repository_of
from coord.transports.hub.identity import forbidden
from coord.transports.hub.stores import OpenStore

SENTENCES_PATH = "/v1/page/sentences"
MESSAGES_PATH = "/v1/page/messages"
DIFF_PATH = "/v1/page/diff"
NUMBERS_PATH = "/v1/page/numbers"
GITS_MAX = 2
"""How many diffs of a repository are made at the same time."""
PROJECTS_MAX = 16
"""How many numbers of a tenant are kept: those of everything, and those of some projects."""
BUCKETS_MAX = 400
Revision = Annotated[str, Meta(max_length=250)]


class MessagesQuery(PublicBody, frozen=True, kw_only=True):
    """Which messages: to or from a session, or one by its id; all without both."""

    session: OptionalId = ""
    id: OptionalId = ""


class DiffQuery(PublicBody, frozen=True, kw_only=True):
    """A branch and the one to compare it with, or a commit; each a branch or a whole commit hash."""

    branch: Revision = ""
    into: Revision = ""
    commit: Revision = ""


class DiffFile(msgspec.Struct, frozen=True):
    """A file, and how many lines were added and deleted; -1 for a binary one."""

    path: str
    added: int
    deleted: int


class DiffReply(msgspec.Struct, frozen=True):
    """The changes between two commits; `whole`: neither text nor files were cut."""

    base: str
    tip: str
    files: list[DiffFile]
    text: str
    whole: bool


class NumbersQuery(PublicBody, frozen=True, kw_only=True):
    """Since when, in milliseconds (0: since the log began), and in how many buckets at most.

    `until`: only the minutes or hours that had ended by then. The reply says after which offset to go on.
    """

    since: Time = 0
    until: Time | None = None
    buckets: Annotated[int, Meta(ge=1, le=BUCKETS_MAX)] = 60


class NumbersReply(msgspec.Struct, frozen=True):
    """Numbers in buckets of `width_ms`, from the entries up to `offset`; `rules` count later ones.

    `whole`: that was all of the log; if not, the next request goes on. `spans` count durations by class, and
    a bucket without any is empty. `levels` are averages.
    """

    offset: int
    whole: bool
    from_ms: int
    width_ms: int
    counts: dict[str, list[float]]
    spans: dict[str, list[list[int]]]
    levels: dict[str, list[float]]
    rules: dict[str, Any]


class _Counted(NamedTuple):
    """The numbers of a log; one request counts at a time, and the others wait without a thread of the hub."""

    numbers: Numbers
    counting: asyncio.Lock


_numbers: "WeakKeyDictionary[OpenStore, dict[str, dict[str, _Counted]]]" = WeakKeyDictionary()
_reading: "WeakKeyDictionary[OpenStore, WeakValueDictionary[str, asyncio.Lock]]" = WeakKeyDictionary()
"""Who reads the messages of a tenant: one at a time, because each reads every inbox."""
_gits: "WeakKeyDictionary[OpenStore, asyncio.Semaphore]" = WeakKeyDictionary()


async def show_sentences(_asking: Asking) -> Any:
    """Return a sentence for every event, with its fields in braces."""
    return SENTENCES


async def show_messages(asking: Asking) -> Any:
    """Return the messages that still exist, newest first; nothing counts as read."""
    query: MessagesQuery = asking.values
    token = asking.identity.token
    if token is not None and token.project:
        raise forbidden("messages belong to no project")
    session = asking.identity.check_session(query.session)
    log = asking.store.log(asking.tenant)
    reading_log = _reading.setdefault(asking.store, WeakValueDictionary())
    async with reading_log.setdefault(asking.tenant, asyncio.Lock()):
        return await asking.hub.stores.run(lambda: page_messages(log, session=session, message_id=query.id))


async def show_diff(asking: Asking) -> Any:
    """Return what a branch or a commit changes, as git shows it; at most 1 MB."""
    from coord.integrations.git.branch_diff import branch_diff, commit_diff
    from coord.integrations.git.run import Git

    query: DiffQuery = asking.values
    if bool(query.commit) == bool(query.branch and query.into):
        raise Invalid("name a branch and into, or a commit", hint="?branch=login&into=main or ?commit=HASH")
    git = Git(repository_of(asking).commondir, environ=asking.hub.environ)

    def make() -> Any:
        return commit_diff(git, query.commit) if query.commit else branch_diff(git, query.branch, query.into)

    async with _gits.setdefault(asking.store, asyncio.Semaphore(GITS_MAX)):
        found = await asking.hub.stores.run(make)
    files = [DiffFile(*each) for each in found.files]
    return DiffReply(found.base, found.tip, files, found.text, found.whole)


async def show_numbers(asking: Asking) -> Any:
    """Return what happened over time, in numbers."""
    query: NumbersQuery = asking.values
    numbers, counting = _numbers_of(asking)
    async with counting:
        found = await asking.hub.stores.run(numbers.read, query.since, query.buckets, query.until)
    series, offset, whole = found
    return NumbersReply(
        offset=offset,
        whole=whole,
        from_ms=series.from_ms,
        width_ms=series.width_ms,
        counts=series.counts,
        spans=series.spans,
        levels=series.levels,
        rules=RULES,
    )


def _numbers_of(asking: Asking) -> _Counted:
    token, tenant = asking.identity.token, asking.tenant
    project = token.project if token is not None else ""
    tenants = _numbers.setdefault(asking.store, {})
    known = recently_used(tenants, tenant, dict[str, _Counted], TENANTS_MAX)

    def make() -> _Counted:
        return _Counted(Numbers(asking.store.log(tenant), project), asyncio.Lock())

    return recently_used(known, project, make, PROJECTS_MAX)


def endpoints() -> list[Endpoint]:
    """Return the routes."""
    return [
        reading(SENTENCES_PATH, "showSentences", show_sentences, dict[str, str], tag="page"),
        reading(
            MESSAGES_PATH, "showMessages", show_messages, list[PageMessage], tag="page", query=MessagesQuery
        ),
        reading(DIFF_PATH, "showDiff", show_diff, DiffReply, tag="page", query=DiffQuery),
        reading(NUMBERS_PATH, "showNumbers", show_numbers, NumbersReply, tag="page", query=NumbersQuery),
    ]
