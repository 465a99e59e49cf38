"""What a NATS server may answer to a commit beside the usual: only a refusal of this very one means "no"."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

import coord
from coord.core.errors import Unavailable, Unknown
from coord.stores.contract import Commit
from coord.stores.nats import protocol
from coord.stores.nats.address import Address
from coord.stores.nats.jetstream import NatsServer as Client
from coord.stores.open import open_store
from tests.support.servers.nats import NatsServer
from tests.support.servers.server import running

SUBJECT = "coord.shop.log.local"
INFO = {"server_id": "S", "version": "2.10.0", "max_payload": 2**20, "headers": True}

Answering = Callable[[bytes], Iterator[bytes]]
"""Gives what is sent to who published with this inbox, until it hangs up."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "ANSWER_S", 0.3)
    monkeypatch.setattr(protocol, "_BUFFERED_BYTES_MAX", 4 * 2**20)


@pytest.fixture
def put() -> Iterator[Callable[[Answering], int | None]]:
    """Put a message into the stream of a server that answers so."""
    with closing(socket.create_server(("127.0.0.1", 0))) as door:
        client = Client(Address(f"nats://127.0.0.1:{door.getsockname()[1]}/shop"))

        def put_there(answering: Answering) -> int | None:
            threading.Thread(target=_serve, args=(door, answering), daemon=True).start()
            return client.put(SUBJECT, b"payload", {})

        yield put_there
        client.close()


def _serve(door: socket.socket, answering: Answering) -> None:
    with suppress(OSError), door.accept()[0] as connection:
        connection.sendall(b"INFO %b\r\n" % json.dumps(INFO).encode())
        lines = connection.makefile("rb")
        while lines.readline() != b"PING\r\n":
            pass
        connection.sendall(b"PONG\r\n")
        inbox = lines.readline().split()[2]
        for sent in answering(inbox):
            connection.sendall(sent)


def _always(sent: bytes) -> Answering:
    def answer(_inbox: bytes) -> Iterator[bytes]:
        while True:
            yield sent

    return answer


def _once(sent: bytes) -> Answering:
    return lambda inbox: iter([sent.replace(b"INBOX", inbox)])


def test_an_answer_in_pieces_is_read(put: Callable[[Answering], int | None]) -> None:
    """An answer may come byte by byte, with formalities before it, and with answers to others."""
    answer = b'PING\r\nINFO {}\r\nMSG other 1 0\r\n\r\nMSG INBOX 1 9\r\n{"seq":7}\r\n'
    assert put(lambda inbox: (bytes([byte]) for byte in answer.replace(b"INBOX", inbox))) == 7


@pytest.mark.parametrize(
    "answering",
    [
        _once(b""),
        _once(b"-ERR 'User Authentication Expired'\r\n"),
        _once(b"-ERR 'Authorization Violation'\r\n"),
        _once(b"-ERR 'Permissions Violation for Publish to \"coord.shop.wakeup.local\"'\r\n"),
        _once(b"-ERR 'Slow Consumer'\r\n"),
        _once(b"MSG\r\n"),
        _once(b"MSG INBOX 1 many\r\n"),
        _once(b"HMSG INBOX 1 9\r\n{}\r\n"),
        _once(b"MSG \xff 1 0\r\n\r\n"),
        _once(b"MSG INBOX 1 7\r\nnothing\r\n"),
        _once(b"MSG INBOX 1 999\r\nand no more"),
        _always(b"PING\r\n"),
        _always(b"x" * 2**16),
        _always(b"MSG other 1 0\r\n\r\n"),
    ],
)
def test_what_does_not_refuse_a_commit_leaves_it_unknown(
    put: Callable[[Answering], int | None], answering: Answering
) -> None:
    """The message was sent: whatever comes instead of its answer, it may have been taken. Nothing hangs."""
    with pytest.raises(Unknown):
        put(answering)


@pytest.mark.parametrize("why", [f'Permissions Violation for Publish to "{SUBJECT}"', "Maximum Payload"])
def test_a_refusal_of_the_commit_itself_is_plain(put: Callable[[Answering], int | None], why: str) -> None:
    """Where the server says that it does not take this very message, nothing has happened."""
    with pytest.raises(Unavailable):
        put(_once(f"-ERR '{why}'\r\n".encode()))


def test_nothing_is_heard_before_the_encryption() -> None:
    """What somebody between us and the server adds to its greeting is not taken for the server's own word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as door:

        def greet() -> None:
            with door.accept()[0] as connection:
                connection.sendall(b"INFO %b\r\nPONG\r\n" % json.dumps(INFO).encode())
                connection.recv(1)

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(Unavailable, match="before the encryption"):
            Address(f"tls://127.0.0.1:{door.getsockname()[1]}/shop").connect()


@pytest.mark.timeout(300)
def test_large_entries_are_not_asked_for_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of large entries can be opened: a server hangs up on who lets it keep too much unread."""
    monkeypatch.setattr(protocol, "ANSWER_S", 20.0)
    with running(NatsServer) as server:
        server.settings = "max_payload: 4MB, max_pending: 36MB"
        server.restart()
        url = server.blank_url("?durable=1")
        coord.install(url)
        with closing(open_store(url)) as database:
            store = database.log("local")
            monkeypatch.setattr(type(store), "_begin_snapshot", lambda _: None)
            for _ in range(16):
                store.commit(Commit(events=[b"x" * 2_900_000]))
        with closing(open_store(url)) as database:
            assert database.log("local").head() == 16
