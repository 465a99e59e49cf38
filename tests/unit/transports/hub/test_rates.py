"""Requests a second and at the same time: each token has its own limit."""

import pytest

from coord.transports.hub.problems import HttpError
from coord.transports.hub.rates import BUCKETS_MAX, Rates, TokenBucket


def test_a_bucket_is_emptied_and_filled() -> None:
    bucket = TokenBucket(2.0, 3.0)
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.wait_s() == 0.5
    assert bucket.take(100.4) is False
    assert bucket.take(100.5) is True
    assert [bucket.take(1000.0) for _ in range(4)] == [True, True, True, False]


def test_a_clock_that_goes_back_fills_nothing() -> None:
    bucket = TokenBucket(1.0, 1.0)
    assert [bucket.take(50.0), bucket.take(10.0), bucket.take(10.5)] == [True, False, False]


def test_each_token_has_its_own_rate() -> None:
    rates = Rates(1.0)
    for _ in range(2):
        rates.check("a", 0.0)
    with pytest.raises(HttpError) as refused:
        rates.check("a", 0.0)
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    rates.check("b", 0.0)
    rates.check("a", 1.0)


def test_requests_under_way_are_limited() -> None:
    rates = Rates(running_max=2)
    with rates.running("a"), rates.running("a"), rates.running("b"):
        with pytest.raises(HttpError) as refused, rates.running("a"):
            pass
        assert refused.value.status == 429
    with rates.running("a"):
        assert dict(rates._running) == {"a": 1}


def test_tokens_that_nobody_uses_cost_no_memory() -> None:
    rates = Rates()
    for number in range(BUCKETS_MAX + 5):
        rates.check(str(number), 0.0)
    assert len(rates._buckets) == BUCKETS_MAX
