"""Tables: they fit, they say which row is which, and nothing in them commands a terminal."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.transports.cli.output import timestamp
from coord.transports.cli.table import ago, cells_wide, paragraphs, table, wrapped


@pytest.mark.parametrize(
    ("text", "cells"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("ｆ", 2), ("", 0), ("🔒", 2), ("a\ufe0f", 1)],
)
def test_wide_characters_take_two_cells(text: str, cells: int) -> None:
    """A table stays aligned with East Asian text and with combined accents."""
    assert cells_wide(text) == cells


CELLS = st.lists(
    st.tuples(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60)), min_size=1, max_size=5
)


@given(CELLS, st.integers(min_value=20, max_value=120), st.booleans())
def test_no_line_of_a_table_is_wider_than_the_terminal(
    cells: list[tuple[str, str, str]], width: int, colours: bool
) -> None:
    """Whatever is in it, a table fits the terminal, and colours take no cells."""
    rows = [{"a": one, "b": two, "state": three} for one, two, three in cells]
    lines = table(rows, ("a", "b", "state"), width, colours=colours).split("\n")
    assert all(cells_wide(re.sub("\x1b\\[[0-9]*m", "", line)) <= width for line in lines)


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs")), max_size=200), st.integers(2, 60))
def test_wrapping_loses_no_character(text: str, room: int) -> None:
    """Lines that are joined again have all the characters, and none is too wide."""
    lines = wrapped(text, room)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cells_wide(line) <= room for line in lines)


def test_a_cut_cell_shows_that_it_is_cut() -> None:
    """What does not fit ends with an ellipsis, and the widest column gives way first."""
    made = table([{"a": "short", "b": "x" * 100}], ("a", "b"), 30)
    assert made == f"A      B\nshort  {'x' * 22}…\n"


def test_the_column_that_names_a_row_is_never_cut() -> None:
    """Where the columns do not fit, each row is a block: its name, then what it has."""
    rows = [{"resource": "file:" + "x" * 30, "mode": "write", "agent": "", "owner": "o" * 30}]
    made = table(rows, ("resource", "mode", "agent", "owner"), 40)
    assert made == f"file:{'x' * 30}\n  mode: write\n  owner: {'o' * 30}\n"
    rows[0]["owner"] = "otto"
    assert table(rows, ("resource", "mode", "agent", "owner"), 40).endswith("\n  mode: write · owner: otto\n")


def test_columns_without_a_value_give_way_first() -> None:
    """A column that says nothing is left out before another one is cut."""
    rows = [{"a": "x" * 20, "empty_column": "", "b": "y" * 20}]
    assert table(rows, ("a", "empty_column", "b"), 44) == f"A{' ' * 21}B\n{'x' * 20}  {'y' * 20}\n"


def test_sentences_continue_on_the_next_line() -> None:
    """A hint that is cut helps nobody."""
    made = table([{"check": "hooks", "hint": "run coord init to repair them"}], ("check", "hint"), 31)
    assert made == "CHECK  HINT\nhooks  run coord init to repair\n       them\n"


def test_times_and_durations_read_as_people_say_them() -> None:
    """`5m` and `3 s ago` in a table; whole tables keep the time itself."""
    at = timestamp(round(time.time() * 1000) - 3_500)
    row = {"sent_at": at, "lease_s": 300.0}
    assert table([row], ("sent_at", "lease_s"), 80) == "SENT     LEASE\n3 s ago  5m\n"
    assert f"{at}  5m" in table([row], ("sent_at", "lease_s"), 80, whole=True)
    assert ago("2023-11-14T22:13:20.123Z").endswith("d ago")
    assert ago(timestamp(round(time.time() * 1000) + 270_400) or "") == "in 4m30s"
    assert ago("some day") == "some day"


def test_states_have_colours_that_do_not_disturb_the_columns() -> None:
    """Alignment counts cells: the same table with colours is the same text without them."""
    rows = [
        {"name": "ada", "state": "live", "expires_in": "30s", "expires_in_s": 30.0},
        {"name": "eve", "state": "blocked: waiting for a.py", "expires_in": "5m", "expires_in_s": 300.0},
        {"name": "bob", "state": "dead", "expires_in": "5m", "expires_in_s": 300.0},
    ]
    columns = ("name", "state", "expires_in")
    made = table(rows, columns, 80, colours=True)
    assert "\x1b[32mlive" in made
    assert "\x1b[31mdead" in made
    assert "\x1b[33mblocked: waiting for a.py" in made
    assert "\x1b[33m30s" in made
    assert re.sub("\x1b\\[[0-9]*m", "", made).split() == table(rows, columns, 80).split()


def test_a_text_keeps_its_lines_and_its_indentation() -> None:
    """A message may contain code."""
    assert paragraphs("def f():\n\n\treturn 1\x1b", 40, "  ") == "  def f():\n\n      return 1\\x1b\n"
