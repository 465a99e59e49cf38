"""The limits of sending messages: rate and hops."""

import pytest

from coord.core.errors import LimitReached, Refused
from tests.support.lock_harness import LockHarness
from tests.support.message_calls import receive, send


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
