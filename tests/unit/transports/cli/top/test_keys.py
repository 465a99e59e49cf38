"""Bytes of a terminal become keys, however they are cut into reads."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.transports.cli.top.keys import PASTED_MAX, Keys


def names(*reads: bytes) -> list[str]:
    keys = Keys()
    found = [key for data in reads for key in keys.feed(data)]
    return [key.name for key in found + keys.flush()]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (b"j", ["j"]),
        (b"\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[F", ["up", "down", "page up", "page down", "home", "end"]),
        (b"\x1b", ["escape"]),
        (b"\x1b\x1b", ["escape", "escape"]),
        (
            b"\x1b[Z\t\r\n\x7f\x08\x15",
            ["back tab", "tab", "enter", "enter", "backspace", "backspace", "clear"],
        ),
        ("ä日".encode(), ["ä", "日"]),
        (b"\x1b[<0;10;10Mx", ["x"]),
        (b"\x1b[1;5Cq", ["q"]),
        (b"\x1bqj", ["j"]),
        (b"\x1b[", []),
        (b"\x00\x01j", ["j"]),
        (b"\xff", ["\ufffd"]),
    ],
)
def test_keys_have_names(typed: bytes, expected: list[str]) -> None:
    """Unknown sequences, mouse reports and Alt with a key do nothing; they are no Escape."""
    assert names(typed) == expected
    assert names(*(typed[at : at + 1] for at in range(len(typed)))) == expected


def test_a_pasted_text_is_one_key_and_no_command() -> None:
    """A paste with line breaks and keys in it is a text of one line."""
    (key,) = Keys().feed(b"\x1b[200~q\ny\r\x1b[31mred\x07\x1b[201~")
    assert (key.name, key.text) == ("paste", "q y [31mred")


def test_a_huge_paste_is_cut() -> None:
    keys = Keys()
    found = keys.feed(b"\x1b[200~")
    for _ in range(50):
        found += keys.feed(b"x" * 1000)
    found += keys.feed(b"\x1b[201~j")
    assert [(key.name, len(key.text)) for key in found] == [("paste", PASTED_MAX), ("j", 1)]


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_the_cuts_between_reads_change_nothing(data: bytes, cuts: list[int]) -> None:
    at = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[begin:end] for begin, end in itertools.pairwise(at)]
    assert names(*pieces) == names(data)
