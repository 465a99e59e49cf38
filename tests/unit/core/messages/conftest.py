"""The lock harness with the sessions that send each other messages."""

import pytest

from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    harness = LockHarness()
    harness.beat("ann")
    harness.beat("bob")
    return harness
