"""The record of a follower of the log: its offset, its state, its runner."""

import pytest

from coord.core import keys
from coord.core.errors import Denied, LimitReached, Unsupported
from coord.core.followers import (
    STATE_BYTES_MAX,
    Cursor,
    FailFollower,
    FollowerState,
    ForgetFollower,
    LeadFollower,
    ListFollowers,
    ReadFollower,
    RebuildFollower,
    SaveFollower,
)
from tests.support.rule_harness import T0, RuleHarness

NAME = "metrics"


def save(harness: RuleHarness, offset: int, state: bytes = b"", version: int = 1, runner: str = "") -> int:
    reply: int = harness.run(SaveFollower(NAME, offset, version, state, runner=runner)).reply
    return reply


def test_state_and_offset_are_one_record_that_only_moves_forwards() -> None:
    """A follower that was killed and starts again cannot take back what it has counted."""
    harness = RuleHarness()
    assert [save(harness, 4, b"four"), save(harness, 9, b"nine"), save(harness, 2, b"two")] == [4, 9, 9]
    assert harness.read(keys.cursor(NAME), Cursor) == Cursor(offset=9, at_ms=T0, version=1, state=b"nine")
    assert harness.run(ReadFollower(NAME)).reply == FollowerState(9, 1, b"nine")


def test_a_newer_version_starts_again_and_an_older_one_is_refused() -> None:
    harness = RuleHarness()
    save(harness, 9, b"old")
    assert save(harness, 3, b"new", version=2) == 3
    with pytest.raises(Unsupported, match="a newer coord"):
        save(harness, 12, b"old", version=1)
    assert harness.run(ReadFollower(NAME)).reply.state == b"new"


def test_a_state_that_no_store_could_hold_is_refused() -> None:
    harness = RuleHarness()
    with pytest.raises(LimitReached, match="the limit is"):
        save(harness, 1, b"x" * (STATE_BYTES_MAX + 1))
    assert save(harness, 1, b"x" * STATE_BYTES_MAX) == 1


def test_one_process_runs_a_follower_until_its_lease_ends() -> None:
    """Effects are performed by one process: another one becomes the runner only after the lease."""
    harness = RuleHarness()
    assert harness.run(LeadFollower(NAME, "hub-a", 1000)).reply.leads
    assert harness.run(LeadFollower(NAME, "hub-b", 1000)).reply == FollowerState(runner="hub-a")
    assert harness.run(LeadFollower(NAME, "hub-a", 1000)).reply.leads, "its own lease is renewed"
    assert save(harness, 5, b"a", runner="hub-a") == 5
    for act in (SaveFollower(NAME, 6, 1, b"b", runner="hub-b"), ForgetFollower(NAME)):
        with pytest.raises(Denied, match="run by hub-a"):
            harness.run(act)
    taken = harness.run(LeadFollower(NAME, "hub-b", 1000), T0 + 1000).reply
    assert taken == FollowerState(5, 1, b"a", leads=True, runner="hub-b")
    with pytest.raises(Denied):
        harness.run(SaveFollower(NAME, 7, 1, b"zombie", runner="hub-a"), T0 + 1500)


def test_an_error_is_shown_until_the_follower_goes_on() -> None:
    harness = RuleHarness()
    assert [harness.run(FailFollower(NAME, "no such host")).reply for _ in range(2)] == [True, False]
    (shown,) = harness.run(ListFollowers()).reply
    assert (shown.name, shown.error, shown.failed_ms) == (NAME, "no such host", T0)
    save(harness, 1)
    (shown,) = harness.run(ListFollowers()).reply
    assert (shown.error, shown.failed_ms) == ("", 0)


def test_a_forgotten_follower_is_gone() -> None:
    harness = RuleHarness()
    save(harness, 4)
    assert [harness.run(ForgetFollower(NAME)).reply for _ in range(2)] == [True, False]
    assert not harness.keys("cursor/")


def keep(harness: RuleHarness, offset: int, first: int, version: int = 1) -> None:
    harness.run(SaveFollower(NAME, offset, version, f"at {offset}".encode(), first=first))


def rebuilt(harness: RuleHarness, first: int, version: int = 1) -> tuple[int, FollowerState]:
    """Return from where a follower is computed again, and the state that it starts with."""
    offset: int = harness.run(RebuildFollower(NAME, version, first)).reply
    return offset, harness.run(ReadFollower(NAME)).reply


def test_a_whole_log_is_read_again_from_its_first_entry() -> None:
    harness = RuleHarness()
    keep(harness, 4, 0)
    assert rebuilt(harness, 0) == (0, FollowerState())
    assert rebuilt(harness, 0) == (0, FollowerState()), "there is nothing to compute again"


def test_a_trimmed_log_is_read_again_from_the_oldest_state_without_a_gap() -> None:
    """Otherwise what was trimmed would not be counted any more, and counters would fall."""
    harness = RuleHarness()
    for offset, first in ((10, 0), (20, 5), (30, 5), (40, 11)):
        keep(harness, offset, first)
    assert rebuilt(harness, 11) == (10, FollowerState(10, 1, b"at 10"))
    for offset, first in ((50, 11), (60, 45), (70, 45)):
        keep(harness, offset, first)
    assert rebuilt(harness, 45) == (50, FollowerState(50, 1, b"at 50")), "entry 45 came after the state at 10"
    assert rebuilt(harness, 90) == (50, FollowerState(50, 1, b"at 50")), (
        "more was trimmed than anybody has read"
    )


def test_without_an_older_state_the_saved_one_is_where_it_begins() -> None:
    harness = RuleHarness()
    keep(harness, 40, 0)
    assert rebuilt(harness, 30) == (40, FollowerState(40, 1, b"at 40"))


def test_a_state_of_another_version_is_no_beginning() -> None:
    harness = RuleHarness()
    keep(harness, 10, 5)
    keep(harness, 20, 5, version=2)
    assert rebuilt(harness, 5, version=2) == (20, FollowerState(20, 2, b"at 20"))
    assert rebuilt(harness, 5, version=3) == (0, FollowerState())
    assert not harness.keys("cursor")


def test_a_follower_that_a_process_runs_is_not_computed_again() -> None:
    harness = RuleHarness()
    harness.run(LeadFollower(NAME, "hub-a", 1000))
    with pytest.raises(Denied, match="run by hub-a"):
        harness.run(RebuildFollower(NAME, 1))
