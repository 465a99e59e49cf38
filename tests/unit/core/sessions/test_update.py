"""Heartbeats and what a session reports about itself."""

import pytest

from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def test_heartbeats_are_coalesced(harness: LockHarness) -> None:
    """SES-13, SES-35: within 15 s of the last sign of life nothing is written."""
    assert harness.beat("ann").written
    harness.pass_time(14_999)
    assert not harness.beat("ann").written
    harness.pass_time(1)
    assert harness.beat("ann").written
