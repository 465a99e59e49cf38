"""Processes are killed -9 in the middle of their commits, and so is the server; then the store is reopened.

What was acknowledged is there, nothing is half applied, the order has no gaps, and the next commit works.
"""

import random
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coord.core.errors import Unavailable, Unknown
from coord.stores.contract import Entry, Store
from coord.stores.open import open_store
from tests.conftest import SOAK
from tests.support.servers.kinds import ON_SERVERS
from tests.support.servers.server import Server, running
from tests.support.stores.processes import Child, children
from tests.support.stores.steps import PLENTY, everything, head, keys_of, write
from tests.support.stores.writer_child import FLICKER, SET, next_commit

pytestmark = pytest.mark.timeout(7200 if SOAK else 400)

SERVER_KILLS = 50 if SOAK else 1
UNBOUNDED = str(10**9)
CALLS = (
    "pwrite64,write,fsync,fdatasync,ftruncate,link,linkat,rename,renameat,renameat2,unlink,unlinkat,"
    "flock,fcntl"
)
"""The system calls by which a store changes anything or takes a lock."""


def acknowledged(child: Child) -> dict[int, int]:
    """Return the numbers that a child was told are committed, with their offsets."""
    done = [line.split() for line in child.lines if line.startswith("done ")]
    return {int(number): int(offset) for _, number, offset in done}


def check_whole(store: Store) -> list[Entry]:
    """Assert that every commit is there whole or not at all, without gaps; return the entries."""
    entries = store.tail(0, PLENTY)
    assert [entry.offset for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.events for entry in entries] == [[b"%d" % number] for number in range(1, len(entries) + 1)]
    newest = len(entries)
    assert head(store) == newest
    found = store.load([*SET, FLICKER])
    value = b"%d" % newest if newest else None
    line = f"line/{newest % 3}" if newest else ""
    assert {(found[key].value, found[key].version, found[key].index_key) for key in SET} == {
        (value, newest, line)
    }
    assert (found[FLICKER].value, found[FLICKER].version) == (value if newest % 2 else None, newest)
    expected = sorted([*SET, *([FLICKER] if newest % 2 else [])])
    assert keys_of(store.scan("", by="key", limit=PLENTY)) == expected
    assert keys_of(store.scan("", by="index_key", limit=PLENTY)) == (SET if newest else [])
    return entries


def check_after_crash(url: str, crashed: list[Child], known: dict[int, int]) -> int:
    """Assert what must be true after a crash, and that the store goes on; return how many landed unheard."""
    with closing(open_store(url)) as database:
        store = database.log("local")
        entries = check_whole(store)
        for child in crashed:
            known |= acknowledged(child)
        present = {int(entry.events[0]): entry.offset for entry in entries}
        assert known.items() <= present.items(), "something acknowledged is lost"
        commit_one(store)
        check_whole(store)
        known[len(entries) + 1] = len(entries) + 1
        return len(entries) + 1 - len(known)


def commit_one(store: Store) -> None:
    found = store.load([*SET, FLICKER])
    number = int(found[SET[0]].value or b"0") + 1
    assert store.commit(next_commit(found, number, b"after-%d" % number)) == number


def pass_time(seconds: float) -> None:
    """Let a random moment pass, shorter than any timer could measure."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def kills_of(url: str) -> int:
    """Return how often a client is killed: on a server what it does is one question and its answer."""
    return 300 if SOAK else 8 if url.startswith(("file:", "sqlite:")) else 3


def test_killed_at_random_moments(shared_url: str) -> None:
    """kill -9 of a committing process at random moments, many times over; another one goes on committing."""
    chance = random.Random(shared_url.partition(":")[0])
    known: dict[int, int] = {}
    landed_unheard = 0
    kills = kills_of(shared_url)
    for kill in range(kills):
        names = [(shared_url, f"{kill}-{side}", UNBOUNDED) for side in ("a", "b")]
        with children("writer_child", *names) as (victim, other):
            for child in (victim, other):
                child.hear_until("ready")
            for _ in range(chance.randrange(1, 6)):
                victim.hear_until("begin")
            pass_time(chance.random() * 0.004)
            victim.kill()
            other.hear_until("done")
            other.hear_until("done")  # the first may have been on its way; this one began after the kill
            other.kill()
            landed_unheard = check_after_crash(shared_url, [victim, other], known)
    assert len(known) >= 4 * kills
    assert landed_unheard <= 2 * kills, "at most the commit in flight of each victim is there unheard"


def test_killed_at_each_system_call(shared_url: str, strace: str, tmp_path: Path) -> None:
    """Kill -9 right before each system call of a commit in turn: the commit is there whole, or not at all.

    PRB-17, REC-7, AMB-30.
    """
    log = tmp_path / "calls"
    quiet = (strace, "-f", "-qq", "-e", "signal=none")
    with children(
        "writer_child", (shared_url, "whole", "2"), under=(*quiet, "-o", str(log), "-e", f"trace={CALLS}")
    ) as (child,):
        assert child.finish() == 0
    calls = len(re.findall(r"^\d+ +\w+\(", log.read_text(), re.MULTILINE))
    assert calls > 4, "the trace shows the system calls of two commits"
    known = acknowledged(child)
    step = max(1, calls // (calls if SOAK else kills_of(shared_url) + 5))
    killed = 0
    for call in range(1, calls + 1, step):
        trap = ("-o", "/dev/null", "-e", f"inject={CALLS}:signal=KILL:when={call}")
        with children("writer_child", (shared_url, f"call-{call}", "2"), under=(*quiet, *trap)) as (child,):
            killed += child.finish() != 0
            check_after_crash(shared_url, [child], known)
    assert killed >= 5


@pytest.fixture(params=ON_SERVERS)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """A server of every kind for this test alone, since it is killed, and a new store on it."""
    kind = ON_SERVERS[request.param]
    with running(kind.server, tmp_path) as server:
        yield server, kind.fresh_url(server)


def test_server_killed_in_mid_commit(own: tuple[Server, str]) -> None:
    """kill -9 of the server while processes commit: what was acknowledged is there after its restart.

    A connection from before the crash is opened anew by a later call, with no help from outside.
    """
    own_server, url = own
    chance = random.Random(1)
    known: dict[int, int] = {}
    with closing(open_store(url)) as survivor:
        store = survivor.log("local")
        for kill in range(SERVER_KILLS):
            names = [(url, f"{kill}-{side}", UNBOUNDED) for side in "abc"]
            with children("writer_child", *names) as started:
                for child in started:
                    child.hear_until("ready")
                for _ in range(chance.randrange(2, 8)):
                    started[0].hear_until("begin")
                pass_time(chance.random() * 0.004)
                own_server.kill()
                assert [child.finish() for child in started] == [0, 0, 0]
                last_words = {child.lines[-1].split()[0] for child in started}
                assert last_words <= {"unavailable", "unknown"}, "a crash is told apart from a refusal"
                with pytest.raises((Unavailable, Unknown)):
                    write(store, {"while": b"down"})
                own_server.restart()
                check_after_crash(url, started, known)
                assert reconnected(store) == everything_of(url)


def reconnected(store: Store) -> object:
    """Return what a store shows that was open during the crash; its first call may learn of the loss."""
    try:
        return everything(store)
    except Unavailable:
        return everything(store)


def everything_of(url: str) -> object:
    with closing(open_store(url)) as database:
        return everything(database.log("local"))
