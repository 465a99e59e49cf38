"""Requests to a hub over TCP: `http://` and `https://`, with a token."""

import http.client
import os
import select
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from coord.core.errors import Invalid, Unreachable
from coord.sdk.remote.channel import Broken
from coord.sdk.remote.wire import CONTENT_TYPE

HTTP_PORT = 7420


class HttpChannel:
    """Requests over TCP; each thread that asks at the same time gets its own connection."""

    def __init__(self, url: str, token: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"{url} is not the address of a hub", hint=f"for example http://host:{HTTP_PORT}")
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._secure else HTTP_PORT)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Content-Type": CONTENT_TYPE, **headers}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._waiting: set[http.client.HTTPConnection] = set()
        self._process = os.getpid()
        self._closed = False

    def post(self, path: str, body: bytes, timeout_s: float, *, waits: bool = False) -> tuple[int, bytes]:
        connection = self._take() or self._connect(timeout_s)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            if waits:
                self._waiting.add(connection)
                if self._closed:  # before or after this the other thread has looked into the set
                    raise ConnectionError("the channel is closed")
            connection.request("POST", self._prefix + path, body, self._headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Broken(f"the hub at {self.where} did not answer: {error!r}") from error
        except BaseException:  # an interrupt: the answer is still to come, and would be taken for the next
            connection.close()
            raise
        finally:
            self._waiting.discard(connection)
        with self._lock:
            if reusable := not answer.will_close and not self._closed:
                self._idle.append(connection)
        if not reusable:
            connection.close()
        return answer.status, data

    def _take(self) -> http.client.HTTPConnection | None:
        """Return an idle connection that is still good: the hub has not closed it, and has sent nothing."""
        if self._process != os.getpid():  # those before the fork are the parent's
            self._lock, self._idle, self._process = threading.Lock(), [], os.getpid()
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.sock is not None and not _is_readable(connection.sock):
                return connection
            connection.close()

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout_s, context=context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise Unreachable(f"the hub at {self.where} cannot be reached: {error}") from error
        return connection

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in list(self._waiting):
            if (sock := connection.sock) is not None:
                with suppress(OSError):  # its own thread has closed it
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)  # TLS is for its own thread
        for connection in idle:
            connection.close()


def _is_readable(sock: socket.socket) -> bool:
    """Whether something came although nothing was asked: the end of the connection, or a late answer."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
