"""A warm process that forks a child for every run of tests: pytest and the drivers are imported once.

`coord` is never imported here: each child imports the copy that it is told to test. A line of JSON on stdin
asks for a run, and its exit code comes back on stdout; what the tests print is in a file below its folder.
"""

import asyncio  # noqa: F401 - these are here to be warm
import gc
import json
import os
import sqlite3  # noqa: F401
import sys
from pathlib import Path
from typing import NoReturn

import hypothesis.stateful  # noqa: F401
import msgspec  # noqa: F401
import psycopg  # noqa: F401
import pymysql  # noqa: F401
import pytest
import redis  # noqa: F401
import sortedcontainers  # noqa: F401

TOLD = "told"
PLUGINS = ("_hypothesis_pytestplugin", "pytest_timeout", "tests.mutants.guard")
OPTIONS = ["-x", "-q", "--no-header", "--tb=line", "--hypothesis-seed=0", "--timeout=60"]
OPTIONS += ["-p", "no:cacheprovider", *(word for plugin in PLUGINS for word in ("-p", plugin))]


def environment(home: Path) -> dict[str, str]:
    """What a process needs to import the copy below `home`, and to leave its traces there."""
    return {
        "PYTHONPATH": str(home),
        "COORD_MUTANT_ROOT": str(home),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def run(home: Path, arguments: list[str]) -> NoReturn:
    """Run tests in this process, on the copy below `home`, and end with the exit code of pytest."""
    code = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        told = os.open(home / TOLD, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (told, 1), (told, 2)):
            os.dup2(source, target)
        os.environ.update(environment(home))
        sys.path.insert(0, str(home))
        code = int(pytest.main([*OPTIONS, "--basetemp", str(home / "tmp"), *arguments]))
        sys.stdout.flush()
    finally:
        os._exit(code)


def main() -> None:
    gc.freeze()  # what is warm is no garbage in any child
    for line in sys.stdin:
        home, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            run(Path(home), arguments)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(json.dumps([home, code]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
