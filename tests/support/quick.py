"""`pytest --quick` (`make quick`): the tests for a change in hand, without servers and long runs."""

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
