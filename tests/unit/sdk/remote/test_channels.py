"""The two ways to a hub, against a server that misbehaves: no answer is taken for another."""

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

from coord.core.errors import Unreachable
from coord.sdk.remote.channel import Broken, Channel, UnixChannel
from coord.sdk.remote.http_channel import HttpChannel

PATIENCE_S = 30.0


def answer(body: bytes, *, length: int | None = None, more: str = "") -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n{more}\r\n".encode() + body


class Server:
    """Answers each request with the next bytes of a list; None closes the connection instead."""

    def __init__(self, family: int, address: object) -> None:
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind(address)  # type: ignore[arg-type]
        self.listener.listen()
        self.answers: list[bytes | None] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self.late = b""
        """What follows the next answer of the list, as soon as a test has read that one."""
        self.read, self.sent = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                head, _, body = data.partition(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                while len(body) < size:
                    body += connection.recv(65536)
                self.requests.append(body)
                if not self.answers:
                    connection.sendall(answer(body))
                elif (one := self.answers.pop(0)) is None:
                    return
                else:
                    connection.sendall(one)
                    if self.late:
                        self.read.wait(PATIENCE_S)
                        connection.sendall(self.late)
                    self.sent.set()
                    if b"close" in one or self.late:
                        return

    def close(self) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._thread.join(PATIENCE_S)


@pytest.fixture(params=["unix", "http"])
def way(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Channel]]:
    if request.param == "unix":
        with tempfile.TemporaryDirectory(prefix="ch-", dir="/tmp") as folder:  # a short path, as sockets need
            server = Server(socket.AF_UNIX, f"{folder}/s")
            with closing(server), closing(UnixChannel(f"{folder}/s")) as channel:
                yield server, channel
        return
    server = Server(socket.AF_INET, ("127.0.0.1", 0))
    address = f"http://127.0.0.1:{server.listener.getsockname()[1]}"
    with closing(server), closing(HttpChannel(address, "", {})) as http:
        yield server, http


def post(channel: Channel, body: bytes) -> bytes:
    return channel.post("/v1/call", body, PATIENCE_S)[1]


def test_connections_are_used_again(way: tuple[Server, Channel]) -> None:
    server, channel = way
    assert [post(channel, each) for each in (b"a", b"b", b"c")] == [b"a", b"b", b"c"]
    assert server.connections == 1


def test_what_comes_without_a_question_is_no_answer(way: tuple[Server, Channel]) -> None:
    """A late or second answer on an idle connection would answer the next question."""
    server, channel = way
    server.answers, server.late = [answer(b"a")], answer(b"late")
    first = post(channel, b"a")
    server.read.set()
    assert server.sent.wait(PATIENCE_S)
    assert [first, post(channel, b"b"), post(channel, b"c")] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    "bad",
    [
        None,
        answer(b"half", length=100, more="X: close\r\n"),
        b"HTTP/1.1\r\n\r\nclose",
        b"nonsense close",
        b"\r\n\r\nclose",
    ],
)
@pytest.mark.parametrize("reused", [True, False])
def test_a_broken_answer_is_doubt(way: tuple[Server, Channel], bad: bytes | None, reused: bool) -> None:
    """Also on a connection that was used before: the request may have been carried out."""
    server, channel = way
    if reused:
        post(channel, b"a")
    server.answers = [bad]
    with pytest.raises(Broken):
        post(channel, b"b")
    assert server.requests[-1] == b"b", "it was sent once"
    assert post(channel, b"c") == b"c"


def test_a_server_that_is_gone_is_unreachable_only_if_nothing_was_sent(way: tuple[Server, Channel]) -> None:
    server, channel = way
    post(channel, b"a")
    server.answers = [None]
    server.close()
    with pytest.raises(Broken):
        post(channel, b"b")
    with pytest.raises(Unreachable):
        post(channel, b"c")


def test_threads_get_their_own_answers(way: tuple[Server, Channel]) -> None:
    _, channel = way
    bodies = [str(number).encode() for number in range(400)]
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(lambda body: post(channel, body), bodies)) == bodies


def test_a_child_does_not_use_the_connections_of_its_parent(way: tuple[Server, Channel]) -> None:
    server, channel = way
    post(channel, b"parent")
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if post(channel, b"child") == b"child" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (server.connections, post(channel, b"again")) == (2, b"again")


def test_a_closed_channel_keeps_no_connection(way: tuple[Server, Channel]) -> None:
    """Also if another thread closes it while a request is under way."""
    _, channel = way
    post(channel, b"a")
    channel.close()
    post(channel, b"b")
    assert not channel._idle  # type: ignore[attr-defined]
