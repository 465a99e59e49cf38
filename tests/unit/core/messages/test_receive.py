"""The rules of receiving messages: order and acknowledgement."""

import pytest

from coord.core.errors import NotFound
from coord.core.messages.commands import AckMessages, PeekMessages, SendMessage
from tests.support.lock_harness import LockHarness
from tests.support.message_calls import receive, send, subjects


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


def test_priority_orders(harness: LockHarness) -> None:
    """MSG-5: the higher priority comes first, an emergency before all, and equals in the order of sending."""
    for subject, priority in (("a", 0), ("b", 5), ("c", -1), ("d", 5), ("e", 0)):
        send(harness, "ann", "bob", subject, priority=priority)
    alarm = SendMessage(caller=harness.who("ann"), to="bob", kind="emergency", subject="f", priority=-9)
    harness.engine.call(alarm)
    ordered = ["f", "b", "d", "a", "e", "c"]
    assert subjects(harness.engine.call(PeekMessages(harness.who("bob")))) == ordered
    assert subjects(receive(harness, "bob", drain=True)) == ordered


def test_the_urgent_ones_of_a_full_inbox_come_first(harness: LockHarness) -> None:
    """MSG-5: also when they were sent last and more wait than one answer shows; broadcasts count, too."""
    for number in range(110):
        send(harness, "ann", "bob", str(number))
    send(harness, "eve", "bob", "urgent", priority=3)
    send(harness, "eve", "", "to all", priority=2)
    assert subjects(harness.engine.call(PeekMessages(harness.who("bob"))))[:3] == ["urgent", "to all", "0"]
    assert subjects(receive(harness, "bob"))[:3] == ["urgent", "to all", "0"]


def test_a_low_priority_does_not_starve(harness: LockHarness) -> None:
    """MSG-5: a step of priority is a head start of one minute, so that old messages get their turn."""
    send(harness, "ann", "bob", "old", priority=0)
    harness.pass_time(3 * 60_000 + 1)
    send(harness, "ann", "bob", "important", priority=3)
    send(harness, "ann", "bob", "very important", priority=4)
    assert subjects(receive(harness, "bob")) == ["very important", "old", "important"]
