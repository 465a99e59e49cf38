"""The rules of messages, one by one: order, acknowledgement, return, limits, and inboxes of any size."""

from typing import Any

import pytest

from coord.core import commands as c
from coord.core.errors import LimitReached, NotFound, Refused
from tests.support.lock_harness import LockDesk

LONG = "x" * 8_000
HEAVY = {"data": "x" * 30_000}


@pytest.fixture
def desk() -> LockDesk:
    desk = LockDesk()
    desk.beat("ann")
    desk.beat("bob")
    return desk


def send(desk: LockDesk, by: str, to: str, subject: str, **more: Any) -> Any:
    return desk.engine.call(c.SendMessage(caller=desk.who(by), to=to, kind="status", subject=subject, **more))


def receive(desk: LockDesk, name: str, *, drain: bool = False) -> Any:
    return desk.engine.call(c.ReceiveMessages(desk.who(name), drain))


def subjects(received: Any) -> list[str]:
    return [message.subject for message in received.messages]


def everything(desk: LockDesk, name: str) -> list[str]:
    """All that a session reads if it reads until nothing is left."""
    found: list[str] = []
    while (received := receive(desk, name, drain=True)).messages or received.more:
        found += subjects(received)
    return found


def test_order(desk: LockDesk) -> None:
    """MSG-5: messages come in the order in which they were sent, also past the tenth."""
    sent = [f"number {number}" for number in range(12)]
    for subject in sent:
        send(desk, "ann", "bob", subject)
    assert subjects(receive(desk, "bob")) == sent


def test_ack_ends_a_message(desk: LockDesk) -> None:
    """CFL-20: one that was not acknowledged is offered again after a minute; one that was, never."""
    first, second = send(desk, "ann", "bob", "first"), send(desk, "ann", "bob", "second")
    assert subjects(receive(desk, "bob")) == ["first", "second"]
    assert subjects(receive(desk, "bob")) == []
    desk.engine.call(c.AckMessages(desk.who("bob"), (first.id,)))
    desk.pass_time(60_000)
    assert subjects(receive(desk, "bob")) == ["second"]
    with pytest.raises(NotFound):
        desk.engine.call(c.AckMessages(desk.who("bob"), (first.id,)))
    with pytest.raises(NotFound):
        desk.engine.call(c.AckMessages(desk.who("ann"), (second.id,)))


def test_broadcast_is_acknowledged_by_its_id(desk: LockDesk) -> None:
    """CFL-20: also where the id of a message does not name its place in the inbox."""
    sent = send(desk, "ann", "", "to all")
    receive(desk, "bob")
    assert desk.engine.call(c.AckMessages(desk.who("bob"), (sent.id,))).acked == [sent.id]
    desk.pass_time(60_000)
    assert subjects(receive(desk, "bob")) == []


def test_unread_message_comes_back(desk: LockDesk) -> None:
    """CFL-20: a message whose time is up is not shown, and its sender is told."""
    send(desk, "ann", "bob", "hurry", ttl_ms=5_000)
    desk.pass_time(5_000)
    assert subjects(receive(desk, "bob")) == []
    assert desk.told("ann", "undelivered") == ["[System] hurry: nobody read it in time"]


def test_rate(desk: LockDesk) -> None:
    """A session may send 120 messages a minute, ten of them to all; a minute later it may again."""
    for number in range(10):
        send(desk, "ann", "", str(number))
    with pytest.raises(LimitReached):
        send(desk, "ann", "", "eleventh")
    for number in range(110):
        send(desk, "ann", "bob", str(number))
    with pytest.raises(LimitReached):
        send(desk, "ann", "bob", "one too many")
    desk.pass_time(60_000)
    assert send(desk, "ann", "bob", "later")


def test_hops(desk: LockDesk) -> None:
    """Each answer to an answer counts, whatever its sender says; the ninth is refused."""
    message = send(desk, "ann", "bob", "ping")
    names = ["bob", "ann"]
    for hop in range(8):
        by, to = names[hop % 2], names[1 - hop % 2]
        message = send(desk, by, to, "pong", reply_to=message.id)
    assert receive(desk, "bob").messages or receive(desk, "ann").messages
    with pytest.raises(Refused, match="passed on 9 times"):
        send(desk, "bob", "ann", "pong", reply_to=message.id)


def test_no_broadcast_is_lost_however_many(desk: LockDesk) -> None:
    """MSG-8: who comes back to more broadcasts than one answer shows reads them all, in order."""
    sent = [f"number {number}" for number in range(1_050)]
    for number, subject in enumerate(sent):
        send(desk, f"sender-{number // 10}", "", subject)
    assert everything(desk, "bob") == sent


def test_heavy_inbox_is_read_in_portions(desk: LockDesk) -> None:
    """Broadcasts that no commit could hold together are all read, and an offer stays in measure, too."""
    for number in range(300):
        send(desk, f"sender-{number // 10}", "", str(number), body=LONG, blob=HEAVY)
    first = receive(desk, "bob")
    assert first.more
    assert 0 < len(first.messages) < 100
    assert everything(desk, "bob") == [str(number) for number in range(300)]


def test_who_leaves_a_heavy_inbox_returns_it(desk: LockDesk) -> None:
    """CFL-20: what waits for a session that ends goes back to its senders, however much it is."""
    for number in range(300):
        send(desk, f"sender-{number // 10}", "", str(number), body=LONG, blob=HEAVY)
    send(desk, "ann", "bob", "for bob")
    desk.leave("bob")
    assert "[System] for bob: session bob has ended" in desk.told("ann", "undelivered")
    assert len(desk.told("sender-29", "undelivered")) == 10
    desk.beat("bob")
    assert subjects(receive(desk, "bob")) == [], "under the same id nothing comes twice"


def test_heavy_inbox_does_not_hinder_a_successor(desk: LockDesk) -> None:
    """A `/clear` moves what fits into the commit; the rest goes back to its senders and is not lost."""
    for number in range(120):
        send(desk, "ann", "bob", str(number), body=LONG * 8, blob=HEAVY)
    desk.engine.call(c.Register(caller=desk.who("new"), replaces="bob"))
    moved = everything(desk, "new")
    returned = everything(desk, "ann")
    assert moved == [str(number) for number in range(len(moved))]
    assert 0 < len(moved) < 120
    assert len(moved) + len(returned) == 120
