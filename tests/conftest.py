"""Stores for every test: a fresh one each time, on real servers that the tests start themselves."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.support import quick
from tests.support.real_state import leave_real_state, traces_of
from tests.support.servers.kinds import SHARED_STORES, STORES, FreshStores, Servers
from tests.support.servers.mariadb import MariadbServer
from tests.support.servers.nats import NatsServer
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import TEMPLATES

SOAK = bool(os.environ.get("COORD_SOAK"))

MUTANT = "COORD_MUTANT_ROOT" in os.environ
"""Tests on a mutant are to fail, and nobody reads how."""

# The same examples in every run but the soak, and none fails because the machine is slow.
settings.register_profile(
    "coord",
    deadline=None,
    derandomize=not SOAK,
    database=None,
    phases=(Phase.explicit, Phase.generate) if MUTANT else tuple(Phase),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("coord")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="only tests without servers, agents and long runs, in two minutes",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave whole folders out of a quick run, before they are imported."""
    return True if config.getoption("quick") and quick.is_left_out(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a quick run does without."""
    if config.getoption("quick"):
        quick.select(config, items)


def pytest_configure(config: pytest.Config) -> None:
    """Let servers of one run share their new data (also across workers and mutants), and set up `--quick`."""
    if TEMPLATES not in os.environ:
        os.environ[TEMPLATES] = tempfile.mkdtemp(prefix="coord-templates-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(TEMPLATES)))
        leave_real_state(f"{os.environ[TEMPLATES]}/state")
    os.environ["COORD_HUB"] = "off"  # a hub of the user who runs the tests
    config.addinivalue_line("markers", quick.MARKER)
    if config.getoption("quick"):
        quick.refuse_servers()
        quick.use_memory()


@pytest.fixture(scope="session", autouse=True)
def real_state_is_untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes into the state folder of the user who runs the tests."""
    yield
    assert traces_of(tmp_path_factory.getbasetemp()) == [], "give each program of a test an XDG_STATE_HOME"


@pytest.fixture(scope="session", autouse=True)
def signals_reach_children() -> None:
    """A process started by one that ignores a signal (nohup, a job in the background) ignores it, too.

    A handler is not inherited: with one that does nothing we go on as before, and children start as usual.
    """
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(each) is signal.SIG_IGN:
            signal.signal(each, lambda *_: None)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Private servers, synced, each started when a test first asks for it and stopped at the end."""
    with ExitStack() as stack:
        yield Servers(stack, tmp_path_factory.mktemp("servers"))


@pytest.fixture(scope="session")
def postgres_server(servers: Servers) -> PostgresServer:
    """A private Postgres server."""
    return servers.get(PostgresServer)


@pytest.fixture(scope="session")
def mariadb_server(servers: Servers) -> MariadbServer:
    """A private MariaDB server."""
    return servers.get(MariadbServer)


@pytest.fixture(scope="session")
def redis_server(servers: Servers) -> RedisServer:
    """A private Redis server."""
    return servers.get(RedisServer)


@pytest.fixture(scope="session")
def nats_server(servers: Servers) -> NatsServer:
    """A private NATS server."""
    return servers.get(NatsServer)


@pytest.fixture
def make_url(servers: Servers, tmp_path: Path) -> Callable[[str], str]:
    """Return a function that gives the url of a new, empty store of a kind."""
    return FreshStores(tmp_path, servers).url


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store, once for every kind."""
    return make_url(request.param)


@pytest.fixture(params=SHARED_STORES)
def shared_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store that several processes can open, once for every such kind."""
    return make_url(request.param)


def pytest_collection_finish() -> None:
    """What was collected stays to the end, so that nobody who collects garbage has to look through it."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what did not run."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("NOT TESTED", sep="!")
        for line in sorted({str(report.longrepr[2]) for report in skipped}):
            terminalreporter.write_line(f"  {line}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """End the hub that tests share; in CI a skipped test is a failed run."""
    if "tests.support.hub.in_process" in sys.modules:
        sys.modules["tests.support.hub.in_process"].end_shared_hub()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
