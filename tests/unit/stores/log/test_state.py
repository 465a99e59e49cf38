"""The fold of a log: what it is while a commit is being folded in."""

from typing import Any

import pytest

from coord.stores.contract import Commit, Put
from coord.stores.log.state import LogState


def test_an_interrupted_commit_ends_the_moment() -> None:
    """`read_point`: a commit that was not folded in to its end may have changed what was loaded."""
    state = LogState()
    state.apply(1, Commit(puts={"a": Put(b"1")}))
    moment = state.read_point
    broken: Any = {"a": Put(b"2"), "b": None}
    with pytest.raises(AttributeError):
        state.apply(2, Commit(puts=broken))
    assert state.offset == 1
    assert state.changed(Commit({"a": 1}, read_point=moment)) == ["a"]
