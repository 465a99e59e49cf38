"""Requests to a hub over TCP: `http://` and `https://`, with a token."""

import http.client
import ssl
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

from coord.core.errors import Invalid, Unreachable
from coord.sdk.remote.channel import GRACE_S, Broken
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

    def post(self, path: str, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return self._ask(connection, path, body, timeout_s)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                connection.close()  # the hub closed an idle connection; it had not begun to answer
            except OSError as error:
                connection.close()
                raise Broken(f"the hub at {self.where} did not answer: {error}") from error
        connection = self._connect(timeout_s)
        try:
            return self._ask(connection, path, body, timeout_s)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Broken(f"the hub at {self.where} did not answer: {error}") from error

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout_s + GRACE_S, context=context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s + GRACE_S)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise Unreachable(f"the hub at {self.where} cannot be reached: {error}") from error
        return connection

    def _ask(
        self, connection: http.client.HTTPConnection, path: str, body: bytes, timeout_s: float
    ) -> tuple[int, bytes]:
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s + GRACE_S)
        connection.request("POST", self._prefix + path, body, self._headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return answer.status, data

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
