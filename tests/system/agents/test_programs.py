"""The agents are installed once and completely, or not at all."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.agents import programs

WORKING_NPM = """#!/bin/sh
echo "$*" >> "$COUNT"
mkdir -p node_modules/@openai/codex-some-machine/vendor/it/bin
: > node_modules/@openai/codex-some-machine/vendor/it/bin/codex
"""
FAILING_NPM = """#!/bin/sh
mkdir node_modules
exit 1
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    (tmp_path / "bin").mkdir()
    return programs.cache_folder()


def provide_npm(folder: Path, text: str) -> None:
    (folder / "bin/npm").write_text(text)
    (folder / "bin/npm").chmod(0o755)


def test_several_at_once_install_once(cache: Path, tmp_path: Path) -> None:
    """Test processes and checkouts share one installation, pinned by the lock file."""
    provide_npm(tmp_path, WORKING_NPM)
    command = [sys.executable, "-m", "tests.support.agents.programs"]
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: subprocess.run(command, check=False, capture_output=True), range(3)))
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert [call.split()[:2] for call in (tmp_path / "count").read_text().splitlines()] == [
        ["ci", "--ignore-scripts"]
    ]
    assert programs.command_of("codex") == [
        str(cache / "node_modules/@openai/codex-some-machine/vendor/it/bin/codex")
    ]
    assert programs.command_of("claude") is None


def test_a_failed_installation_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    """An incomplete installation counts as none, and the next attempt starts over."""
    provide_npm(tmp_path, FAILING_NPM)
    assert not programs.install()
    assert [path.name for path in cache.parent.iterdir()] == ["lock"]
    provide_npm(tmp_path, WORKING_NPM)
    assert programs.install()


def test_without_npm_nothing_is_installed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without npm no agent is installed, and the tests that need agents are skipped."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert not programs.install()
    assert programs.command_of("codex") is None


def test_the_lock_file_names_no_place_and_pins_all() -> None:
    """Every registry gives the same bytes: each package has a hash, and none has an address."""
    lock = (programs.PINS / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "http" not in lock
    assert lock.count('"integrity"') == lock.count('"node_modules/')
