"""Losing the connection to a server, which every kind survives alike."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from coord.core.errors import Conflict, Unavailable, Unknown
from coord.stores.contract import Commit, Put
from tests.support.servers.kinds import ON_SERVERS, OnServer, Servers
from tests.support.servers.server import Server, poll_until, running
from tests.support.servers.tcp_relay import TcpRelay, relaying
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.steps import PLENTY, everything, head, value, write

Opener = Callable[[str], AnyDatabase]
ONE = Commit(expected_versions={"k": 0}, puts={"k": Put(b"1")}, events=[b"e"], id=b"one")
PATIENCE_S = 30


@pytest.fixture(params=ON_SERVERS)
def kind(request: pytest.FixtureRequest) -> OnServer:
    return ON_SERVERS[request.param]


@pytest.fixture
def server(kind: OnServer, servers: Servers) -> Server:
    return servers.get(kind.server)


@pytest.fixture
def url(kind: OnServer, server: Server) -> str:
    """A new store on a server of every kind."""
    return kind.fresh_url(server)


@pytest.fixture
def relay(server: Server) -> Iterator[TcpRelay]:
    """A way to the server that can be cut."""
    with relaying(server.port) as relay:
        yield relay


def test_goes_on_after_the_server_was_killed(kind: OnServer, open_database: Opener) -> None:
    """After kill -9 and a restart the same objects work again, and nothing acknowledged is lost."""
    with running(kind.server) as server:  # one for this alone: those of the others have much to recover
        store = open_database(kind.fresh_url(server)).log("local")
        for number in range(1, 21):
            write(store, {f"k{number % 3}": b"%d" % number}, events=[b"%d" % number])
        before = everything(store)
        server.kill()
        with pytest.raises(Unavailable):
            store.load(["k0"])
        with pytest.raises(Unavailable):  # never Unknown: it was found dead before anything was sent
            store.commit(Commit(events=[b"lost"]))
        assert not store.wait(20, 0.05), "a wait ends in time while the server is away"
        server.restart()
        assert everything(store) == before
        assert write(store, {"k0": b"21"}, events=[b"21"]) == 21


def test_a_connection_ended_between_calls_is_not_noticed(
    url: str, relay: TcpRelay, open_database: Opener
) -> None:
    """A connection that ended is opened anew by the next call, whichever it is."""
    store = open_database(relay.url(url)).log("local")
    calls: list[Callable[[], object]] = [
        lambda: store.commit(ONE),
        lambda: store.load(["k"]),
        lambda: store.scan("", by="index_key", limit=1),
        lambda: store.tail(0, 1),
        lambda: store.trim(1),
    ]
    for call in calls:
        relay.cut()
        call()
    assert (value(store, "k"), head(store)) == (b"1", 1)


def test_a_commit_whose_answer_is_lost_is_unknown_and_has_happened(
    url: str, relay: TcpRelay, thread: ThreadPoolExecutor, open_database: Opener
) -> None:
    """The connection breaks after the commit and before its answer: the log shows its id."""
    near, far = open_database(url).log("local"), open_database(relay.url(url)).log("local")
    write(far, events=[b"the first time scripts and statements are sent, too"])
    commit = replace(ONE, read_point=far.load(["k"]).read_point)  # else some kinds ask a question before it
    relay.swallow_answers()
    answer = thread.submit(far.commit, commit)
    poll_until(lambda: head(near) == 2, PATIENCE_S, "the commit does not arrive")
    poll_until(relay.swallowed.is_set, PATIENCE_S, "the answer does not come")
    relay.cut()
    with pytest.raises(Unknown):
        answer.result(PATIENCE_S)
    assert [entry.id for entry in far.tail(1, PLENTY)] == [b"one"]
    with pytest.raises(Conflict):
        far.commit(ONE)


FORKING = """
import os, sys
from coord.stores.open import open_store
from coord.stores.contract import Commit
database = open_store(sys.argv[1])
store = database.log("local")
assert store.commit(Commit(events=[b"parent"])) == 1
print("one connection", flush=True)
sys.stdin.readline()
child = os.fork()
if child == 0:
    assert store.commit(Commit(events=[b"child"])) == 2
    database.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert store.commit(Commit(events=[b"parent"])) == 3
print([entry.events for entry in store.tail(0, 9)])
database.close()
"""


def test_a_forked_child_uses_a_connection_of_its_own(url: str, relay: TcpRelay) -> None:
    """Parent and child go on with the objects they had; the parent's connection stays the same one."""
    words = [sys.executable, "-c", FORKING, relay.url(url)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one connection\n"
        before = relay.connections
        said, _ = process.communicate("\n", PATIENCE_S)
    assert (process.returncode, said) == (0, "[[b'parent'], [b'child'], [b'parent']]\n")
    assert relay.connections == before + 1, "that of the child"


def test_a_closed_database_answers_nobody(url: str, open_database: Opener) -> None:
    """After `close` every call is refused, nothing is opened again, and closing once more does no harm."""
    database = open_database(url)
    store = database.log("local")
    database.close()
    database.close()
    for call in (lambda: store.commit(ONE), lambda: store.load(["k"]), lambda: store.wait(0, 1)):
        with pytest.raises(Unavailable, match="closed"):
            call()
