"""A tenant's limits, and the counts they need.

A count is a record that is expected and put by whatever changes it, so a limit holds under any concurrency.
The tenant `local` (one person, one machine) is unlimited and keeps no counts.
"""

from enum import StrEnum

import msgspec

from coord.core import keys
from coord.core.commands import Command, Reply
from coord.core.errors import Invalid, LimitReached
from coord.core.events import Event
from coord.core.records import Stored
from coord.core.transaction import Transaction


class LimitsInfo(Reply, frozen=True):
    """The limits of a tenant and their use; `profile` is empty if single limits were changed."""

    tenant: str
    limited: bool = True
    profile: str = ""
    limits: dict[str, int] = {}
    used: dict[str, int] = {}


class SetLimits(Command, frozen=True):
    """Change a tenant's limits; keep those that are not named."""

    rule = "coord.core.limits:set_limits"
    reply = dict[str, int]
    profile: str = ""
    limits: dict[str, int] = {}
    by: str = ""


class GetLimits(Command, frozen=True):
    """Return a tenant's limits and their use."""

    rule = "coord.core.limits:get_limits"
    reply = LimitsInfo
    reads_only = True
    tenant: str


class LimitsSet(Event, frozen=True, tag="limits.set"):
    """A tenant's limits were changed."""

    limits: dict[str, int]
    by: str = ""


UNLIMITED_TENANT = "local"
LEASE_MS_MAX = 366 * 24 * 3600 * 1000
"""The longest lease: a request for a year is a mistake."""
RETRIES_MAX = 3
"""How often a failed task is retried, unless the task says otherwise."""
RECORD_RESULT_BYTES = 256 * 1024 - 64
"""The largest result that fits into its record; larger ones are stored in chunks (`tasks/chunks.py`)."""
RESULT_BYTES_MAX = 100 * 1024 * 1024
"""The largest result of all tenants: it has to fit into the memory of a reader."""
DAY_MS = 24 * 3600 * 1000


class TenantLimits(Stored, frozen=True, tag=1):
    """What a tenant may use."""

    max_concurrent_claims: int = 100
    max_lease_duration_seconds: int = 3600
    min_lease_duration_seconds: int = 30
    max_generations_per_task: int = 100
    claim_history_retention_days: int = 90
    max_result_size_bytes: int = 10 * 1024 * 1024
    max_active_sessions: int = 50


PROFILES = {
    "default": TenantLimits(),
    "enterprise": TenantLimits(
        max_concurrent_claims=1000,
        max_lease_duration_seconds=7200,
        max_generations_per_task=1000,
        claim_history_retention_days=365,
        max_result_size_bytes=100 * 1024 * 1024,
        max_active_sessions=500,
    ),
}

RATIONALE = {
    "max_concurrent_claims": "a runaway client cannot claim everything",
    "max_lease_duration_seconds": "claims of a dead client expire in time",
    "min_lease_duration_seconds": "with a shorter lease tasks change hands for no reason",
    "max_generations_per_task": "a person looks at a task that always fails; the history stays readable",
    "claim_history_retention_days": "how long auditors can read the history",
    "max_result_size_bytes": "storage has a price",
    "max_active_sessions": "fair use among tenants",
}


class Limit(StrEnum):
    """The limits that a claim can exceed; its reason code is `DENIED_LIMIT_` and this name."""

    CONCURRENT_CLAIMS = "CONCURRENT_CLAIMS"
    ACTIVE_SESSIONS = "ACTIVE_SESSIONS"
    LEASE_DURATION = "LEASE_DURATION"
    GENERATIONS = "GENERATIONS"


Refusal = tuple[Limit, str]
"""The limit that a claim exceeds, and a sentence with the numbers."""


class Count(Stored, frozen=True, tag=1):
    """A counter; for a session also whether it is `here`: registered, and heard of recently."""

    n: int
    here: bool = False


LAST_CLAIM = Count(1)
"""The count of a session that holds one claim and is not registered."""


def limits_of(tx: Transaction, tenant: str) -> TenantLimits | None:
    """Return the tenant's limits; None for the unlimited tenant."""
    if tenant == UNLIMITED_TENANT:
        return None
    return tx.get(keys.LIMITS, TenantLimits) or PROFILES["default"]


def result_bytes_max(limits: TenantLimits | None) -> int:
    """Return the largest result that a tenant may submit."""
    return RESULT_BYTES_MAX if limits is None else min(limits.max_result_size_bytes, RESULT_BYTES_MAX)


def limit_keys(tenant: str) -> list[str]:
    """Return the key of a tenant's limits, if it has any."""
    return [] if tenant == UNLIMITED_TENANT else [keys.LIMITS]


def count_keys(session: str) -> list[str]:
    """Return the keys of limits and counts that a claim of this session reads."""
    return [keys.LIMITS, keys.COUNT_CLAIMS, keys.COUNT_SESSIONS, keys.count_session(session)]


def retention_index_key(limits: TenantLimits | None, now: int) -> str:
    """Return the index key of a record that is kept for the tenant's retention ("" keeps it for good)."""
    return "" if limits is None else keys.due(now + limits.claim_history_retention_days * DAY_MS)


def claim_refusal(limits: TenantLimits | None, lease_ms: int, generations: int) -> Refusal | None:
    """Return the limit that a claim exceeds by itself: its lease, or the number of generations."""
    if limits is None:
        return None
    low, high = limits.min_lease_duration_seconds, limits.max_lease_duration_seconds
    if not low * 1000 <= lease_ms <= high * 1000:
        asked = f"a lease lasts {low} to {high} seconds here; {lease_ms / 1000:g} were asked for"
        return Limit.LEASE_DURATION, asked
    if generations >= limits.max_generations_per_task:
        return Limit.GENERATIONS, f"{generations} generations since the last reset"
    return None


def too_many_sessions(tx: Transaction, limits: TenantLimits | None) -> bool:
    """Whether more sessions are counted than a lowered limit allows.

    Then a session whose claims have all expired must not pass for one that is active.
    """
    return limits is not None and _n(tx, keys.COUNT_SESSIONS) > limits.max_active_sessions


def admit(
    tx: Transaction, limits: TenantLimits | None, session: str, previous_holder: str | None
) -> Refusal | None:
    """Count one more claim of this session, or return the limit that it exceeds and count nothing.

    `previous_holder` is the session whose claim ends in the same change; its claim is counted off here.
    """
    if limits is None:
        return None
    claims = _n(tx, keys.COUNT_CLAIMS) - (previous_holder is not None)
    if claims >= limits.max_concurrent_claims:
        return Limit.CONCURRENT_CLAIMS, f"{claims} claims are active in this tenant"
    if previous_holder == session:
        return None  # one ends and one begins: the counts stay
    mine_key = keys.count_session(session)
    mine, sessions = tx.get(mine_key, Count), 0
    if mine is None:
        ends = (
            previous_holder is not None and tx.get(keys.count_session(previous_holder), Count) == LAST_CLAIM
        )
        sessions = _n(tx, keys.COUNT_SESSIONS) - ends
        if sessions >= limits.max_active_sessions:
            return Limit.ACTIVE_SESSIONS, f"{_active(sessions)} in this tenant"
    if previous_holder is not None:
        count_off(tx, previous_holder)
    tx.put_late(keys.COUNT_CLAIMS, Count(claims + 1))
    if mine is None:
        tx.put_late(mine_key, LAST_CLAIM)
        tx.put_late(keys.COUNT_SESSIONS, Count(sessions + 1))
    else:
        tx.put_late(mine_key, Count(mine.n + 1, here=mine.here))
    return None


def count_off(tx: Transaction, session: str) -> None:
    """Count a claim of this session that ended."""
    claims = _n(tx, keys.COUNT_CLAIMS)
    mine = tx.get(keys.count_session(session), Count)
    assert mine is not None, f"session {session} ends a claim that was never counted"
    assert mine.n > 0, f"session {session} ends a claim that was never counted"
    tx.put_late(keys.COUNT_CLAIMS, Count(claims - 1))
    _put_or_drop(tx, session, Count(mine.n - 1, here=mine.here))


def _put_or_drop(tx: Transaction, session: str, mine: Count) -> None:
    """Write the count of a session; delete that of a session without claims that is not here."""
    if mine.n or mine.here:
        tx.put_late(keys.count_session(session), mine)
        return
    tx.delete(keys.count_session(session))
    tx.put_late(keys.COUNT_SESSIONS, Count(_n(tx, keys.COUNT_SESSIONS) - 1))


def count_in(tx: Transaction, tenant: str, session: str, *, refuse: bool) -> None:
    """Count a session that is here; with `refuse`, refuse one that exceeds the limit."""
    limits = limits_of(tx, tenant or UNLIMITED_TENANT)
    if limits is None:
        return
    mine = tx.get(keys.count_session(session), Count)
    if mine is not None:
        if not mine.here:
            tx.put_late(keys.count_session(session), Count(mine.n, here=True))
        return
    sessions = _n(tx, keys.COUNT_SESSIONS)
    if refuse and sessions >= limits.max_active_sessions:
        raise LimitReached(
            f"{_active(sessions)} in this tenant, and no more are allowed",
            hint="end one (coord dereg), or raise the limit: coord limits set max_active_sessions=N",
        )
    tx.put_late(keys.count_session(session), Count(0, here=True))
    tx.put_late(keys.COUNT_SESSIONS, Count(sessions + 1))


def count_out(tx: Transaction, session: str) -> None:
    """Stop counting a session that ended or fell silent, except for its claims."""
    mine = tx.get(keys.count_session(session), Count)
    if mine is not None and mine.here:
        _put_or_drop(tx, session, Count(mine.n))


def _active(sessions: int) -> str:
    return "1 session is active" if sessions == 1 else f"{sessions} sessions are active"


def _n(tx: Transaction, key: str) -> int:
    count = tx.get(key, Count)
    return count.n if count is not None else 0


def set_limits(tx: Transaction, command: SetLimits, _now: int) -> dict[str, int]:
    """Change the named limits; a profile first replaces all of them."""
    current = tx.get(keys.LIMITS, TenantLimits) or PROFILES["default"]
    base = PROFILES.get(command.profile, current)
    changed = msgspec.structs.replace(base, **command.limits, unknown=current.unknown)
    if changed.min_lease_duration_seconds > changed.max_lease_duration_seconds:
        raise Invalid("the shortest lease is longer than the longest", hint="set both in one call")
    shown = {name: getattr(changed, name) for name in RATIONALE}
    if changed != current:
        tx.put(keys.LIMITS, changed)
        tx.emit(LimitsSet(shown, command.by))
    return shown


def get_limits(tx: Transaction, command: GetLimits, _now: int) -> LimitsInfo:
    """Return the limits of a tenant, their profile and their use."""
    limits = limits_of(tx, command.tenant)
    if limits is None:
        return LimitsInfo(command.tenant, limited=False)
    shown = {name: getattr(limits, name) for name in RATIONALE}
    known = {
        profile: {name: getattr(numbers, name) for name in RATIONALE} for profile, numbers in PROFILES.items()
    }
    profile = next((name for name, numbers in known.items() if numbers == shown), "")
    used = {
        "max_concurrent_claims": _n(tx, keys.COUNT_CLAIMS),
        "max_active_sessions": _n(tx, keys.COUNT_SESSIONS),
    }
    return LimitsInfo(command.tenant, profile=profile, limits=shown, used=used)
