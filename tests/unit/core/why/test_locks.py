"""Why a resource is locked."""

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
