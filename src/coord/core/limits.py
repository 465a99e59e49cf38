"""A tenant's limits, and the counts they need.

A count is a record that is expected and put by whatever changes it, so a limit holds under any concurrency.
The tenant `local` (one person, one machine) is unlimited and keeps no counts.
"""

import msgspec

from coord.core import keys
from coord.core.commands import SetLimits
from coord.core.errors import Invalid
from coord.core.events import LimitsSet
from coord.core.record import Stored
from coord.core.types import ClaimReason
from coord.core.view import View

UNLIMITED_TENANT = "local"
LEASE_MS_MAX = 366 * 24 * 3600 * 1000
"""The longest lease anybody may ask for: a year is a mistake, not a lease."""
RECORD_RESULT_BYTES = 256 * 1024 - 64
"""The largest result that its own record holds; larger ones lie in chunks (`blob.py`)."""
RESULT_BYTES_MAX = 100 * 1024 * 1024
"""The largest result, whatever the tenant's limit says: it has to fit into the memory of a reader."""
DAY_MS = 24 * 3600 * 1000


class TenantLimits(Stored, frozen=True, tag=1):
    """What a tenant may use; the defaults are those of the second founding document."""

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
    "max_lease_duration_seconds": "what a dead client holds comes free in time",
    "min_lease_duration_seconds": "leases too short to keep only make work change hands",
    "max_generations_per_task": "a task that always fails is looked at by a person; history stays readable",
    "claim_history_retention_days": "how long auditors can ask",
    "max_result_size_bytes": "storage costs",
    "max_active_sessions": "fair use among tenants",
}


Refusal = tuple[ClaimReason, str]
"""Which limit stands against a claim, and a sentence with the numbers."""


class Count(Stored, frozen=True, tag=1):
    """How many there are."""

    n: int


def limits_of(view: View, tenant: str) -> TenantLimits | None:
    """Return the tenant's limits; None for the unlimited tenant."""
    if tenant == UNLIMITED_TENANT:
        return None
    return view.get(keys.LIMITS, TenantLimits) or PROFILES["default"]


def result_bytes_most(limits: TenantLimits | None) -> int:
    """Return how large a result may be."""
    return RESULT_BYTES_MAX if limits is None else min(limits.max_result_size_bytes, RESULT_BYTES_MAX)


def count_keys(session: str) -> list[str]:
    """Return what a claim of this session reads of limits and counts."""
    return [keys.LIMITS, keys.COUNT_CLAIMS, keys.COUNT_SESSIONS, keys.count_session(session)]


def retention_line(limits: TenantLimits | None, now: int) -> str:
    """Return the line of a record that is kept for the tenant's retention ("": for good)."""
    return "" if limits is None else keys.due(now + limits.claim_history_retention_days * DAY_MS)


def claim_refusal(limits: TenantLimits | None, lease_ms: int, generations: int) -> Refusal | None:
    """Return which limit stands against a claim by itself: its lease, or how often the task was claimed."""
    if limits is None:
        return None
    low, high = limits.min_lease_duration_seconds, limits.max_lease_duration_seconds
    if not low * 1000 <= lease_ms <= high * 1000:
        asked = f"a lease lasts {low} to {high} seconds here; {lease_ms / 1000:g} were asked for"
        return ClaimReason.DENIED_LIMIT_LEASE_DURATION, asked
    if generations >= limits.max_generations_per_task:
        return ClaimReason.DENIED_LIMIT_GENERATIONS, f"{generations} generations since the last reset"
    return None


def admit(view: View, limits: TenantLimits | None, session: str, leaving: str | None) -> Refusal | None:
    """Count one more claim of this session, or return why it is one too many (and count nothing).

    `leaving` is the session whose claim ends in the same change, if there is one; it is counted off here.
    """
    if limits is None:
        return None
    claims = _n(view, keys.COUNT_CLAIMS) - (leaving is not None)
    if claims >= limits.max_concurrent_claims:
        return ClaimReason.DENIED_LIMIT_CONCURRENT_CLAIMS, f"{claims} claims are active in this tenant"
    if leaving == session:
        return None  # one ends and one begins: the counts stay
    mine_key = keys.count_session(session)
    mine, sessions = _n(view, mine_key), 0
    if mine == 0:
        ends = leaving is not None and _n(view, keys.count_session(leaving)) == 1
        sessions = _n(view, keys.COUNT_SESSIONS) - ends
        if sessions >= limits.max_active_sessions:
            return ClaimReason.DENIED_LIMIT_ACTIVE_SESSIONS, f"{sessions} sessions hold claims in this tenant"
    if leaving is not None:
        count_off(view, leaving)
    view.put_late(keys.COUNT_CLAIMS, Count(claims + 1))
    view.put_late(mine_key, Count(mine + 1))
    if mine == 0:
        view.put_late(keys.COUNT_SESSIONS, Count(sessions + 1))
    return None


def count_off(view: View, session: str) -> None:
    """Count a claim of this session that ended."""
    claims, mine_key = _n(view, keys.COUNT_CLAIMS), keys.count_session(session)
    mine = _n(view, mine_key)
    assert mine > 0, f"session {session} ends a claim that was never counted"
    view.put_late(keys.COUNT_CLAIMS, Count(claims - 1))
    if mine > 1:
        view.put_late(mine_key, Count(mine - 1))
        return
    view.delete(mine_key)
    view.put_late(keys.COUNT_SESSIONS, Count(_n(view, keys.COUNT_SESSIONS) - 1))


def _n(view: View, key: str) -> int:
    count = view.get(key, Count)
    return count.n if count is not None else 0


def set_limits(view: View, command: SetLimits, _now: int) -> dict[str, int]:
    """Change the limits that are named; a profile replaces them all first."""
    current = view.get(keys.LIMITS, TenantLimits) or PROFILES["default"]
    base = PROFILES.get(command.profile, current)
    changed = msgspec.structs.replace(base, **command.limits, unknown=current.unknown)
    if changed.min_lease_duration_seconds > changed.max_lease_duration_seconds:
        raise Invalid("the shortest lease is longer than the longest", hint="set both in one call")
    shown = {name: getattr(changed, name) for name in RATIONALE}
    if changed != current:
        view.put(keys.LIMITS, changed)
        view.emit(LimitsSet(shown))
    return shown
