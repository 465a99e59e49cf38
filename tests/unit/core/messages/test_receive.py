"""The rules of receiving messages: order and acknowledgement."""

import pytest

from coord.core.errors import NotFound
from coord.core.messages.commands import AckMessages
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
