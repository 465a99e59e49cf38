"""Run a function in a child process that is killed just before one of its changes to the file system.

Python reports each of these calls to audit hooks before it makes them, so the points are the same in every
run. A file that is being written when the child dies is empty, because its buffer is lost.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

CHANGES = frozenset(
    ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.truncate")
)


def count_changes(work: Callable[[], object]) -> int:
    """Run `work` to its end in a child; return the number of its changes to the file system."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _run_in_child(0, work, writer)
    os.close(writer)
    with open(reader, "rb") as file:
        count = file.read()
    os.waitpid(child, 0)
    assert count, "the child failed"
    return int(count)


def run_until(point: int, work: Callable[[], object]) -> None:
    """Run `work` in a child, which is killed with its process group before its change number `point`."""
    child = os.fork()
    if not child:
        _run_in_child(point, work, 1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child ended before it was killed"


def _run_in_child(point: int, work: Callable[[], object], writer: int) -> NoReturn:
    os.setsid()
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the child ends here
    seen = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
        if (not opens and event not in CHANGES) or "__pycache__" in str(arguments[0]):
            return  # Python keeps what it compiles, once
        seen += 1
        if seen == point:
            os.killpg(0, signal.SIGKILL)

    try:
        sys.addaudithook(count)
        work()
        os.write(writer, str(seen).encode())
    except BaseException:  # noqa: BLE001 - the child must not go on with the tests of its parent
        traceback.print_exc()
    finally:
        os._exit(1)
