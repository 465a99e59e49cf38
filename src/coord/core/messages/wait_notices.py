"""Notices to a holder: a session wants its lock, or waits for it.

A holder hears of a request once, however often the same session asks for the same resources again. A notice
that nobody has read is withdrawn when its sender no longer waits.
"""

from collections.abc import Sequence

import msgspec

from coord.core import keys
from coord.core.dispatch import dispatch
from coord.core.messages.inbox import SYSTEM, mailbox_of, notify, remove_message
from coord.core.messages.quoting import quote, quote_names
from coord.core.messages.schema import Message, MessageLost
from coord.core.sessions.commands import IsWaiting
from coord.core.transaction import Transaction

HEARD_MS = 60_000
"""A request that comes again within this time is the same one."""
HEARD_MS_MAX = 600_000
HEARD_MAX = 32
"""The number of requests that a mailbox remembers."""


class Notice(msgspec.Struct, frozen=True):
    """A request as its holder hears of it; `until_ms`: the request lasts until then."""

    session: str
    agent: str
    resources: Sequence[str]
    reason: str
    waits: bool
    until_ms: int


def notify_holder(tx: Transaction, holder: str, notice: Notice, now: int) -> None:
    """Notify a holder of a request, unless it has heard of the same request already."""
    name = _name(notice.session, notice.resources)
    heard = {each: until for each, until in mailbox_of(tx, holder).heard.items() if until > now}
    if name not in heard:
        verb = "waits for" if notice.waits else "wants"
        resources = [text.removeprefix("file:") for text in notice.resources]
        shown = quote_names(resources, len(resources))
        why = f": {quote(notice.reason)}" if notice.reason else ""
        blob = {
            "session_id": notice.session,
            "resources": list(notice.resources),
            "reason": notice.reason,
        }
        waiter = notice.session if notice.waits else ""
        subject = f"{notice.agent or notice.session} {verb} {shown}{why}"
        if not notify(tx, holder, "request", subject, now, blob, waiter=waiter):
            return
    heard[name] = min(notice.until_ms, now + HEARD_MS_MAX) + HEARD_MS
    latest = dict(sorted(heard.items(), key=lambda each: each[1])[-HEARD_MAX:])
    tx.put(keys.mailbox(holder), msgspec.structs.replace(mailbox_of(tx, holder), heard=latest))


def is_pointless(tx: Transaction, message: Message, now: int) -> bool:
    """Whether a message is about a session that no longer waits."""
    if not message.waiter:
        return False
    return not dispatch(tx, IsWaiting(message.waiter, tuple(message.blob["resources"])), now)


def withdraw_notice(tx: Transaction, key: str, message: Message, session: str) -> None:
    """Remove a notice that nobody has read; its next one is a new one."""
    remove_message(tx, key, message, session)
    mailbox = mailbox_of(tx, session)
    name = _name(message.waiter, message.blob["resources"])
    heard = {each: until for each, until in mailbox.heard.items() if each != name}
    tx.put(keys.mailbox(session), msgspec.structs.replace(mailbox, heard=heard))
    tx.emit(MessageLost(message.id, session, SYSTEM, f"{message.waiter} no longer waits"))


def _name(session: str, resources: Sequence[str]) -> str:
    return keys.digest("\n".join((session, *resources)))[:16]
