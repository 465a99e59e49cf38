"""Requests to a hub over its unix socket: HTTP/1.1 with plain lengths, which both ends write.

`socket` takes as long to import as the start of Python, so this uses the extension below it.
"""

import _socket
import os
import time
from contextlib import suppress
from typing import Protocol

from coord.core.errors import Unavailable, Unreachable

HEADER_BYTES_MAX = 16 * 1024
READ_BYTES = 256 * 1024
OURS = "Content-Type: application/msgpack\r\n"


class Broken(Unavailable):
    """The connection broke after the request was sent, so its outcome is not known."""


class Channel(Protocol):
    """A way to a hub; threads may share it."""

    where: str

    def post(self, path: str, body: bytes, timeout_s: float, *, waits: bool = False) -> tuple[int, bytes]:
        """Return the status and the body of an answer.

        Raises Unreachable if nothing was sent, and Broken if the answer was lost. A request that only
        `waits` is broken when another thread closes the channel; any other gets its answer before.
        """

    def close(self) -> None: ...


class UnixChannel:
    """Requests over a unix socket; each thread that asks at the same time gets its own connection."""

    def __init__(self, path: str) -> None:
        self.where = path
        self._path = path
        self._idle: list[_socket.socket] = []
        self._waiting: set[_socket.socket] = set()
        self._process = os.getpid()
        self.closed = False

    def post(
        self, path: str, body: bytes, timeout_s: float, headers: str = OURS, *, waits: bool = False
    ) -> tuple[int, bytes]:
        deadline = time.monotonic() + timeout_s
        head = f"POST {path} HTTP/1.1\r\nHost: coord\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        connection = self._take() or self._connect(deadline)
        try:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            if waits:
                self._waiting.add(connection)
                if self.closed:  # before or after this the other thread has looked into the set
                    raise ConnectionError("the channel is closed")
            connection.sendall(head.encode() + body)
            answer, reusable = _read_answer(connection, deadline)
        except (OSError, ValueError, IndexError) as error:
            connection.close()
            raise Broken(f"the hub at {self.where} did not answer: {error}") from error
        except BaseException:  # an interrupt: the answer is still to come, and would be taken for the next
            connection.close()
            raise
        finally:
            self._waiting.discard(connection)
        if reusable:
            self._idle.append(connection)
        else:
            connection.close()
        if self.closed:  # another thread has closed the others
            self.close()
        return answer

    def _take(self) -> _socket.socket | None:
        """Return an idle connection that is still good: the hub has not closed it, and has sent nothing."""
        if self._process != os.getpid():  # those before the fork are the parent's
            self._idle, self._process = [], os.getpid()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:  # other threads have them
                return None
            try:
                connection.setblocking(False)
                connection.recv(1, _socket.MSG_PEEK)
            except BlockingIOError:
                return connection
            except OSError:
                pass
            connection.close()

    def _connect(self, deadline: float) -> _socket.socket:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            connection.connect(self._path)
        except OSError as error:
            connection.close()
            raise Unreachable(f"there is no hub at {self.where}: {error}", hint="coord serve") from error
        return connection

    def close(self) -> None:
        self.closed = True
        for connection in list(self._waiting):
            with suppress(OSError):  # its own thread has closed it
                connection.shutdown(_socket.SHUT_RDWR)
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:  # another thread closes, too
                return


def _read_answer(connection: _socket.socket, deadline: float) -> tuple[tuple[int, bytes], bool]:
    """Return the status and the body, and whether the connection can be used again."""
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        if len(data) > HEADER_BYTES_MAX:
            raise ValueError("its header is too long")
        data += _some(connection, deadline)
    lines = data[:end].split(b"\r\n")
    status = int(lines[0].split(b" ", 2)[1])
    length, reusable = 0, True
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        elif name.lower() == b"connection" and value.strip().lower() == b"close":
            reusable = False
        elif name.lower() == b"transfer-encoding":
            raise ValueError("its length is not known")
    parts, have = [data[end + 4 :]], len(data) - end - 4
    while have < length:
        some = _some(connection, deadline)
        parts.append(some)
        have += len(some)
    if have > length:
        raise ValueError("it is longer than it says")
    return (status, b"".join(parts)), reusable


def _some(connection: _socket.socket, deadline: float) -> bytes:
    connection.settimeout(max(0.001, deadline - time.monotonic()))
    data = connection.recv(READ_BYTES)
    if not data:
        raise ConnectionError("it closed the connection")
    return data
