"""Record refused claims, renewals, releases and submissions: who, why, when and how often.

A refusal is an ordinary change whose reply says no. The same refusal of one session (task, generation,
operation and reason) within `REFUSAL_QUIET_MS` writes nothing, so that a client that polls costs one small
commit a minute. `times` therefore counts the recorded ones. Two reasons never share a record.
"""

from collections.abc import Sequence

import msgspec

from coord.core import keys
from coord.core.limits import DAY_MS, limit_keys, limits_of, retention_index_key
from coord.core.sessions.schema import Session
from coord.core.tasks.schema import Rejection, ResultRejected, TaskRefused
from coord.core.tasks.types import Operation
from coord.core.transaction import Transaction

REFUSAL_QUIET_MS = 60_000
"""A refusal that is repeated within this time is not recorded again."""
REFUSAL_KEPT_MS = 90 * DAY_MS
"""How long an unlimited tenant keeps refusals other than rejected submissions, which stay with the task."""


class Refusal(msgspec.Struct, frozen=True):
    """A refused operation of a session; an empty agent or user is looked up in the session's record."""

    project: str
    task: str
    generation: int
    session: str
    operation: Operation
    reason: str
    agent: str = ""
    user: str = ""
    current_generation: int = 0
    result_bytes: int = 0
    work_lost: bool = False
    worked_ms: int = 0


def refusal_key(refusal: Refusal) -> str:
    """Return the key of the record of a refusal."""
    reason = f"{refusal.operation}:{refusal.reason}"
    return keys.rejected(refusal.project, refusal.task, refusal.generation, refusal.session, reason)


def record_refusals(tx: Transaction, tenant: str, refusals: Sequence[Refusal], now: int) -> None:
    """Record each refusal, unless the same one was recorded within the last minute."""
    sessions = {keys.session(each.session) for each in refusals if not (each.agent and each.user)}
    tx.prefetch(*map(refusal_key, refusals), *sessions, *limit_keys(tenant))
    for refusal in refusals:
        _record(tx, tenant, refusal, now)


def _record(tx: Transaction, tenant: str, refusal: Refusal, now: int) -> None:
    key = refusal_key(refusal)
    before = tx.get(key, Rejection)
    recent = before is not None and now - before.submitted_ms < REFUSAL_QUIET_MS
    if before is not None and recent and (before.work_lost or not refusal.work_lost):
        return
    session = None
    if not (refusal.agent and refusal.user):
        session = tx.get(keys.session(refusal.session), Session)
    if session is not None:
        agent = refusal.agent or session.agent or session.session_id
        refusal = msgspec.structs.replace(refusal, agent=agent, user=refusal.user or session.user)
    times, unknown = (1, {}) if before is None else (before.times + 1, before.unknown)
    record = Rejection(
        refusal.reason,
        refusal.agent,
        now,
        refusal.result_bytes,
        refusal.work_lost,
        times,
        refusal.operation,
        refusal.user,
        unknown=unknown,
    )
    limits = limits_of(tx, tenant)
    index_key = retention_index_key(limits, now)
    if limits is None and refusal.operation is not Operation.SUBMIT:
        index_key = keys.due(now + REFUSAL_KEPT_MS)
    tx.put(key, record, index_key)
    tx.emit(_event(refusal, times))


def _event(refusal: Refusal, times: int) -> TaskRefused | ResultRejected:
    names = refusal.project, refusal.task, refusal.generation, refusal.session, refusal.agent
    if refusal.operation is not Operation.SUBMIT:
        return TaskRefused(
            *names,
            refusal.operation.value,
            refusal.reason,
            refusal.current_generation,
            times=times,
            user=refusal.user,
        )
    return ResultRejected(
        *names,
        refusal.reason,
        refusal.current_generation,
        refusal.work_lost,
        refusal.result_bytes,
        times=times,
        user=refusal.user,
        worked_ms=refusal.worked_ms,
    )
