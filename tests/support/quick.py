"""`pytest --quick` (`make quick`): the tests for a change in hand, without servers and long runs."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.servers.kinds import STORES
from tests.support.servers.server import Server

TESTS = Path(__file__).resolve().parents[1]
FOLDERS_LEFT_OUT = (
    "linearizability",
    "mutation",
    "project/bench",
    "project/demo",
    "simulation",
    "system",
    "unit/integrations/git",
    "unit/stores/files",
)
"""Random runs, other processes and machines, real agents, real merges, the files store, tests about tests."""
STORES_LEFT_OUT = frozenset(STORES) - {"memory", "sqlite"}
MEMORY, ROOM = "/dev/shm", 2 << 30
ROOT_OF_FOLDERS = "PYTEST_DEBUG_TEMPROOT"
"""Where pytest makes the folders of tests; `make test` leaves them on the disk."""
MARKER = "long: too long for `make quick`"


def is_left_out(path: Path) -> bool:
    """Whether a quick run does not even import a file or folder."""
    return any(path.is_relative_to(TESTS / folder) for folder in FOLDERS_LEFT_OUT)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that are not long, start no server, and use no other shared store than SQLite."""
    left_out = {item for item in items if item.get_closest_marker("long") or _needs_more(item)}
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def refuse_servers() -> None:
    """Skip tests that start a server in their own body, which nobody can see before they run."""
    Server.refused = "--quick starts no server"


def use_memory(folder: str = MEMORY) -> None:
    """Let tests have their folders in memory where there is room: that saves a tenth of the time of a run."""
    if ROOT_OF_FOLDERS not in os.environ and is_fit(folder):
        os.environ[ROOT_OF_FOLDERS] = folder


def is_fit(folder: str) -> bool:
    """Whether we may write into a folder, run what we write, and have room for the folders of all tests."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= ROOM


def _needs_more(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    if any(name == "strace" or name.endswith("_server") for name in fixtures):
        return True
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return "servers" in fixtures and not STORES_LEFT_OUT.isdisjoint(_words(parameters.values()))


def _words(values: Iterable[object]) -> Iterator[str]:
    """Yield the words among values, also those inside of tuples and lists."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from _words(value)
