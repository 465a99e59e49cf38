"""The rules of messages, one by one: order, acknowledgement, return, limits, and inboxes of any size."""

from typing import Any

import pytest

from coord.core.errors import LimitReached, NotFound, Refused
from coord.core.lifecycle.commands import Register
from coord.core.messages.commands import AckMessages, ReceiveMessages, SendMessage
from tests.support.lock_harness import LockHarness

LONG = "x" * 8_000
HEAVY = {"data": "x" * 30_000}


@pytest.fixture
def harness() -> LockHarness:
    harness = LockHarness()
    harness.beat("ann")
    harness.beat("bob")
    return harness


def send(harness: LockHarness, by: str, to: str, subject: str, **more: Any) -> Any:
    return harness.engine.call(
        SendMessage(caller=harness.who(by), to=to, kind="status", subject=subject, **more)
    )


def receive(harness: LockHarness, name: str, *, drain: bool = False) -> Any:
    return harness.engine.call(ReceiveMessages(harness.who(name), drain))


def subjects(received: Any) -> list[str]:
    return [message.subject for message in received.messages]


def everything(harness: LockHarness, name: str) -> list[str]:
    """All that a session reads if it reads until nothing is left."""
    found: list[str] = []
    while (received := receive(harness, name, drain=True)).messages or received.more:
        found += subjects(received)
    return found


def test_order(harness: LockHarness) -> None:
    """MSG-5: messages come in the order in which they were sent, also past the tenth."""
    sent = [f"number {number}" for number in range(12)]
    for subject in sent:
        send(harness, "ann", "bob", subject)
    assert subjects(receive(harness, "bob")) == sent


def test_ack_ends_a_message(harness: LockHarness) -> None:
    """CFL-20: one that was not acknowledged is offered again after a minute; one that was, never."""
    first, second = send(harness, "ann", "bob", "first"), send(harness, "ann", "bob", "second")
    assert subjects(receive(harness, "bob")) == ["first", "second"]
    assert subjects(receive(harness, "bob")) == []
    harness.engine.call(AckMessages(harness.who("bob"), (first.id,)))
    harness.pass_time(60_000)
    assert subjects(receive(harness, "bob")) == ["second"]
    with pytest.raises(NotFound):
        harness.engine.call(AckMessages(harness.who("bob"), (first.id,)))
    with pytest.raises(NotFound):
        harness.engine.call(AckMessages(harness.who("ann"), (second.id,)))


def test_broadcast_is_acknowledged_by_its_id(harness: LockHarness) -> None:
    """CFL-20: also where the id of a message does not name its place in the inbox."""
    sent = send(harness, "ann", "", "to all")
    receive(harness, "bob")
    assert harness.engine.call(AckMessages(harness.who("bob"), (sent.id,))).acked == [sent.id]
    harness.pass_time(60_000)
    assert subjects(receive(harness, "bob")) == []


def test_unread_message_comes_back(harness: LockHarness) -> None:
    """CFL-20: a message whose time is up is not shown, and its sender is told."""
    send(harness, "ann", "bob", "hurry", ttl_ms=5_000)
    harness.pass_time(5_000)
    assert subjects(receive(harness, "bob")) == []
    assert harness.told("ann", "undelivered") == ["[System] hurry: nobody read it in time"]


def test_rate(harness: LockHarness) -> None:
    """A session may send 120 messages a minute, ten of them to all; a minute later it may again."""
    for number in range(10):
        send(harness, "ann", "", str(number))
    with pytest.raises(LimitReached):
        send(harness, "ann", "", "eleventh")
    for number in range(110):
        send(harness, "ann", "bob", str(number))
    with pytest.raises(LimitReached):
        send(harness, "ann", "bob", "one too many")
    harness.pass_time(60_000)
    assert send(harness, "ann", "bob", "later")


def test_hops(harness: LockHarness) -> None:
    """Each answer to an answer counts, whatever its sender says; the ninth is refused."""
    message = send(harness, "ann", "bob", "ping")
    names = ["bob", "ann"]
    for hop in range(8):
        by, to = names[hop % 2], names[1 - hop % 2]
        message = send(harness, by, to, "pong", reply_to=message.id)
    assert receive(harness, "bob").messages or receive(harness, "ann").messages
    with pytest.raises(Refused, match="forwarded 9 times"):
        send(harness, "bob", "ann", "pong", reply_to=message.id)


def test_no_broadcast_is_lost_however_many(harness: LockHarness) -> None:
    """MSG-8: who comes back to more broadcasts than one answer shows reads them all, in order."""
    sent = [f"number {number}" for number in range(1_050)]
    for number, subject in enumerate(sent):
        send(harness, f"sender-{number // 10}", "", subject)
    assert everything(harness, "bob") == sent


def test_heavy_inbox_is_read_in_portions(harness: LockHarness) -> None:
    """Broadcasts that no commit could hold together are all read, and an offer stays in measure, too."""
    for number in range(300):
        send(harness, f"sender-{number // 10}", "", str(number), body=LONG, blob=HEAVY)
    first = receive(harness, "bob")
    assert first.more
    assert 0 < len(first.messages) < 100
    assert everything(harness, "bob") == [str(number) for number in range(300)]


def test_who_leaves_a_heavy_inbox_returns_it(harness: LockHarness) -> None:
    """CFL-20: what waits for a session that ends goes back to its senders, however much it is."""
    for number in range(300):
        send(harness, f"sender-{number // 10}", "", str(number), body=LONG, blob=HEAVY)
    send(harness, "ann", "bob", "for bob")
    harness.leave("bob")
    assert "[System] for bob: session bob has ended" in harness.told("ann", "undelivered")
    assert len(harness.told("sender-29", "undelivered")) == 10
    harness.beat("bob")
    assert subjects(receive(harness, "bob")) == [], "under the same id nothing comes twice"


def test_heavy_inbox_does_not_hinder_a_successor(harness: LockHarness) -> None:
    """A `/clear` moves what fits into the commit; the rest goes back to its senders and is not lost."""
    for number in range(120):
        send(harness, "ann", "bob", str(number), body=LONG * 8, blob=HEAVY)
    harness.engine.call(Register(caller=harness.who("new"), replaces="bob"))
    moved = everything(harness, "new")
    returned = everything(harness, "ann")
    assert moved == [str(number) for number in range(len(moved))]
    assert 0 < len(moved) < 120
    assert len(moved) + len(returned) == 120
