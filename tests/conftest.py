"""Stores for every test: a fresh one each time, on real servers that the tests start themselves."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers import postgres

STORES = ("memory", "files", "sqlite", "postgres")
SHARED_STORES = ("files", "sqlite", "postgres")
"""Those that several processes can open."""

SOAK = bool(os.environ.get("COORD_SOAK"))


@pytest.fixture(scope="session", autouse=True)
def signals_reach_children() -> None:
    """A process started by one that ignores a signal (nohup, a job in the background) ignores it, too.

    A handler is not inherited: with one that does nothing we go on as before, and children start as usual.
    """
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(each) is signal.SIG_IGN:
            signal.signal(each, lambda *_: None)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator["postgres.PostgresServer"]:
    """A private Postgres server, fsync on, stopped at the end of the session."""
    with postgres.running(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def make_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Return a function that gives the url of a new, empty store of a kind."""
    made = 0

    def make(name: str) -> str:
        nonlocal made
        made += 1
        if name == "memory":
            return "memory:"
        if name == "files":
            return f"file://{tmp_path}/files-{made}"
        if name == "sqlite":
            return f"sqlite://{tmp_path}/store-{made}.db"
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        return server.fresh_schema_url()

    return make


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store, once for every kind."""
    return make_url(request.param)


@pytest.fixture(params=SHARED_STORES)
def shared_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store that several processes can open, once for every such kind."""
    return make_url(request.param)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what did not run."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("NOT TESTED", sep="!")
        for line in sorted({str(report.longrepr[2]) for report in skipped}):
            terminalreporter.write_line(f"  {line}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skipped test is a failed run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
