"""Messages that nobody read return to their senders or move to a successor."""

from coord.core.lifecycle.commands import Register
from coord.core.sessions.liveness import STALE_MS
from tests.support.lock_harness import LockHarness
from tests.support.message_calls import HEAVY, LONG, everything, receive, send, subjects


def test_unread_message_comes_back(harness: LockHarness) -> None:
    """CFL-20: a message whose time is up is not shown, and its sender is told."""
    send(harness, "ann", "bob", "hurry", ttl_ms=5_000)
    harness.pass_time(5_000)
    assert subjects(receive(harness, "bob")) == []
    assert harness.told("ann", "undelivered") == ['[System] "hurry": nobody read it in time']


def test_who_leaves_a_heavy_inbox_returns_it(harness: LockHarness) -> None:
    """CFL-20: what waits for a session that ends goes back to its senders, however much it is."""
    for number in range(300):
        send(harness, f"sender-{number // 10}", "", str(number), body=LONG, blob=HEAVY)
    send(harness, "ann", "bob", "for bob")
    harness.leave("bob")
    assert '[System] "for bob": session bob has ended' in harness.told("ann", "undelivered")
    assert len(harness.told("sender-29", "undelivered")) == 10
    harness.beat("bob")
    assert subjects(receive(harness, "bob")) == [], "under the same id nothing comes twice"


def test_heavy_inbox_does_not_hinder_a_successor(harness: LockHarness) -> None:
    """A `/clear` moves what fits into the commit; the rest goes back to its senders and is not lost."""
    for number in range(120):
        send(harness, "ann", "bob", str(number), body=LONG * 8, blob=HEAVY)
    harness.pass_time(STALE_MS)
    harness.engine.call(Register(caller=harness.who("new"), replaces="bob"))
    moved = everything(harness, "new")
    returned = everything(harness, "ann")
    assert moved == [str(number) for number in range(len(moved))]
    assert 0 < len(moved) < 120
    assert len(moved) + len(returned) == 120
