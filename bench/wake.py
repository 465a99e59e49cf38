"""From a release in one process to the return of the next holder's call in another that was blocked.

Counted from the moment when the release returned; `from call` counts from when it was called.
"""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from bench.commands import command_environment
from bench.figures import Figure, latency_ms
from bench.fresh import ROOT
from bench.places import Places
from bench.repository import PATH, PATIENCE_S, environment, make_repository, open_client
from bench.scale import Scale
from coord.sdk.client.client import Client
from coord.sdk.client.open import initialise

STORES = ("files", "sqlite")
LIBRARY_P50_MS = 5.0
COMMAND_SHARE = 4
"""A whole command is started anew for each wake, so there are fewer of them."""


class Wake(NamedTuple):
    """The moments of one release and of what followed from it."""

    called: float
    released: float
    granted: float


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield how long a blocked call of the library, and a blocked command, takes to return."""
    if store not in STORES:
        return
    repository = make_repository(Path(tempfile.mkdtemp(dir=places.folder)))
    url = places.fresh_url(store)
    initialise(str(repository), environment(repository), url=url)  # commands and clients find the same locks
    with open_client(url, repository, "holder") as holder:
        wakes = _library(holder, url, repository, scale.wakes)
        yield _figure(store, "blocked Client.acquire returns", wakes, LIBRARY_P50_MS)
        wakes = _commands(holder, url, repository, max(1, scale.wakes // COMMAND_SHARE))
        yield _figure(store, "blocked coord lock prints its answer", wakes, None)


def _figure(store: str, name: str, wakes: list[Wake], most: float | None) -> Figure:
    # The next holder may be ahead of the one who released it, where that one is slow to return.
    after = [max(0.0, wake.granted - wake.released) for wake in wakes]
    from_call = statistics.median(wake.granted - wake.called for wake in wakes) * 1000
    detail = {**latency_ms(after), "from_call_ms": from_call}
    return Figure("wake", store, name, statistics.median(after) * 1000, "ms", most=most, detail=detail)


def _wake(holder: Client, begin: Callable[[], None], granted: Callable[[], float]) -> Wake:
    """Hold the lock, let somebody get in line, release; return the moments."""
    assert holder.acquire(PATH, wait_s=PATIENCE_S).ok
    log = holder.database.log(holder.tenant)
    before = log.seen.offset
    begin()
    assert log.wait(before, PATIENCE_S), "getting in line is a commit, and the next one"
    called = monotonic()
    holder.unlock(PATH)
    released = monotonic()
    return Wake(called, released, granted())


def _library(holder: Client, url: str, repository: Path, wakes: int) -> list[Wake]:
    words = [sys.executable, "-m", "bench.waiter", url, str(repository)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        told, heard = child.stdin, child.stdout

        def begin() -> None:
            told.write("go\n")
            told.flush()

        assert heard.readline() == "ready\n", "it says so as soon as it is connected"
        found = [_wake(holder, begin, lambda: float(heard.readline())) for _ in range(wakes + 1)]
        told.close()
    return found[1:]


def _commands(holder: Client, url: str, repository: Path, wakes: int) -> list[Wake]:
    """Start the command anew for each wake; its lock is given back in its name."""
    with open_client(url, repository, "waiter") as waiter, tempfile.TemporaryDirectory() as cache:
        environ = {**command_environment(repository, Path(cache)), "COORD_SESSION_ID": "waiter"}
        words = [sys.executable, "-m", "coord.transports.cli.main", "--url", url, "lock", PATH]
        found = []
        for _ in range(wakes + 1):
            blocked = _Blocked([*words, "--wait", f"{PATIENCE_S:g}"], repository, environ)
            found.append(_wake(holder, blocked.start, blocked.answered))
            waiter.unlock(PATH)
    return found[1:]


class _Blocked:
    """A command that waits for the lock."""

    def __init__(self, words: list[str], repository: Path, environ: dict[str, str]) -> None:
        self._words = words
        self._repository = repository
        self._environ = environ

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._words,
            cwd=self._repository,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def answered(self) -> float:
        """Return when its answer could be read."""
        stdout = self._process.stdout
        assert stdout is not None
        first = stdout.read(1)
        moment = monotonic()
        rest = stdout.read()
        assert self._process.wait(PATIENCE_S) == 0, f"it is granted in the end: {first + rest!r}"
        stdout.close()
        return moment
