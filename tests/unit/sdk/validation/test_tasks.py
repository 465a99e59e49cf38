"""Check the fields of a new task: tracks, words, times and limits."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from coord.core.errors import Invalid
from coord.sdk.validation.tasks import NEEDS_MAX, new_task, timestamp_ms, words

NOON_MS = 1_772_366_400_000


def test_the_track_follows_from_the_id() -> None:
    """TID-1: an id of the track grammar gives the track, unless the caller names one."""
    assert new_task("B-003-dashboard").track == "B"
    assert new_task("8.2").track == ""
    assert new_task("8.2", track="Q").track == "Q"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (NOON_MS, NOON_MS),
        ("2026-03-01T12:00:00Z", NOON_MS),
        (datetime(2026, 3, 1, 12, tzinfo=UTC), NOON_MS),
        (datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2))), NOON_MS),
        (datetime(2026, 3, 1, 12), NOON_MS),  # noqa: DTZ001 - a time without a zone is UTC
        (date(2026, 3, 1), NOON_MS - 12 * 3_600_000),
    ],
)
def test_a_time_may_be_given_in_several_forms(value: object, expected: int) -> None:
    """Epoch milliseconds, RFC 3339, a datetime or a date."""
    assert timestamp_ms("deadline", value) == expected


@pytest.mark.parametrize("value", ["soon", 0, -1, True, 10**13, 1.5, None])
def test_other_values_are_no_time(value: object) -> None:
    """The hint shows a valid time."""
    with pytest.raises(Invalid, match="is not a deadline") as rejected:
        timestamp_ms("deadline", value)
    assert "2026-03-01T12:00:00Z" in (rejected.value.hint or "")


def test_words_are_listed_once() -> None:
    """Empty and repeated words are dropped; the order stays."""
    assert words("type", ["b", "", "a", "b"]) == ("b", "a")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"type": "a b"}, "is not a type"),
        ({"role": ".x"}, "is not a role"),
        ({"track": "x" * 33}, "is not a track"),
        ({"needs": "internet"}, "need is 'internet', not a list"),
        ({"needs": [f"n{n}" for n in range(NEEDS_MAX + 1)]}, "9 needs; the limit is 8"),
        ({"depends_on": 5}, "depends_on is 5, not a list"),
        ({"estimate_s": False}, "is not a time estimate"),
        ({"estimate_s": -1}, "is not a time estimate"),
        ({"retries_max": 101}, "is not a number of retries"),
        ({"description": "a\nb"}, "the description is not one line"),
    ],
)
def test_an_invalid_field_is_rejected(fields: dict[str, Any], problem: str) -> None:
    """The message names the field, and the hint describes a valid value."""
    with pytest.raises(Invalid, match=problem) as rejected:
        new_task("a", **fields)
    assert rejected.value.hint
