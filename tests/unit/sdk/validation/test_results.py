"""Result data: every JSON value comes back as it was, and everything else is refused, quickly."""

import enum
import json
import uuid
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.sdk.validation.results import DEPTH_MAX, VALUES_MAX, to_json
from tests.conftest import SOAK

quick = settings(max_examples=10_000 if SOAK else 100)

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
json_values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
json_objects = st.dictionaries(texts, json_values, max_size=5)


class Dated(msgspec.Struct):
    """Something msgspec could write, but JSON cannot say."""

    day: str


class Color(enum.Enum):
    RED = "red"


REFUSED: dict[str, Any] = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "a set": {1},
    "a frozenset": frozenset([1]),
    "bytes": b"x",
    "a bytearray": bytearray(b"x"),
    "a datetime": datetime(2026, 1, 1, tzinfo=UTC),
    "a UUID": uuid.UUID(int=1),
    "a Decimal": Decimal("1.5"),
    "a complex": 1j,
    "an object": object(),
    "a struct": Dated("monday"),
    "an enum": Color.RED,
    "a path": PurePosixPath("a"),
    "a range": range(3),
    "a generator": iter([1]),
    "a function": len,
    "an int key": {1: "x"},
    "a None key": {None: "x"},
    "a bytes key": {b"a": 1},
    "a tuple key": {(1, 2): 1},
    "2**64": 2**64,
    "-2**63-1": -(2**63) - 1,
    "a huge int": 10**5_000,
    "a lone surrogate": "\ud800",
    "a surrogate key": {"\udfff": 1},
    "raw JSON": msgspec.Raw(b"{}"),
}


def plainly(value: Any) -> Any:
    """The value as plain JSON shows it: tuples are lists."""
    return json.loads(json.dumps(value))


@quick
@given(json_objects)
@example({"text": "\u2028\0\x7f😀", "n": -0.0, "big": 2**64 - 1, "small": -(2**63)})
def test_json_comes_back(data: dict[str, Any]) -> None:
    """CLM-32, CLM-52: a result is any JSON object, and it is kept exactly."""
    assert json.loads(to_json("result_data", data)) == data


@quick
@given(json_objects, st.sampled_from(sorted(REFUSED)), st.lists(st.booleans(), max_size=4))
def test_everything_else_is_refused(data: dict[str, Any], name: str, path: list[bool]) -> None:
    """CLM-52: what JSON cannot say is Invalid, however deep it hides, and the error says what and whose."""
    hidden = REFUSED[name]
    for in_list in path:
        hidden = [1, hidden] if in_list else {"in": hidden}
    with pytest.raises(Invalid, match="result_data") as raised:
        to_json("result_data", {**data, "hidden": hidden})
    assert raised.value.hint
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("value", [None, [], "{}", b"{}", 5, True, [("a", 1)], {1}, object()])
def test_a_result_is_an_object(value: object) -> None:
    """CLM-32: result_data is a dict, as the document says; the hint says how to wrap another value."""
    with pytest.raises(Invalid, match="not a dict") as raised:
        to_json("result_data", value)
    assert "wrap" in raised.value.hint


@pytest.mark.parametrize("wrap", [lambda inner: {"a": inner}, lambda inner: [inner], lambda inner: (inner,)])
def test_depth(wrap) -> None:
    """AMB-20: 64 levels are accepted, 65 refused; the object itself is the first."""
    value: Any = []
    for _ in range(DEPTH_MAX - 2):
        value = wrap(value)
    assert json.loads(to_json("result_data", {"a": value})) == plainly({"a": value})
    with pytest.raises(Invalid, match="64 levels"):
        to_json("result_data", {"a": wrap(value)})


def test_what_contains_itself_is_refused() -> None:
    """AMB-20: cycles end in a refusal, also where each round doubles what there is to look at."""
    once: dict[str, Any] = {}
    once["self"] = once
    twice: list[Any] = []
    twice += [twice, twice]
    for data in (once, {"a": twice}):
        with pytest.raises(Invalid, match="contains itself"):
            to_json("result_data", data)


def test_what_unfolds_without_end_is_refused() -> None:
    """AMB-20: shared parts that would make a gigantic document are refused before it is written."""
    data: list[Any] = []
    for _ in range(DEPTH_MAX - 2):
        data = [data, data]
    with pytest.raises(Invalid, match=f"more than {VALUES_MAX} values"):
        to_json("result_data", {"a": data})


def test_shared_parts_are_fine() -> None:
    """CLM-32: the same list twice is not a cycle."""
    shared = [1, {"x": 2}]
    assert json.loads(to_json("result_data", {"a": shared, "b": shared})) == {"a": shared, "b": shared}


def test_tuples_and_ordered_dicts_are_json() -> None:
    """CLM-52: what is a list or a dict in all but name is taken as such."""
    data = {"pair": (1, 2), "ordered": OrderedDict(b=1, a=2)}
    assert json.loads(to_json("result_data", data)) == {"pair": [1, 2], "ordered": {"b": 1, "a": 2}}
