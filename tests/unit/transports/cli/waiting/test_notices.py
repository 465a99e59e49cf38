"""Notices for people: only if the user asks for them, never through a shell, and silent where they fail."""

import os
import sys
from pathlib import Path

import pytest

from coord.core.errors import Invalid
from coord.transports.cli.waiting.notices import Notices, find_notices


def configured(tmp_path: Path, text: str) -> dict[str, str]:
    (tmp_path / "coord").mkdir(exist_ok=True)
    (tmp_path / "coord" / "coord.toml").write_text(text)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("file", "variable", "kinds"),
    [
        ("", None, set()),
        ("[notify]\nbell = true\ndesktop = false\n", None, {"bell"}),
        ("[notify]\nbell = true\n", "", set()),
        ("", "bell, desktop", {"bell", "desktop"}),
    ],
)
def test_notices_are_off_unless_the_user_asks(
    file: str, variable: str | None, kinds: set[str], tmp_path: Path
) -> None:
    """The variable wins over the user's file."""
    environ = configured(tmp_path, file) | ({} if variable is None else {"COORD_NOTIFY": variable})
    assert find_notices(environ)._kinds == kinds


@pytest.mark.parametrize(
    ("file", "variable"), [("", "beep"), ("[notify]\nbell = 1\n", None), ("notify = 1", None)]
)
def test_an_unknown_setting_is_an_error(file: str, variable: str | None, tmp_path: Path) -> None:
    """A typo is told instead of being taken for off."""
    environ = configured(tmp_path, file) | ({} if variable is None else {"COORD_NOTIFY": variable})
    with pytest.raises(Invalid) as caught:
        find_notices(environ)
    assert caught.value.hint


def test_the_desktop_gets_one_clean_argument(tmp_path: Path, monkeypatch) -> None:
    """No shell, no markup, no option, no control character: the text is one argument after `--`."""
    program = tmp_path / "notify-send"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'got')!r}, 'w').write(repr(sys.argv[1:]))\n"
    )
    program.chmod(0o755)
    os.mkfifo(tmp_path / "got")
    monkeypatch.setenv("PATH", str(tmp_path))
    Notices(frozenset(["desktop"])).send("--x <b>$(touch y)</b> \x1b[1m" + "z" * 500)
    *flags, title, text = eval((tmp_path / "got").read_text())
    assert (flags, title) == (["--app-name=coord", "--"], "coord")
    assert text.startswith("--x &lt;b&gt;$(touch y)&lt;/b&gt; \\x1b[1mzz")
    assert len(text) < 300


def test_a_missing_program_is_silent(tmp_path: Path, monkeypatch, capfd) -> None:
    """Not every machine has a desktop."""
    monkeypatch.setenv("PATH", str(tmp_path))
    Notices(frozenset(["desktop", "bell"])).send("text")
    assert capfd.readouterr() == ("", "")
