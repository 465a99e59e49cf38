"""Stored events: every reader finds the same ones unreadable."""

import pytest

from coord.core.events import DEPTH_MAX, read_event


def nested(levels: int) -> bytes:
    return b'{"event":"x","a":' + b"[" * levels + b"]" * levels + b"}"


def test_an_event_is_read() -> None:
    assert read_event(b'{"event":"x","a":[{"b":1}]}') == {"event": "x", "a": [{"b": 1}]}


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{", b"\xff", b'{"a":NaN}', b'{"a":"\\ud800"}'])
def test_what_is_no_event_is_unreadable(raw: bytes) -> None:
    assert read_event(raw) is None


def test_an_event_that_nests_too_deeply_is_unreadable() -> None:
    """A reader with less room on its stack could not write it again."""
    assert read_event(nested(DEPTH_MAX - 1)) is not None
    for levels in (DEPTH_MAX, 500, 990, 100_000):
        assert read_event(nested(levels)) is None
