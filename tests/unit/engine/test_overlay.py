"""Ranges as a rule sees them: what it wrote itself is in place, however much that is."""

from hypothesis import given
from hypothesis import strategies as st

from coord.core.transaction import GONE, Written
from coord.engine.overlay import OwnKeys
from tests.support.lock_harness import LockHarness

KEYS = st.text(st.sampled_from("ab/"), min_size=1, max_size=4)


@given(st.lists(st.tuples(KEYS, KEYS)))
def test_own_keys_with_a_prefix(steps: list[tuple[str, str]]) -> None:
    """A key that is written again stands once; what was written since the last look is found, too."""
    own: dict[str, Written] = {}
    keys = OwnKeys(own)
    for key, prefix in steps:
        own[key] = GONE
        assert list(keys.within(prefix)) == sorted(each for each in own if each.startswith(prefix))


def test_a_rule_with_many_writes_sees_each_of_them() -> None:
    """A lead ends with a hundred locks; the locks of its child under them end once, and none is left."""
    harness = LockHarness()
    harness.parents["kid"] = "lead"
    paths = [f"file:src/d{number}/f.py" for number in range(100)]
    for start in (0, 50):
        assert harness.lock("lead", *paths[start : start + 50]).ok
    assert harness.lock("kid", *paths[40:60]).ok
    assert harness.lock("bob", "file:other").ok
    harness.leave("lead")
    assert harness.held() == {("bob", "file:other")}
    assert len(harness.events("lock.released")) == 120
