"""A program that runs tests on a copy of coord and ends with the exit code of pytest.

Its arguments are the folder that holds the copy, and those of pytest. The output is in a file of that folder.
"""

import contextlib
import ctypes
import gc
import os
import signal
import sys
from pathlib import Path

import pytest

OUTPUT = "output"
PLUGINS = ("_hypothesis_pytestplugin", "pytest_timeout", "tests.mutation.guard")
OPTIONS = ["-x", "-q", "--no-header", "--tb=line", "--hypothesis-seed=0", "--timeout=60"]
OPTIONS += ["--assert=plain"]  # nobody reads why a test failed: writing its asserts anew is a third of a run
OPTIONS += ["-p", "no:cacheprovider", *(word for plugin in PLUGINS for word in ("-p", plugin))]


def environment(home: Path) -> dict[str, str]:
    """Return the variables with which a process imports the copy in `home` and leaves its files there."""
    return {
        "PYTHONPATH": str(home),
        "COORD_MUTANT_ROOT": str(home),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of whatever the tests leave behind, on Linux: a mutant may make it run for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans() -> None:
    """Kill what is left, and what that leaves in turn."""
    while found := [
        each for task in Path("/proc/self/task").glob("*/children") for each in task.read_text().split()
    ]:
        for each in map(int, found):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(each, signal.SIGKILL)
                os.waitpid(each, 0)


def main(home: Path, arguments: list[str]) -> int:
    output = os.open(home / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.path.insert(0, str(home))
    gc.disable()  # a run is short
    adopt_orphans()
    try:
        return int(pytest.main([*OPTIONS, "--basetemp", str(home / "tmp"), *arguments]))
    finally:
        end_orphans()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
