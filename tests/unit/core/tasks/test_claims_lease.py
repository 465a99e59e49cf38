"""A lease by our own clock: from when it counts, when it is renewed, when it is trusted no more."""

import pytest

from coord.sdk.client.lease import JITTER, RETRY_S, Lease
from coord.sdk.client.lease import _jitter as renewal_jitter


def test_a_lease_counts_from_the_moment_of_asking() -> None:
    """SDK-3: whatever time the answer took is lost to us, never to the others."""
    lease = Lease(300, asked=1000)
    assert lease.until == 1300
    lease.renewed(300, asked=1120)
    assert lease.until == 1420


def test_it_is_renewed_at_forty_percent() -> None:
    """SCH-12, Issue 4, part 9: there is time for many more tries before it ends."""
    assert Lease(300, asked=0).pause_s == pytest.approx(120)


def test_renewals_are_spread() -> None:
    """SCH-13: runners that started together do not renew at the same moments, but near them."""
    factors = {renewal_jitter() for _ in range(200)}
    assert len(factors) > 10
    assert 1 - JITTER <= min(factors) < 1 < max(factors) <= 1 + JITTER


@pytest.mark.parametrize(("now", "trusted"), [(0, True), (289.9, True), (290, False), (300, False)])
def test_it_is_trusted_until_its_margin(now: float, trusted: bool) -> None:
    """SDK-4: before its end there is time left to stop whoever works under it."""
    assert Lease(300, asked=0, margin_s=10).trusted(now) is trusted


def test_tries_that_fail_come_back_sooner_than_the_end() -> None:
    """SDK-4, REC-12: exponential backoff, and several more tries inside of what is left of the lease."""
    lease = Lease(300, asked=0)
    pauses = []
    for _ in range(9):
        lease.missed(120)
        pauses.append(lease.pause_s)
    assert pauses[:4] == [pytest.approx(RETRY_S * factor) for factor in (1, 2, 4, 8)]
    assert max(pauses) == (300 - 120) / 4
    lease.missed(299.9)
    assert lease.pause_s == RETRY_S / 2, "near the end no less than this, so that nobody spins"


def test_a_renewal_forgets_the_tries_that_failed() -> None:
    """SDK-4: an outage that is over does not make the next one worse."""
    lease = Lease(300, asked=0)
    for _ in range(5):
        lease.missed(120)
    lease.renewed(300, asked=130)
    assert lease.pause_s == pytest.approx(120)
    lease.missed(250)
    assert lease.pause_s == pytest.approx(RETRY_S)
