"""`coord` where the store cannot be written: reads answer, changes are refused with the next step."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import PROGRAM
from tests.support.read_only import run_read_only

READS = {
    "locks": 0,
    "status": 0,
    "check a.py": 1,
    "check b.py": 0,
    "peers": 0,
    "waits": 0,
    "task list": 0,
    "plan show": 0,
    "log tail": 0,
    "log locks a.py": 0,
    "metrics": 0,
}
CHANGES = ("lock b.py", "register", "send bob info hello", "task add T1", "heartbeat")
UNAVAILABLE = 69
ALL = """
import json, sys
from coord.transports.cli.main import main
for line in sys.argv[1:]:
    code = main(["--session", "ada", *line.split()])
    print(json.dumps(["exit", line, code]), flush=True)
"""


def run(folder: Path, repository: Path, *lines: str) -> tuple[dict[str, int], str]:
    """Run command lines in one process that sees a folder read-only; return their exit codes and the text."""
    done = run_read_only(folder, [sys.executable, "-c", ALL, *lines], cwd=repository, environ=os.environ)
    ends = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["exit"')]
    return {line: code for _, line, code in ends}, done.stdout + done.stderr


def coord(*words: str) -> dict[str, Any]:
    done = subprocess.run([*PROGRAM, "--session", "bob", *words], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(params=["sqlite", "files"])
def store(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Path:
    """The folder of a store in which bob holds a file."""
    url = ("--url", f"file://{tmp_path}/files") if request.param == "files" else ()
    coord("init", "--yes", *url)
    coord("lock", "a.py")
    return tmp_path / "files" if url else repository / ".git/coord/store"


def test_reads_answer_and_changes_name_the_next_step(store: Path, repository: Path) -> None:
    """Every read shows the state; every change exits with 69 and changes nothing."""
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    codes, text = run(store, repository, *READS, *CHANGES)
    assert codes == READS | dict.fromkeys(CHANGES, UNAVAILABLE), text
    assert text.count('"owner":"bob"') >= 3
    assert text.count("is read-only here; nothing was changed") >= len(CHANGES)
    assert "a person runs coord init outside of it" in text
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_a_whole_repository_may_be_read_only(repository: Path) -> None:
    """Not even the folder of the pin needs to be writable, and a store without any use shows no locks."""
    coord("init", "--yes")
    codes, text = run(repository, repository, "locks", "status", "lock a.py")
    assert list(codes.values()) == [0, 0, UNAVAILABLE], text
    assert "0 locks" in text


def test_a_repository_that_cannot_be_written_is_told(repository: Path) -> None:
    """Init and uninstall exit with 69 and the next step; doctor has no warning about the journal."""
    coord("init", "--yes")
    codes, text = run(repository / ".git", repository, "init --yes", "uninstall", "doctor")
    assert codes == {"init --yes": UNAVAILABLE, "uninstall": UNAVAILABLE, "doctor": 1}, text
    assert text.count("in a sandbox: a person runs it outside of it") >= 2
    assert "not checked, because the file is read-only here" in text
    assert "journal_mode" not in text
