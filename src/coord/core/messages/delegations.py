"""Delegations: one session asks another one to do something, and both see it until it is done.

A delegation ends when its recipient reports it as done, when whoever gave it cancels it, or with the session
of its recipient. If a similar one is active, the new one proceeds, and its sender reads a warning.
"""

from collections.abc import Iterator

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, LimitReached, NotFound, Refused
from coord.core.messages.commands import (
    AddDelegation,
    AddDelegationReply,
    DelegationInfo,
    EndDelegation,
    ListDelegations,
    SimilarDelegation,
)
from coord.core.messages.inbox import TTL_MS, notify
from coord.core.messages.quoting import quote
from coord.core.messages.recipients import Recipients, find_recipients
from coord.core.messages.schema import (
    Delegation,
    DelegationAdded,
    DelegationCancelled,
    DelegationEnded,
    Message,
)
from coord.core.messages.send import count_sending, send_to, shared_id
from coord.core.sessions.identify import ensure_session, is_person
from coord.core.similar_words import SIMILAR_ABOVE, overlap, words_of
from coord.core.transaction import PAGE, Transaction

DELEGATIONS_MAX = PAGE
"""The number of delegations that may be active: each new one is compared with all of them."""
WARNINGS_MAX = 5


def add_delegation(tx: Transaction, command: AddDelegation, now: int) -> AddDelegationReply:
    """Delegate work to one session, with a message, and return the delegations that it may duplicate."""
    sender = ensure_session(tx, command.caller, now).session_id
    count_sending(tx, sender, now)
    found = find_recipients(tx, command.to, sender, now).sessions
    if len(found) != 1:
        names = ", ".join(session.session_id for session in found[:WARNINGS_MAX])
        raise Invalid(f"{command.to} means {len(found)} sessions", hint=f"delegate to one of {names}")
    active = list(_delegations(tx, keys.DELEGATION_PREFIX))
    if len(active) >= DELEGATIONS_MAX:
        raise LimitReached(
            f"{len(active)} delegations are active", hint="end some: coord delegation list shows them"
        )
    (to,) = found
    delegation = Delegation(
        id=f"d-{shared_id(tx, sender, now).rpartition('-')[2]}",
        from_session_id=sender,
        to_session_id=to.session_id,
        to_agent=to.agent,
        to_role=to.role,
        what=command.what,
        task=command.task,
        since_ms=now,
    )
    tx.put(keys.delegation(to.session_id, delegation.id), delegation)
    tx.emit(
        DelegationAdded(delegation.id, sender, to.session_id, to.agent, to.role, command.what, command.task)
    )
    message = Message(
        from_session_id=sender,
        sent_ms=now,
        kind="request",
        subject=f"{delegation.id}: {command.what}",
        blob={"delegation": delegation.id, "task": command.task},
        expires_ms=now + TTL_MS,
    )
    send_to(tx, message, Recipients([to]), now)
    return AddDelegationReply(_info(delegation), _similar(active, command.what))


def _similar(active: list[Delegation], what: str) -> list[SimilarDelegation]:
    """Return the active delegations that resemble a new one, the most similar first."""
    mine = words_of(what)
    found = [
        SimilarDelegation(_info(each), share)
        for each in active
        if (share := overlap(mine, words_of(each.what))) > SIMILAR_ABOVE
    ]
    return sorted(found, key=lambda each: (-each.share, each.delegation.id))[:WARNINGS_MAX]


def end_delegation(tx: Transaction, command: EndDelegation, now: int) -> DelegationInfo:
    """End a delegation: its recipient has done it, or its sender cancels it; a person may do both."""
    session = ensure_session(tx, command.caller, now).session_id
    found = [each for each in _delegations(tx, keys.DELEGATION_PREFIX) if each.id == command.id]
    if not found:
        raise NotFound(f"no delegation {command.id} is active", hint="coord delegation list shows them")
    (delegation,) = found
    giver, doer = delegation.from_session_id, delegation.to_session_id
    allowed, other = (giver, doer) if command.cancel else (doer, giver)
    if session != allowed and not is_person(command.caller, session):
        act = "cancels" if command.cancel else "reports"
        raise Refused(f"only {allowed} {act} {command.id}", hint=f"ask it: coord send {allowed} request …")
    tx.delete(keys.delegation(doer, delegation.id))
    about = {"delegation": delegation.id}
    if command.cancel:
        to_agent, to_role = delegation.to_agent, delegation.to_role
        tx.emit(DelegationCancelled(delegation.id, session, doer, to_agent, to_role, delegation.what))
        notify(tx, other, "status", f"cancelled: {quote(delegation.what)} ({delegation.id})", now, about)
    else:
        tx.emit(DelegationEnded(delegation.id, session, "done"))
        notify(
            tx, other, "status", f"{doer} has done: {quote(delegation.what)} ({delegation.id})", now, about
        )
    return _info(delegation)


def list_delegations(tx: Transaction, _command: ListDelegations, _now: int) -> list[DelegationInfo]:
    """Return the active delegations, oldest first."""
    found = [_info(each) for each in _delegations(tx, keys.DELEGATION_PREFIX)]
    return sorted(found, key=lambda each: (each.since_ms, each.id))


def end_delegations_to(tx: Transaction, session: str, successor: str, now: int) -> None:
    """End the delegations to a session that ends, or move them to its successor."""
    for delegation in list(_delegations(tx, keys.delegation_prefix(session))):
        tx.delete(keys.delegation(session, delegation.id))
        if successor:
            moved = msgspec.structs.replace(delegation, to_session_id=successor)
            tx.put(keys.delegation(successor, delegation.id), moved)
            continue
        tx.emit(DelegationEnded(delegation.id, session, "recipient ended"))
        subject = f"{session} has ended without: {quote(delegation.what)} ({delegation.id})"
        notify(tx, delegation.from_session_id, "status", subject, now, {"delegation": delegation.id})


def _delegations(tx: Transaction, prefix: str) -> Iterator[Delegation]:
    for found in tx.scan(prefix, limit=PAGE):
        delegation = tx.get(found.key, Delegation)
        if delegation is not None:
            yield delegation


def _info(delegation: Delegation) -> DelegationInfo:
    return DelegationInfo(
        delegation.id,
        delegation.from_session_id,
        delegation.to_session_id,
        delegation.to_agent,
        delegation.to_role,
        delegation.what,
        delegation.task,
        delegation.since_ms,
    )
