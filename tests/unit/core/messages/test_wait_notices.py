"""A holder hears who waits for its lock: once, and only while that matters."""

from coord.core.messages.commands import PeekMessages
from tests.support.lock_harness import LockHarness
from tests.support.message_calls import receive, subjects


def test_a_holder_hears_who_waits(harness: LockHarness) -> None:
    """MSG-11: one message per holder, with the reason, when a request joins the wait queue."""
    harness.lock("ann", "file:a.py")
    harness.lock("bob", "file:b.py")
    wrote = harness.written_by(
        lambda: harness.wait("eve", "file:a.py", "file:b.py", reason="the login is broken")
    )
    assert wrote.count("inbox") == wrote.count("mailbox") == 2
    expected = '[System] eve waits for a.py, b.py: "the login is broken"'
    for holder in ("ann", "bob"):
        (message,) = receive(harness, holder).messages
        assert (message.kind, message.subject) == ("request", expected)
        assert message.blob["session_id"] == "eve"


def test_the_same_wait_is_heard_of_once(harness: LockHarness) -> None:
    """MSG-11: not again while it waits, confirms or asks again; another session is heard of, too."""
    harness.lock("ann", "file:a.py", ttl=3_600_000)
    waiting = harness.wait("eve", "file:a.py")
    harness.confirm("eve", waiting)
    assert subjects(receive(harness, "ann", drain=True)) == ["[System] eve waits for a.py"]
    harness.withdraw("eve", waiting)
    for _ in range(3):
        harness.pass_time(30_000)
        harness.withdraw("eve", harness.wait("eve", "file:a.py", wait_ms=20_000))
    assert subjects(receive(harness, "ann")) == []
    harness.wait("bob", "file:a.py")
    assert subjects(receive(harness, "ann")) == ["[System] bob waits for a.py"]


def test_who_was_denied_and_then_waits_is_heard_of_once(harness: LockHarness) -> None:
    """MSG-11: an agent whose edit was denied waits next; its holder has heard of it."""
    harness.lock("ann", "file:a.py")
    harness.lock("eve", "file:a.py", reason="rework")
    harness.wait("eve", "file:a.py", reason="rework")
    assert subjects(receive(harness, "ann")) == ['[System] eve wants a.py: "rework"']


def test_a_notice_is_withdrawn_with_its_wait(harness: LockHarness) -> None:
    """MSG-11: who gives up, or has the lock, is not announced; who asks again later, is."""
    harness.lock("ann", "file:a.py", ttl=3_600_000)
    waiting = harness.wait("eve", "file:a.py")
    harness.withdraw("eve", waiting)
    assert harness.engine.call(PeekMessages(harness.who("ann"))).messages == []
    assert subjects(receive(harness, "ann")) == []
    assert [event["reason"] for event in harness.events("message.undelivered")] == ["eve no longer waits"]
    harness.wait("eve", "file:a.py")
    assert subjects(receive(harness, "ann", drain=True)) == ["[System] eve waits for a.py"]
    harness.wait("bob", "file:a.py")
    harness.release("ann", "file:a.py")
    assert subjects(receive(harness, "ann")) == ["[System] bob waits for a.py"], "eve has the lock"
