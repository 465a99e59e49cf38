"""Inboxes of any size: every message is read once."""

from tests.support.lock_harness import LockHarness
from tests.support.message_calls import HEAVY, LONG, everything, receive, send


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
