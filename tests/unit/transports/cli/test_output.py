"""What is printed: JSON, tables, lines; nothing stored reaches a terminal as a command to it."""

import io
import json
import os
import subprocess
import sys
import unicodedata

import msgspec
import pytest

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

    def __init__(self, *, terminal: bool, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        self.terminal = terminal
        super().__init__(self.bytes, encoding=encoding)

    def isatty(self) -> bool:
        return self.terminal

    @property
    def text(self) -> str:
        return self.bytes.getvalue().decode()


def printed(answer: Answer, monkeypatch, *, terminal: bool = False, form: str = "") -> tuple[int, str, str]:
    out, err = Screen(terminal=terminal), Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    output.choose_form(form)
    code = output.show(answer)
    output.choose_form("")
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
    assert printed(answer, monkeypatch, terminal=True, form="json")[1] == '{"ok":true,"locks":[1]}\n'


def test_stored_text_cannot_command_a_terminal(monkeypatch) -> None:
    """Escapes, C1 controls and bidi overrides are shown as text: in the line, in the table and in JSON."""
    answer = Answer({"subject": NASTY}, NASTY, [{"subject": NASTY}], ("subject",))
    for form in output.FORMS:
        _, out, err = printed(answer, monkeypatch, terminal=True, form=form)
        for text in (out.replace("\n", ""), err.rstrip("\n")):
            assert [each for each in text if unicodedata.category(each) in {"Cc", "Cf"}] == []
        assert "\\x1b" in err
    assert json.loads(printed(answer, monkeypatch)[1])["subject"] == NASTY


@pytest.mark.parametrize("stdout", ["ascii", "latin-1"])
def test_json_stays_valid_where_stdout_is_not_utf_8(stdout: str, monkeypatch) -> None:
    """What a stream cannot encode is escaped as JSON escapes it, not as Python does."""
    out = Screen(terminal=False, encoding=stdout)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", Screen(terminal=False))
    output.show(Answer({"subject": "zwölf 🔒"}))
    assert json.loads(out.bytes.getvalue().decode("ascii"))["subject"] == "zwölf 🔒"


def test_a_wide_table_leaves_nothing_out(monkeypatch) -> None:
    """`-o wide`: every column, whole, and times as JSON has them; without rows it shows the fields."""
    rows = [{"a": "x" * 150, "b": "", "sent_at": "2023-11-14T22:13:20.123Z"}]
    shown = printed(Answer({}, "", rows, ("a", "b", "sent_at")), monkeypatch, form="wide")[1]
    assert shown.splitlines()[1] == f"{'x' * 150}  -  2023-11-14T22:13:20.123Z"
    for form in ("wide", "table"):
        shown = printed(Answer({"state": "done"}, ""), monkeypatch, form=form)[1]
        assert shown == "FIELD  VALUE\nstate  done\n"
    assert printed(Answer({"state": "done"}, ""), monkeypatch, terminal=True)[1] == ""


def test_a_pipe_has_the_width_that_the_environment_gives(monkeypatch) -> None:
    """`watch` runs a command in a pipe and sets COLUMNS."""
    rows = [{"a": "short", "b": "x" * 100}]
    monkeypatch.setenv("COLUMNS", "30")
    shown = printed(Answer({}, "", rows, ("a", "b")), monkeypatch, form="table")[1]
    assert shown == f"A      B\nshort  {'x' * 22}…\n"


SHOW = """
import sys
from coord.transports.cli.output import Answer, show
sys.exit(show(Answer({'n': 1}, 'line')))
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
