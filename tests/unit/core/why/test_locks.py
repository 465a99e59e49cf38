"""Why a resource is locked."""

from coord.core.locks.commands import AcquireLocks
from coord.core.why.commands import WhyLock
from coord.core.why.locks import HOLDERS_MAX
from tests.support.lock_harness import REPOSITORY, LockHarness
from tests.support.why_harness import WhyHarness, remedy, texts

WAIT_MS = 60_000


def test_holders_below_and_above_and_who_waits_in_which_order() -> None:
    harness = WhyHarness()
    harness.begin("a", "b", "c")
    harness.lock("a", "src/x.py")
    harness.now += 1_000
    harness.lock("b", "src/x.py", wait_ms=WAIT_MS)
    harness.now += 1_000
    harness.lock("c", "src/x.py", wait_ms=WAIT_MS)
    found = harness.why_lock("file:src/x.py")
    assert found.answer == "src/x.py is held by a"
    assert texts(found)[1:] == [(0, "b waits for it, position 1"), (0, "c waits for it, position 2")]
    assert remedy(found)[:2] == ["preempt", "file:src/x.py"]
    assert harness.why_lock("file:src").answer == "src is held by a"


def test_a_free_resource_needs_nothing() -> None:
    harness = WhyHarness()
    found = harness.why_lock("name:deploy")
    assert (found.answer, found.reasons, found.remedy) == ("nobody holds name:deploy", [], None)


def test_locks_that_have_ended_hide_no_live_one() -> None:
    """They are first in the order of keys, and stay as records until somebody writes."""
    harness = LockHarness()
    harness.lock("live", "file:z.py", ttl=3_600_000)
    for number in range(HOLDERS_MAX + 1):
        harness.lock(f"s{number}", f"file:a{number:02}.py", ttl=1_000)
    harness.pass_time(5_000)
    assert harness.engine.call(WhyLock(REPOSITORY, "file:*.py")).answer == "*.py is held by live"


def test_who_waits_for_a_part_of_it_or_for_more_is_named() -> None:
    """The resources overlap, however they are named; in another repository a name is another file."""
    harness = WhyHarness()
    harness.begin("a", "b", "c", "d", "e")
    harness.lock("a", "src")
    harness.lock("b", "src/x.py", wait_ms=WAIT_MS)
    harness.lock("c", "*/x.py", wait_ms=WAIT_MS)
    harness.lock("d", "src/y.py", wait_ms=WAIT_MS)
    assert harness.engine.call(AcquireLocks(harness.caller("a"), "other", ("file:src",))).ok
    there = AcquireLocks(
        harness.caller("e"), "other", ("file:src/x.py",), wait_ms=WAIT_MS, wait_id="w-e", leased=False
    )
    assert not harness.engine.call(there).ok
    found = harness.why_lock("file:src/x.py")
    waiting = [text for _, text in texts(found) if "waits for it" in text]
    assert [each.partition(" ")[0] for each in waiting] == ["b", "c"]
