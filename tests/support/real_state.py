"""The state folder of the user who runs the tests: no test may write into it.

The whole run gets another folder. A test that starts a program without `XDG_STATE_HOME` would still reach the
real one, so at the end of a run its files are searched for the folders of the tests. The user's own sessions
may change them meanwhile.
"""

import os
from pathlib import Path

REAL_STATE = "COORD_TESTS_REAL_STATE"
"""The environment variable that keeps the real folder, for the workers and forks of a run."""


def leave_real_state(folder: str) -> None:
    """Let this process and its children use another state folder."""
    if REAL_STATE not in os.environ:
        base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
        os.environ[REAL_STATE] = f"{base}/coord"
        os.environ["XDG_STATE_HOME"] = folder


def traces_of(folder: Path, real: str = "") -> list[str]:
    """Return the files of the real state folder that mention a folder of the tests."""
    found = []
    sign = os.fsencode(f"{folder}/")
    for top, _, names in os.walk(real or os.environ[REAL_STATE]):
        for name in names:
            path = Path(top, name)
            try:
                if sign in path.read_bytes():
                    found.append(str(path))
            except OSError:
                continue
    return found
