"""Words that people type: durations, resources, numbers, documents."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.transports import arguments


def outcome(read: Callable[[str], Any], text: str) -> Any:
    """Return what was read, or the refusal."""
    try:
        return read(text)
    except Invalid as error:
        return error


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("1h", 3600),
        ("7d", 604_800),
        ("1.5h", 5400),
        ("0.25", 0.25),
        ("4m30s", 270),
        ("1d2h3m4s", 93_784),
        ("366d", arguments.YEAR_S),
    ],
)
def test_a_duration_is_seconds_or_has_units(text: str, seconds: float) -> None:
    """CFL-27: one parser for `90`, `30s`, `5m`, `1h`, `7d`, and for what we print ourselves."""
    assert arguments.duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0s",
        "-5",
        "+5",
        "5 m",
        "5M",
        "m",
        "1m1h",
        "5m5m",
        "1e3",
        "inf",
        "nan",
        "٣",
        "367d",
        "1.",
        "9" * 40,
    ],
)
def test_a_bad_duration_is_invalid_with_a_hint(text: str) -> None:
    """Issue 3, bad input: durations are validated at the edge, and the hint shows good ones."""
    with pytest.raises(Invalid) as caught:
        arguments.duration(text)
    assert "5m" in caught.value.hint


def test_zero_is_a_duration_only_where_it_makes_sense() -> None:
    """Not to wait at all is sensible; a lease of no time is not."""
    assert arguments.duration("0", zero=True) == 0
    with pytest.raises(Invalid):
        arguments.duration("0")


@given(st.text(max_size=50) | st.from_regex(r"[0-9.]{0,6}[smhd]{0,2}[0-9]{0,3}[smhd]?", fullmatch=True))
def test_any_text_is_a_duration_or_invalid(text: str) -> None:
    """Whatever is typed gives seconds within a year, or `Invalid`."""
    found = outcome(arguments.duration, text)
    assert found.hint if isinstance(found, Invalid) else 0 < found <= arguments.YEAR_S


@given(st.integers(min_value=1, max_value=3599))
def test_a_span_reads_back_as_the_same_duration(seconds: int) -> None:
    """LCK-73: `4m30s` is what we print, so it is also what we read."""
    assert arguments.duration(arguments.span(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(270, "4m30s"), (3600, "1h"), (0, "0s"), (-3, "0s"), (93_784, "1d2h"), (59.7, "1m"), (3605, "1h5s")],
)
def test_a_span_is_short(seconds: float, text: str) -> None:
    """LCK-73: the time that is left is told in at most two units."""
    assert arguments.span(seconds) == text


@pytest.mark.parametrize(
    ("word", "resource"),
    [
        ("src/app.py", "file:src/app.py"),
        ("app/[id]/page.tsx", r"file:app/\[id]/page.tsx"),
        ("a*b", r"file:a\*b"),
        ("LICENSE", "file:LICENSE"),
        ("file:what?", r"file:what\?"),
        ("name:a*", "name:a*"),
        ("project:shop:checkout", "project:shop:checkout"),
    ],
)
def test_a_literal_word_is_a_path(word: str, resource: str) -> None:
    """Issue 15: `--literal` says path only; a scheme still decides."""
    assert arguments.resource(word, literal=True) == resource
    assert arguments.resource(word) == word, "the client decides what a word means"


@pytest.mark.parametrize("word", ["", "file:", "name:", "project:"])
def test_an_empty_resource_is_invalid(word: str) -> None:
    """Issue 3, bad input: nothing is no resource."""
    with pytest.raises(Invalid, match="is not a resource"):
        arguments.resource(word)


@given(st.text(max_size=60))
def test_any_word_is_a_resource_or_invalid(word: str) -> None:
    """Whatever is typed keeps its text, or is refused; a literal one is a path that has no wildcards."""
    found = outcome(arguments.resource, word)
    if isinstance(found, Invalid):
        assert word in {"", *arguments.SCHEMES}
    else:
        assert found == word
        assert arguments.resource(word, literal=True).startswith(arguments.SCHEMES)


def test_projects_and_areas_become_resources() -> None:
    """LCK-53, LCK-54, LCK-55: `project:<p>` and `project:<p>:<area>`; neither has a separator in it."""
    assert arguments.project_resource("shop", "") == "project:shop"
    assert arguments.project_resource("shop", "checkout") == "project:shop:checkout"
    for project, area in [("a:b", ""), ("shop", "a/b"), ("a/b", "c")]:
        with pytest.raises(Invalid, match="is not a"):
            arguments.project_resource(project, area)


@pytest.mark.parametrize(("text", "number"), [("5", 5), ("-3", -3), ("007", 7)])
def test_a_number_is_whole(text: str, number: int) -> None:
    """Priorities, fences and pids are whole numbers in plain digits."""
    assert arguments.number(text) == number
    for bad in ("", "1.5", "1_000", "٣", "five", "9" * 30):
        with pytest.raises(Invalid):
            arguments.number(bad)


@given(st.text(max_size=40))
def test_a_document_is_json_or_invalid(text: str) -> None:
    """Blobs: whatever is no JSON is refused, without a trace of the decoder."""
    found = outcome(arguments.document, text)
    assert "JSON" in found.message if isinstance(found, Invalid) else json.loads(text) == found


def test_a_document_that_is_too_deep_is_invalid() -> None:
    """Issue 3, bad input: a nest of brackets does not end the process."""
    assert arguments.document('{"notes": [1, null]}') == {"notes": [1, None]}
    with pytest.raises(Invalid):
        arguments.document("[" * 100_000)
