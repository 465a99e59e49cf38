"""Check arguments: valid values come back, and every rejection has a hint."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import Invalid
from coord.sdk.validation import arguments


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (lambda value: arguments.one_line("reason", value), "x" * arguments.LINE_CHARS_MAX),
        (lambda value: arguments.body(value, broadcast=False), "a\nb" + "x" * (64 * 1024 - 3)),
        (arguments.kind, "hand.off-2_x"),
        (arguments.blob, {"a": [1, None]}),
        (arguments.capabilities, None),
        (arguments.capabilities, {"testing": 1.2, "doc": 0.0}),
        (arguments.priority, -arguments.PRIORITY_MAX),
        (arguments.hops, 0),
        (arguments.fence, 2**53 - 1),
    ],
)
def test_a_valid_value_is_returned(check: Callable[[Any], object], value: object) -> None:
    """The limits belong to the valid values."""
    assert check(value) == value


@pytest.mark.parametrize(
    ("check", "value", "problem"),
    [
        (lambda value: arguments.one_line("reason", value), "a\nb", "the reason is not one line"),
        (lambda value: arguments.one_line("reason", value), "x" * 501, "the reason is not one line"),
        (lambda value: arguments.one_line("reason", value), 5, "the reason is not one line"),
        (lambda value: arguments.body(value, broadcast=True), "x" * (8 * 1024 + 1), "the limit is 8192"),
        (lambda value: arguments.body(value, broadcast=False), "a\0b", "not text"),
        (lambda value: arguments.body(value, broadcast=False), "\ud800", "not text"),
        (arguments.kind, "Warn!", "not a message kind"),
        (arguments.blob, {"a": "x" * arguments.BLOB_BYTES_MAX}, "the limit is 32768"),
        (arguments.blob, [1], "not a dict"),
        (arguments.capabilities, ["testing"], "not a table of capabilities"),
        (arguments.capabilities, {"a b": 1}, "not a capability"),
        (arguments.capabilities, {"testing": True}, "not an efficiency for testing"),
        (arguments.capabilities, {"testing": 10.1}, "not an efficiency for testing"),
        (arguments.priority, 101, "not a priority"),
        (arguments.priority, True, "not a priority"),
        (arguments.hops, -1, "not a number of hops"),
        (arguments.fence, 0, "not a fence"),
    ],
)
def test_an_invalid_value_is_rejected(check: Callable[[Any], object], value: object, problem: str) -> None:
    """The message names the problem, and the hint describes a valid value."""
    with pytest.raises(Invalid, match=problem) as rejected:
        check(value)
    assert rejected.value.hint


def test_durations_become_milliseconds() -> None:
    """A duration is at least `min_s` and at most 30 days; NaN and booleans are not durations."""
    assert arguments.milliseconds("lease", 1.5) == 1500
    assert arguments.milliseconds("wait", 0, min_s=0) == 0
    for wrong in (0.5, True, "5", float("nan"), arguments.DURATION_S_MAX + 1):
        with pytest.raises(Invalid, match="not a lease in seconds"):
            arguments.milliseconds("lease", wrong)
