"""A coord that something may remove at any time is recognised, and the command that helps is named."""

import sys
import tempfile
from pathlib import Path

import pytest

from coord.integrations.setup import ephemeral
from coord.integrations.setup.ephemeral import ephemeral_folder, is_ephemeral, stable_command
from tests.support.setup_folders import write

LAYOUTS = [
    (".cache/uv/archive-v0/Zq3x/", True),
    (".cache/uv/builds-v0/.tmpX1/", True),
    (".cache/pipx/1f2e3d/", True),
    (".local/share/pipx/.cache/1f2e/", True),
    ("Library/Caches/uv/archive-v0/Zq3x/", True),
    ("elsewhere/uv-cache/archive-v0/Zq3x/", True),
    ("work/pip-build-env-x1/overlay/", True),
    (".local/share/uv/tools/coord/", False),
    (".local/share/pipx/venvs/coord/", False),
    (".local/pipx/venvs/coord/", False),
    ("project/.venv/", False),
    (".cache/checkout/.venv/", False),
]


@pytest.fixture(autouse=True)
def stable_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the folder of the tests, which is temporary itself, count as permanent."""
    monkeypatch.setattr(ephemeral, "TEMPORARY", ("/nowhere",))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/nowhere")


@pytest.mark.parametrize(("layout", "expected"), LAYOUTS)
def test_where_a_program_does_not_stay(tmp_path: Path, layout: str, expected: bool) -> None:
    """Issue 15: the caches of uvx and pipx run, builds of pip; not what a person installed."""
    write(tmp_path / "elsewhere/uv-cache/CACHEDIR.TAG", "Signature\n")
    write(tmp_path / ".cache/checkout/.git/HEAD", "ref: refs/heads/main\n")
    place = tmp_path / layout
    write(place / "pyvenv.cfg", "home = /usr\n")
    write(place / "CACHEDIR.TAG", "uv and virtualenv put one into each environment\n")
    assert is_ephemeral(str(place), {"HOME": str(tmp_path)}) is expected
    assert is_ephemeral(str(place / "lib/python3/site-packages/coord"), {"HOME": str(tmp_path)}) is expected


def test_temporary_folders_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment below /tmp, or below the folder that a variable names."""
    assert not is_ephemeral(f"{tmp_path}/venv", {"HOME": "/home/ada"})
    assert is_ephemeral(f"{tmp_path}/venv", {"HOME": "/home/ada", "UV_CACHE_DIR": str(tmp_path)})
    monkeypatch.setattr(ephemeral, "TEMPORARY", (str(tmp_path),))
    assert is_ephemeral(f"{tmp_path}/venv", {"HOME": "/home/ada"})
    monkeypatch.setattr(sys, "prefix", f"{tmp_path}/venv")
    assert ephemeral_folder({"HOME": "/home/ada"}) == f"{tmp_path}/venv"


@pytest.mark.parametrize(
    ("installer", "words"), [("uv", "uv tool install "), ("pipx", "pipx install "), ("", "python3 -m venv ")]
)
def test_the_command_that_installs_it_for_good(tmp_path: Path, installer: str, words: str) -> None:
    """The tool that is on the PATH installs the same source; then the hooks are written again."""
    if installer:
        write(tmp_path / installer, "#!/bin/sh\n", 0o755)
    found = stable_command({"PATH": str(tmp_path)})
    assert (found.startswith(words), found.endswith("coord init --yes")) == (True, True)
