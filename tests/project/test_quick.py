"""`make quick`: which tests it runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.quick import (
    FOLDERS_LEFT_OUT,
    ROOT_OF_FOLDERS,
    STORES_LEFT_OUT,
    is_fit,
    is_left_out,
    use_memory,
)

TESTS = Path(__file__).resolve().parents[1]


def collected(*places: str) -> list[str]:
    """Return the tests of some files that a quick run has."""
    command = [sys.executable, "-m", "pytest", "--quick", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *places], cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_the_contract_is_checked_in_memory_and_on_sqlite() -> None:
    """A test for every store runs on the two that need no server and hardly touch the disk."""
    found = collected("tests/contract/test_commit.py")
    assert any("[sqlite" in line for line in found)
    assert any("[memory" in line for line in found)
    assert not any(f"[{store}" in line for line in found for store in STORES_LEFT_OUT)


def test_what_needs_a_server_or_is_long_is_left_out() -> None:
    """Neither a server nor a tool that is installed with the servers is asked for."""
    assert collected("tests/contract/test_server_install.py", "tests/project/docs/test_tutorial.py") == []


def test_folders_that_are_left_out_exist() -> None:
    """A folder that moves away takes its name here along."""
    assert all((TESTS / folder).is_dir() for folder in FOLDERS_LEFT_OUT)
    assert is_left_out(TESTS / "system" / "agents" / "test_x.py")
    assert not is_left_out(TESTS / "unit")


def test_folders_of_tests_are_where_programs_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is used if it is there and runs programs; a root that somebody chose stays."""
    monkeypatch.setenv(ROOT_OF_FOLDERS, "/chosen")
    use_memory("/")
    assert os.environ[ROOT_OF_FOLDERS] == "/chosen"
    monkeypatch.delenv(ROOT_OF_FOLDERS)
    use_memory("/nowhere")
    assert ROOT_OF_FOLDERS not in os.environ
    assert not is_fit("/proc"), "no room, and nothing runs there"
