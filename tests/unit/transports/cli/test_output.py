"""What is printed: JSON, tables, lines; nothing stored reaches a terminal as a command to it."""

import io
import json
import os
import subprocess
import sys
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.transports import exit_codes
from coord.transports.cli import output
from coord.transports.cli.output import Answer

NASTY = "\x1b]0;owned\x07 \x9b31m \u202eevil\u2066 \x7f \r\n tab\t"


class Inner(msgspec.Struct):
    """A reply within a reply."""

    expires_ms: int
    blob: dict[str, object]


class Outer(msgspec.Struct):
    """A reply with a moment, a duration, others below it, and data of a user."""

    at_ms: int
    left_s: float
    inner: list[Inner]
    never_ms: int = 0


class Screen(io.TextIOWrapper):
    """A stdout in memory that says whether it is a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        self.bytes = io.BytesIO()
        self.terminal = terminal
        super().__init__(self.bytes, encoding="utf-8")

    def isatty(self) -> bool:
        return self.terminal

    @property
    def text(self) -> str:
        return self.bytes.getvalue().decode()


def printed(
    answer: Answer, monkeypatch, *, terminal: bool = False, as_json: bool = False
) -> tuple[int, str, str]:
    out, err = Screen(terminal=terminal), Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    code = output.show(answer, as_json=as_json)
    err.flush()
    return code, out.text, err.text


def test_moments_are_shown_in_utc_and_data_of_users_stays() -> None:
    """CFL-28, DESIGN §8: `…_ms` becomes `…_at` in RFC 3339 with Z, `…_s` stays, and a blob is untouched."""
    blob: dict[str, object] = {"seen_ms": 5, "nested": {"at_ms": 7}}
    shown = output.fields_of(Outer(1_700_000_000_123, 2.5, [Inner(1_000, blob)]))
    assert shown == {
        "at_at": "2023-11-14T22:13:20.123Z",
        "left_s": 2.5,
        "inner": [{"expires_at": "1970-01-01T00:00:01.000Z", "blob": blob}],
        "never_at": None,
    }


def test_json_begins_with_ok_and_ends_with_a_newline(monkeypatch) -> None:
    """CLI-25, CFL-26, PRB-20: one object on stdout with `ok` first, one line for people on stderr."""
    code, out, err = printed(Answer({"locks": []}, "Lock acquired ✓"), monkeypatch)
    assert (code, out, err) == (0, '{"ok":true,"locks":[]}\n', "Lock acquired ✓\n")


def test_a_failure_has_code_message_and_hint(monkeypatch) -> None:
    """DESIGN §8: when `ok` is false there are `error.code`, `error.message` and `error.hint`."""
    answer = output.failed(exit_codes.Failure(4, "not_found", "no such lock", "see coord locks"))
    code, out, err = printed(answer, monkeypatch)
    assert code == 4
    assert json.loads(out) == {
        "ok": False,
        "error": {"code": "not_found", "message": "no such lock", "hint": "see coord locks"},
    }
    assert err == "coord: no such lock (see coord locks)\n"


def test_a_terminal_gets_a_table_unless_json_is_asked_for(monkeypatch) -> None:
    """DESIGN §8: a terminal on stdout gets a readable table unless `--json`."""
    answer = Answer(
        {"locks": [1]}, "", [{"resource": "file:a", "expires_in": None}], ("resource", "expires_in")
    )
    assert printed(answer, monkeypatch, terminal=True)[1] == "RESOURCE  EXPIRES IN\nfile:a    -\n"
    assert printed(answer, monkeypatch, terminal=True, as_json=True)[1] == '{"ok":true,"locks":[1]}\n'


def test_stored_text_cannot_command_a_terminal(monkeypatch) -> None:
    """Escapes, C1 controls and bidi overrides are shown as text: in the line, in the table and in JSON."""
    answer = Answer({"subject": NASTY}, NASTY, [{"subject": NASTY}], ("subject",))
    for as_json in (False, True):
        _, out, err = printed(answer, monkeypatch, terminal=True, as_json=as_json)
        for text in (out.replace("\n", ""), err.rstrip("\n")):
            assert [each for each in text if unicodedata.category(each) in {"Cc", "Cf"}] == []
        assert "\\x1b" in err
    assert json.loads(printed(answer, monkeypatch)[1])["subject"] == NASTY


@pytest.mark.parametrize(
    ("text", "cells"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("ｆ", 2), ("", 0), ("🔒", 2)]
)
def test_wide_characters_take_two_cells(text: str, cells: int) -> None:
    """A table stays aligned with East Asian text and with combined accents."""
    assert output.cells_wide(text) == cells


@given(
    st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60)), min_size=1, max_size=5),
    st.integers(min_value=20, max_value=120),
)
def test_no_line_of_a_table_is_wider_than_the_terminal(cells: list[tuple[str, str]], width: int) -> None:
    """A table is cut to the terminal's width, whatever is in it, and has one line for each row."""
    made = output.table([{"a": one, "b": two} for one, two in cells], ("a", "b"), width)
    lines = made.split("\n")
    assert len(lines) == len(cells) + 2
    assert all(output.cells_wide(line) <= width for line in lines)


def test_a_cut_cell_shows_that_it_is_cut() -> None:
    """What does not fit ends with an ellipsis, and the widest column gives way first."""
    made = output.table([{"a": "short", "b": "x" * 100}], ("a", "b"), 30)
    assert made == f"A      B\nshort  {'x' * 22}…\n"


SHOW = """
import sys
from coord.transports.cli.output import Answer, show
sys.exit(show(Answer({'n': 1}, 'line'), as_json=False))
"""


def run_show(redirect: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$0" -c "$1" {redirect}', sys.executable, SHOW],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )


def test_a_closed_pipe_is_no_error() -> None:
    """`coord locks | head -0`: who does not want to hear more is not told of it."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-c", SHOW], stdout=nobody, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"line\n")


def test_a_full_disk_is_told_and_no_success() -> None:
    """Issue 3, bad input: an answer that cannot be written is not a success, for nobody read it."""
    done = run_show("> /dev/full")
    assert done.returncode == exit_codes.TRY_AGAIN
    assert "cannot write the answer: No space left on device" in done.stderr


def test_closed_streams_are_no_defect() -> None:
    """`coord … >&- 2>&-` does what it should and ends well."""
    assert run_show(">&- 2>&-").returncode == 0
