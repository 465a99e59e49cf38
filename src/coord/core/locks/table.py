"""The lock table of a request: everything the request depends on, loaded once.

`load_table` reads the store, and the other functions decide on what it returned. A table is a snapshot: after
a rule has ended or granted a lock, it loads the table again.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from coord.core import keys
from coord.core.locks.locks import (
    LockAt,
    Requester,
    compatible,
    conflicting,
    ended_by_time,
    overlapping_locks,
    requester_of,
)
from coord.core.locks.resources import Resource, parse_resource
from coord.core.locks.schema import PROFILES, Guard, Lock, LockRequest, Mode, WaitState
from coord.core.sessions.schema import Session
from coord.core.settings import STOPPED, HeldWork, held_work
from coord.core.transaction import Transaction


class RequestAt(NamedTuple):
    """A request with its key."""

    key: str
    request: LockRequest


class WantedLock(msgspec.Struct, frozen=True):
    """A lock that the session would end up with, and every lock that overlaps it."""

    resource: Resource
    mode: Mode
    overlapping: list[LockAt]


class LockTable(msgspec.Struct, frozen=True):
    """Everything a request for locks depends on."""

    request: LockRequest
    requester: Requester
    own: dict[str, Lock]
    """The locks its session has on what it asks for, by resource."""
    wanted: list[WantedLock]
    waiting: Sequence[RequestAt]
    """The wait queue, in order; empty if nobody waits in the spaces of the request."""
    held_up: HeldWork | None = None
    """Who has stopped all agents, if the request is one of them: it gets nothing until they go on."""


def load_table(
    tx: Transaction,
    request: LockRequest,
    now: int,
    *,
    waiting: Sequence[RequestAt] | None = None,
    also: Iterable[str] = (),
) -> LockTable:
    """Return the table of a request; `also` are keys to load in the same question.

    A caller that has read the wait queue, or does not need it, passes it as `waiting`.
    """
    prefetch_locks(tx, [request], *also, guards=waiting is None)
    requester = requester_of(tx, request.session)
    own = _own_locks(tx, request)
    wanted = [
        WantedLock(resource, mode, list(overlapping_locks(tx, resource)))
        for resource, mode in resulting_locks(request, own, now)
    ]
    stopped = None
    if waiting is None:
        waiting, stopped = waiters(tx, resources_of(request)), stop_of(tx)
        if stopped is not None and is_persons(tx, request):  # a person passes those who are held up
            waiting, stopped = of_people(tx, waiting), None
    return LockTable(request, requester, own, wanted, waiting, stopped)


def stop_of(tx: Transaction) -> HeldWork | None:
    """Return who has stopped all agents; None if they get locks."""
    found = held_work(tx)
    return found if found is not None and found.mode == STOPPED else None


def of_people(tx: Transaction, waiting: Sequence[RequestAt]) -> list[RequestAt]:
    """Return the requests of people, whom no stop holds up."""
    tx.prefetch(*(keys.session(each.request.session) for each in waiting))
    return [each for each in waiting if is_persons(tx, each.request)]


def is_persons(tx: Transaction, request: LockRequest) -> bool:
    """Whether a person requests a lock."""
    session = tx.get(keys.session(request.session), Session)
    return session is not None and session.person


def _own_locks(tx: Transaction, request: LockRequest) -> dict[str, Lock]:
    found: dict[str, Lock] = {}
    for resource in resources_of(request):
        lock = tx.get(resource.lock_key(request.session), Lock)
        if lock is not None:
            found[resource.text] = lock
    return found


def blocking_among(tx: Transaction, request: LockRequest, locks_at: list[LockAt], now: int) -> list[LockAt]:
    """Return those of the given locks that block a request now; a listing has no others on its page."""
    requester = requester_of(tx, request.session)
    found: dict[str, LockAt] = {}
    for resource, mode in resulting_locks(request, _own_locks(tx, request), now):
        ranges = tuple(resource.ranges)  # few locks have such a key, and the others need no closer look
        near = [each for each in locks_at if each.key.startswith(ranges) and resource.overlaps(each.resource)]
        found.update((each.key, each) for each in conflicting(requester, mode, near, now))
    return list(found.values())


def prefetch_locks(
    tx: Transaction, requests: Iterable[LockRequest], *others: str, guards: bool = True
) -> None:
    """Prefetch what tables of these requests read, so that the rule is not restarted once per resource."""
    wanted = [(request.session, resource) for request in requests for resource in resources_of(request)]
    tx.prefetch(
        *(sorted({resource.guard for _, resource in wanted}) if guards else ()),
        *(resource.lock_key(session) for session, resource in wanted),
        *others,
        prefixes=dict.fromkeys(prefix for _, resource in wanted for prefix in resource.ranges),
    )


def waiters(tx: Transaction, resources: Iterable[Resource]) -> list[RequestAt]:
    """Return the wait queue in order; empty if nobody waits in the spaces of these resources."""
    guards = [tx.get(key, Guard) for key in sorted({resource.guard for resource in resources})]
    if not any(guard.waiters for guard in guards if guard is not None):
        return []
    found: list[RequestAt] = []
    for page in tx.pages(keys.WAIT_PREFIX):
        for entry in page:
            request = tx.get(entry.key, LockRequest)
            if request is not None and request.state is WaitState.WAITING:
                found.append(RequestAt(entry.key, request))
    return found


def resulting_locks(request: LockRequest, own: dict[str, Lock], now: int) -> list[tuple[Resource, Mode]]:
    """Return the locks that the session would end up with.

    A session has at most one lock per resource, so a request is merged with the lock that the session has.
    The stronger mode and the wider scope win, and conflicts are checked against the result.
    """
    found = []
    for resource in resources_of(request):
        lock = own.get(resource.text)
        live = lock if lock is not None and ended_by_time(lock, now) is None else None
        found.append(_merge(live, resource, mode_of(request, resource)))
    return found


def _merge(own: Lock | None, resource: Resource, mode: Mode) -> tuple[Resource, Mode]:
    if own is None or not exceeds(own, resource, mode):
        return resource, mode
    both = msgspec.structs.replace(resource, exact=resource.exact and own.exact)
    return both, mode if own.mode is Mode.READ else own.mode


def exceeds(own: Lock, resource: Resource, mode: Mode) -> bool:
    """Whether a request asks for more than the session has: to write, or for paths below a single file."""
    return (own.mode is Mode.READ and mode is not Mode.READ) or widens(own, resource)


def widens(own: Lock, resource: Resource) -> bool:
    """Whether a request is for a path and the session has only the single file."""
    return own.exact and not resource.exact


def blocking_locks(table: LockTable, now: int) -> list[LockAt]:
    """Return the locks that block a request now."""
    found: dict[str, LockAt] = {}
    for wanted in table.wanted:
        for lock_at in conflicting(table.requester, wanted.mode, wanted.overlapping, now):
            found[lock_at.key] = lock_at
    return list(found.values())


def requests_ahead(table: LockTable, key: str) -> list[LockRequest]:
    """Return the conflicting requests that come before this position in the wait queue."""
    return [
        other
        for other_key, other in table.waiting
        if other_key < key and conflicts_with(table.request, other)
    ]


def has_all(table: LockTable, now: int) -> bool:
    """Whether the session has everything it asks for, perhaps in a weaker mode."""
    for resource in resources_of(table.request):
        lock = table.own.get(resource.text)
        if lock is None or ended_by_time(lock, now) is not None or widens(lock, resource):
            return False
    return True


def resources_of(request: LockRequest) -> list[Resource]:
    """Return the resources of a request."""
    return list(parsed(request.resources, request.repository, request.exact, request.nested))


@lru_cache(maxsize=1024)
def parsed(
    texts: tuple[str, ...], repository: str, exact: tuple[str, ...], nested: bool = False
) -> tuple[Resource, ...]:
    """Return the resources that texts name; those in `exact` are single files."""
    return tuple(each for text in texts for each in parse_resource(text, repository, text in exact, nested))


def mode_of(request: LockRequest, resource: Resource) -> Mode:
    """Return the mode in which a request asks for a resource."""
    return request.mode or PROFILES[request.profile or resource.kind].mode


def conflicts_with(one: LockRequest, other: LockRequest) -> bool:
    """Whether two requests exclude each other."""
    return one.session != other.session and _exclude(_identity(one), _identity(other))


def _identity(request: LockRequest) -> tuple[Any, ...]:
    named = (request.resources, request.repository, request.exact, request.nested)
    return named, request.mode, request.profile


@lru_cache(maxsize=16_384)  # a long queue is compared often, and one comparison may be 64 × 64 resources
def _exclude(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether the resources of two requests overlap, unless both only read."""
    mine, theirs = (
        [(resource, mode or PROFILES[profile or resource.kind].mode) for resource in parsed(*named)]
        for named, mode, profile in (one, other)
    )
    return any(a.overlaps(b) and not compatible(x, y) for a, x in mine for b, y in theirs)
