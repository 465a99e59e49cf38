"""`coord follow` reads a log to its end however long it is, and computes again what the log can say."""

from contextlib import closing
from pathlib import Path

import pytest

from coord.core.followers import ReadFollower
from coord.core.identity import Caller
from coord.engine.engine import Engine
from coord.followers.direct import log_source
from coord.followers.metrics.gauges import metrics
from coord.sdk.client.client import connect
from coord.sdk.log_reader import PAGE_ENTRIES
from coord.stores.contract import Commit
from coord.stores.open import open_store
from coord.transports.cli.handlers.awareness import follow
from tests.support.cli import Coord
from tests.support.models.naive_metrics import read_samples


@pytest.fixture
def url(coord: Coord, repository: Path) -> str:
    coord("ann register")
    return f"sqlite://{repository}/.git/coord/store/coord.db"


def work(coord: Coord, times: int) -> None:
    for _ in range(times):
        coord("ann lock src/app.py")
        coord("ann unlock src/app.py")


def state(url: str) -> tuple[int, bytes]:
    with closing(open_store(url)) as database:
        found = Engine(database, "local").call(ReadFollower("metrics"))
        return found.offset, found.state


def shown(name: str) -> float:
    with connect(session="ann") as client:
        return read_samples(metrics(log_source(client), Caller("ann")))[name]


def trim(url: str, before: int) -> None:
    with closing(open_store(url)) as database:
        database.log("local").trim(before)


def test_rebuilding_gives_the_same_bytes_also_after_a_trim(coord: Coord, url: str) -> None:
    """Issue 17, Proof: no counter falls because somebody computes the metrics again."""
    work(coord, 3)
    assert coord("ann follow metrics --once").code == 0
    offset, _ = state(url)
    work(coord, 3)
    trim(url, offset)
    coord("ann follow metrics --once")
    before = state(url)
    assert shown("coord_locks_acquired_total") == 6
    said = coord("ann follow metrics --rebuild --once")
    assert (
        f"entries before offset {offset} were trimmed; metrics goes on from its state at {offset}"
        in said.line
    )
    assert state(url)[1] == before[1]
    assert shown("coord_locks_acquired_total") == 6


def test_a_state_that_says_what_was_done_is_kept(coord: Coord, url: str) -> None:
    """Rebuilding reactions would lose what waits and what failed; a mirror is made again by switching it."""
    assert url
    said = coord("ann follow reactions --rebuild --once")
    assert said.code != 0
    assert "cannot be computed again" in said.line
    said = coord("ann follow mirror-contract --rebuild --once")
    assert said.code != 0
    assert "coord mirror off contract" in said.line


def test_a_long_log_is_read_in_steps(coord: Coord, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "STEP_PAGES", 1)
    with closing(open_store(url)) as database:
        log = database.log("local")
        for number in range(2 * PAGE_ENTRIES):
            log.commit(Commit(events=[b'{"event":"message.sent"}'], at=log.now(), id=b"%d" % number))
    said = coord("ann follow metrics --once")
    assert said.answer["offset"] >= 2 * PAGE_ENTRIES
    assert shown("coord_messages_sent_total") == 2 * PAGE_ENTRIES
