"""A hub with a memory store, tokens and events, and clients that write bytes as they like."""

import contextlib
import itertools
import json
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import ClientConnection, connect, unix_connect

from coord.core.identity import Caller
from coord.core.tokens.commands import CreateToken, FindToken, RevokeToken, RotateToken, TokenInfo
from coord.core.tokens.schema import Role
from coord.core.tokens.text import parse_token
from coord.sdk.client.tokens import make_token
from coord.stores.contract import Commit
from coord.stores.database import Database
from coord.stores.open import open_store
from coord.transports.hub.stores import OpenStore
from tests.support.hub.in_process import NOWHERE, PATIENCE_S, HubThread

PERSON = Caller(session="person", person=True)
_numbers = itertools.count(1)


class Site:
    """A running hub, and its store."""

    def __init__(self, thread: HubThread, database: Database[Any], store: OpenStore) -> None:
        self.thread = thread
        self.database = database
        self.store = store
        self.streams: list[EventStream] = []

    @property
    def hub(self) -> Any:
        return self.thread.hub

    @property
    def address(self) -> str:
        return self.thread.address

    def run(self, command: Any, tenant: str = "local") -> Any:
        return self.store.engine(tenant).call(command)

    def token(self, role: Role = Role.VIEW, *, tenant: str = "local", **limits: Any) -> str:
        """Return the text of a new token."""
        text = make_token(self.database.store_id, tenant)
        self.run(CreateToken(caller=PERSON, hash=parse_token(text).hash, role=role, **limits), tenant)
        return text

    def info(self, token: str) -> TokenInfo:
        found: TokenInfo = self.run(FindToken(parse_token(token).hash))
        return found

    def revoke(self, token: str) -> None:
        self.run(RevokeToken(caller=PERSON, id=self.info(token).id))

    def rotate(self, token: str, grace_ms: int = 0) -> str:
        text = make_token(self.database.store_id, "local")
        new = parse_token(text).hash
        self.run(RotateToken(caller=PERSON, id=self.info(token).id, hash=new, grace_ms=grace_ms))
        return text

    def write(self, count: int = 1, tenant: str = "local", **fields: Any) -> int:
        """Append entries of one event each; return the offset of the last."""
        log = self.database.log(tenant)
        offset = 0
        for _ in range(count):
            event = {"event": "task.added", "project": "shop", "task": f"t{next(_numbers)}", "state": "ready"}
            data = json.dumps({**event, **fields}).encode()
            offset = log.commit(Commit(events=[data], at=log.now()))
        return offset

    def open(self, *, unix: bool = False) -> socket.socket:
        """Return a connection on which a test writes what it likes."""
        if unix:
            made = socket.socket(socket.AF_UNIX)
            made.settimeout(PATIENCE_S)
            made.connect(self.thread.path)
            return made
        host, port = self.address.split(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE_S)

    def raw(self, data: bytes, *, unix: bool = False) -> bytes:
        """Send bytes; return everything that comes until the hub closes the connection."""
        with self.open(unix=unix) as made:
            with contextlib.suppress(OSError):  # a hub that refuses does not read the rest
                made.sendall(data)
            return read_all(made)

    def head(self, method: str, path: str, token: str = "", **headers: str) -> bytes:
        """Return the head of a request that closes its connection."""
        fields = {"Host": self.address, "Connection": "close"}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in fields.items() if value),
        ]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def ask(self, method: str, path: str, token: str = "", body: bytes = b"", **headers: str) -> "Reply":
        """Send a request; return the answer."""
        if body:
            headers["Content-Length"] = str(len(body))
        return Reply(self.raw(self.head(method, path, token, **headers) + body))

    def websocket(self, path: str = "/v1/ws", token: str = "", **options: Any) -> ClientConnection:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return connect(
            f"ws://{self.address}{path}",
            additional_headers={**headers, **options.pop("headers", {})},
            open_timeout=PATIENCE_S,
            compression=None,
            **options,
        )

    def unix_websocket(self, path: str = "/v1/ws", **options: Any) -> ClientConnection:
        return unix_connect(self.thread.path, f"ws://coord{path}", open_timeout=PATIENCE_S, **options)


class Reply:
    """An answer, in parts."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1]) if lines[0] else 0
        self.headers = [tuple(line.split(": ", 1)) for line in lines[1:]]

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    def json(self) -> Any:
        return json.loads(self.body)


def read_all(made: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := made.recv(65536):
            parts.append(part)
    return b"".join(parts)


class EventStream:
    """The messages of `GET /v1/stream`, read one at a time."""

    def __init__(
        self, site: Site, query: str = "", token: str = "", *, unix: bool = False, **headers: str
    ) -> None:
        site.streams.append(self)
        self._made = site.open(unix=unix)
        self._made.sendall(site.head("GET", f"/v1/stream{query}", token, **headers))
        self._file = self._made.makefile("rb")
        self.status = int(self._file.readline().split(b" ")[1])
        self.headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(": ")
            self.headers[name] = value

    def messages(self) -> Iterator[dict[str, str]]:
        """Yield messages until the stream ends; comments and empty messages, too."""
        fields: dict[str, str] = {}
        for line in self._lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            else:
                yield fields
                fields = {}

    def until(self, event: str) -> list[dict[str, str]]:
        """Return the messages up to one of a kind."""
        found = []
        for message in self.messages():
            found.append(message)
            if message.get("event") == event:
                return found
        raise AssertionError(f"the stream ended without {event}: {found}")

    def ids(self, last: int) -> list[int]:
        """Return the offsets of messages, up to one."""
        found: list[int] = []
        for message in self.messages():
            if "id" in message and message.get("event") != "begin":
                found.append(int(message["id"]))
                if found[-1] >= last:
                    return found
        raise AssertionError(f"the stream ended: {found}")

    def _lines(self) -> Iterator[str]:
        rest = b""
        while size := self._chunk_size():
            rest += self._file.read(size)
            self._file.readline()
            *lines, rest = rest.split(b"\n")
            yield from (line.decode() for line in lines)

    def _chunk_size(self) -> int:
        line = self._file.readline().strip()
        return int(line, 16) if line else 0

    def close(self) -> None:
        self._file.close()
        self._made.close()


@contextmanager
def open_site() -> Iterator[Site]:
    """Run a hub with an empty memory store; it is the default one."""
    with tempfile.TemporaryDirectory(prefix="ch-") as folder:
        thread = HubThread(folder)
        database = open_store("memory:")
        location = NOWHERE._replace(store_id=database.store_id)
        store = OpenStore(database, location)
        thread._in_loop(lambda: thread.hub.stores.adopt("", store))
        site = Site(thread, database, store)
        yield site
        for each in site.streams:
            each.close()
        thread.stop()
        database.close()
