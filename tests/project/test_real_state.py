"""The tests leave the state folder of the user alone, and would notice if one did not."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.git_folders import made_repository
from tests.support.real_state import REAL_STATE, traces_of


def test_the_run_has_another_state_folder() -> None:
    """Issue 15: what the tests start without further ado does not reach the real folder."""
    assert os.environ["XDG_STATE_HOME"] + "/coord" != os.environ[REAL_STATE]


def test_a_session_in_the_real_folder_is_noticed(tmp_path: Path) -> None:
    """A program of a test that reaches the user's store leaves the path of its repository there."""
    home, root = tmp_path / "home", tmp_path / "work/shop"
    made_repository(root)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "COORD_SESSION_ID": "stray"}
    command = [sys.executable, "-m", "coord.transports.cli.main"]
    for words in (["init", "--yes"], ["register"]):
        subprocess.run([*command, *words], cwd=root, env=environ, check=True, capture_output=True)
    real = str(home / ".local/state/coord")
    assert traces_of(tmp_path / "work", real)
    assert traces_of(tmp_path / "elsewhere", real) == []
