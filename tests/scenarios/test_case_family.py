"""Parents, children and siblings (DESIGN §5): who excludes whom, and what ends with what."""

import pytest

from coord.core.errors import CoordError, Refused
from coord.core.locks.commands import Outcome
from tests.support.store_harness import Actor, StoreHarness


def family(harness: StoreHarness) -> tuple[Actor, Actor, Actor]:
    """A session and two of its sub-agents."""
    parent = harness.actor("parent")
    parent.register()
    children = [harness.actor(name, parent="parent") for name in ("child", "sibling")]
    for child in children:
        child.register()
    return parent, children[0], children[1]


def test_a_child_works_under_its_parents_lock(harness: StoreHarness) -> None:
    """SUP-16: An ancestor's lock does not stand in its descendant's way, but in everybody else's."""
    parent, child, _ = family(harness)
    grandchild = harness.actor("grandchild", parent="child")
    fence = parent.take("file:src").fence
    assert child.take("file:src/a.py").fence > fence
    assert grandchild.lock("file:src/b.py").outcome is Outcome.GRANTED
    assert harness.actor("stranger").lock("file:src/c.py").outcome is Outcome.HELD


@pytest.mark.parametrize("how", ["released", "expired", "stolen", "left"])
def test_a_childs_grant_ends_with_its_parents(harness: StoreHarness, how: str) -> None:
    """The child gets its own grant under the parent's; it ends when the parent's does, however that is."""
    parent, child, _ = family(harness)
    parent.take("file:src", ttl_ms=60_000)
    lent = child.take("file:src/a.py", ttl_ms=3_600_000)
    own = child.take("file:docs/a.md", ttl_ms=3_600_000)
    if how == "released":
        parent.unlock("file:src")
    elif how == "left":
        parent.leave()
    elif how == "stolen":
        harness.actor("thief").steal("file:src", force=True, reason="test")
    else:
        harness.pass_seconds(60)
        harness.actor("other").beat()
    assert "file:src/a.py" not in harness.holders()
    assert not child.check("file:src/a.py", fence=lent.fence).free
    with pytest.raises(CoordError):
        child.renew("file:src/a.py", fence=lent.fence)
    kept = child.check("file:docs/a.md", fence=own.fence).free
    assert kept is (how != "left"), "what it did not lend stays, unless the lead itself has ended"
    endings = {event["resource"]: event["end_reason"] for event in harness.events("lock.released")}
    assert endings["file:src/a.py"] == "parent_ended"


def test_a_childs_grant_ends_with_the_child(harness: StoreHarness) -> None:
    """Where the child gives back or leaves, the parent keeps its own."""
    parent, child, sibling = family(harness)
    parent.take("file:src")
    child.take("file:src/a.py")
    sibling.take("file:src/b.py")
    child.unlock("file:src/a.py")
    sibling.leave()
    assert harness.holders() == {"file:src": "parent"}
    assert parent.check("file:src/a.py", mode="write").free


def test_a_parents_write_is_refused_while_a_child_holds(harness: StoreHarness) -> None:
    """The parent may not write what its child works on; beside that it may, and after it too."""
    parent, child, _ = family(harness)
    parent.take("file:src")
    child.take("file:src/a.py")
    assert not parent.check("file:src/a.py", mode="write").free
    denied = parent.lock("file:src/a.py")
    assert denied.outcome is Outcome.HELD
    assert denied.holder is not None
    assert denied.holder.owner == "child"
    assert parent.check("file:src/b.py", mode="write").free
    child.unlock("file:src/a.py")
    assert parent.lock("file:src/a.py").outcome is Outcome.GRANTED


def test_siblings_exclude_each_other(harness: StoreHarness) -> None:
    """Two sub-agents of one session are strangers to each other, also under the parent's lock."""
    parent, child, sibling = family(harness)
    parent.take("file:src")
    child.take("file:src/a.py")
    denied = sibling.lock("file:src/a.py")
    assert denied.outcome is Outcome.HELD
    assert denied.holder is not None
    assert denied.holder.owner == "child", "not the parent, which is in nobody's way here"
    place = sibling.wait_for("file:src/*.py")
    child.unlock("file:src/a.py")
    assert sibling.confirm(place).outcome is Outcome.GRANTED
    assert child.lock("file:src/a.py").outcome is Outcome.HELD


def test_a_child_never_reads_its_parents_messages(harness: StoreHarness) -> None:
    """DESIGN §7: a child never drains its parent's inbox."""
    parent, child, sibling = family(harness)
    sibling.send("parent", "status", "for the parent")
    assert child.receive() == []
    assert [message.subject for message in parent.receive()] == ["for the parent"]


def test_a_parent_may_end_its_child_and_no_other(harness: StoreHarness) -> None:
    """Only the session itself, or one above it, ends a session that is not proven dead."""
    parent, child, sibling = family(harness)
    child.take("file:a.py")
    with pytest.raises(Refused) as caught:
        sibling.leave("child")
    assert caught.value.hint
    with pytest.raises(Refused):
        child.leave("parent")
    assert harness.holders() == {"file:a.py": "child"}
    assert parent.leave("child").released == ["file:a.py"]
    assert harness.holders() == {}
