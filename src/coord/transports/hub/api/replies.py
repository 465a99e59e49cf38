"""Replies as HTTP: which of them is a refusal, and what a refused client reads."""

from functools import cache
from typing import Any

import msgspec

from coord.core.locks.commands import LockReply, Outcome
from coord.core.tasks.types import (
    ClaimResult,
    ReleaseResult,
    RenewalResult,
    ResetResult,
    SubmissionResult,
)
from coord.transports.hub.api.endpoint import Answer
from coord.transports.hub.problems import PROBLEM

Refusable = LockReply | ClaimResult | RenewalResult | ReleaseResult | SubmissionResult | ResetResult
HINTS = {
    "held": "wait for it with wait_ms, ask its holder with a message, or take another file",
    "waiting": "it was not granted in time; ask again, with a longer wait_ms",
    "deadlock": "request what `again` names in one request",
    "withdrawn": "ask again",
    "changed": "ask again",
    "stopped": "read the emergency: GET /v1/sessions/{session}/inbox",
    "DENIED_ACTIVE_CLAIM": "take another task, or wait until the lease of the holder has expired",
    "DENIED_COMPLETED": "the task is done; read its result",
    "DENIED_NOT_READY": "the task waits for others; ask the queue for the next one",
    "DENIED_LOCKED": "files of the task are locked; ask the queue for the next one",
    "NO_CLAIM": "claim the task first",
    "GENERATION_MISMATCH": "somebody else has claimed the task since; stop working on it",
    "STALE_GENERATION": "somebody else has claimed the task since; your result is not needed",
    "SESSION_MISMATCH": "the claim belongs to another session",
    "ALREADY_EXPIRED": "the lease has expired; claim the task again",
    "TASK_ALREADY_COMPLETED": "the task is done; read its result",
    "LOCK_LOST": "the claim lost one of its locks; claim the task again",
}
"""The next step after a refusal, by its reason."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Problem details (RFC 9457): `code` is the error in one word, `hint` the next step."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    command_id: str | msgspec.UnsetType = msgspec.UNSET


def is_refusable(kind: Any) -> bool:
    """Whether replies of this type may be refusals."""
    return isinstance(kind, type) and issubclass(kind, Refusable)


def is_granted(reply: Any) -> bool:
    """Whether a reply says that what was asked for has happened."""
    if isinstance(reply, LockReply):
        return reply.outcome is Outcome.GRANTED
    if isinstance(reply, SubmissionResult):
        return reply.accepted
    return not is_refusable(type(reply)) or bool(reply.success)


def answer(reply: Any) -> Answer:
    """Return a reply with its status: 201 for new locks, 409 with problem details for a refusal."""
    if is_granted(reply):
        new = isinstance(reply, LockReply) and not all(lock.refreshed for lock in reply.locks)
        return Answer(201 if new else 200, reply)
    return Answer(409, refusal(reply), PROBLEM)


def refusal(reply: Any) -> dict[str, Any]:
    """Return a refusal: the fields of the reply and those of a problem."""
    code = str(reply.outcome if isinstance(reply, LockReply) else reply.reason)
    fields = msgspec.structs.asdict(reply)
    fields["detail"] = fields.get("detail") or _detail(reply, code)
    hint = HINTS.get(code, "")
    return {
        **fields,
        "type": f"urn:coord:refusal:{code}",
        "title": code,
        "status": 409,
        "code": code,
        "hint": hint,
    }


def _detail(reply: Any, code: str) -> str:
    holder = getattr(reply, "holder", None)
    if holder is not None:
        return f"{holder.resource} is locked by {holder.agent or holder.owner}"
    claimant = getattr(reply, "current_holder", None)
    return f"the task is claimed by {claimant}" if claimant else code.replace("_", " ").lower()


@cache
def refusal_type(kind: type[Any]) -> type[Any]:
    """Return the type of the refusals of a reply type, for the OpenAPI document."""
    unset = msgspec.UnsetType
    own = [
        (field.name, field.type | unset, msgspec.UNSET)
        for field in msgspec.structs.fields(kind)
        if field.name != "detail"
    ]
    more = [(field.name, field.type) for field in msgspec.structs.fields(Problem) if field.required]
    fields: list[Any] = [*more, ("command_id", str | unset, msgspec.UNSET), *own]
    return msgspec.defstruct(f"{kind.__name__}Refusal", fields, frozen=True)


def replies_of(kind: Any) -> dict[int, Any]:
    """Return the statuses of a reply type, and what each one carries."""
    if not is_refusable(kind):
        return {200: kind}
    granted = {200: kind, 201: kind} if issubclass(kind, LockReply) else {200: kind}
    return {**granted, 409: refusal_type(kind)}
