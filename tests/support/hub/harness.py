"""A hub in this process, on a memory store, without sockets: requests go to `App.answer`."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urlencode

import msgspec

from coord.core.identity import Caller
from coord.core.tokens.commands import CreateToken
from coord.core.tokens.schema import Role
from coord.core.tokens.text import parse_token
from coord.host.repository import Repository
from coord.host.store_location import StoreLocation
from coord.sdk.client.tokens import make_token
from coord.stores.open import open_store
from coord.transports.hub.app import App
from coord.transports.hub.hub import Hub
from coord.transports.hub.request import Peer, Request, Response
from coord.transports.hub.stores import OpenStore

HOST = "127.0.0.1:7420"
ADDRESS = "203.0.113.7"
REPOSITORY = "shop-repo"
ADMIN = Caller("ida@host:7-1", user="ida", person=True)
Value = TypeVar("Value")


class Reply(NamedTuple):
    """An answer: its status, its body as JSON, and its headers."""

    status: int
    body: Any
    headers: Mapping[str, str]


class HubHarness:
    """A hub, tokens for it, and requests to it."""

    def __init__(self, url: str = "memory:", repository: Repository | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = "/nowhere/coord"
        location = StoreLocation(url, REPOSITORY, repository, "", 0, self.folder)
        self.database = open_store(url)
        self.store = OpenStore(self.database, location)
        self.hub = self._run(self._new_hub(location))
        self.app = App(self.hub)
        self.token = self.new_token("admin")

    async def _new_hub(self, location: StoreLocation) -> Hub:
        hub = Hub({}, location, hosts=frozenset((HOST,)))
        hub.stores.adopt("", self.store)
        return hub

    def _run(self, work: Awaitable[Value]) -> Value:
        async def run() -> Value:
            return await work

        return self.loop.run_until_complete(run())

    def close(self) -> None:
        self.hub.stop()
        self._run(self.hub.stores.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_token(self, role: str, tenant: str = "local", **limits: Any) -> str:
        """Return the text of a new token."""
        text = make_token(self.database.store_id, tenant)
        command = CreateToken(caller=ADMIN, hash=parse_token(text).hash, role=Role(role), **limits)
        self.store.engine(tenant).call(command)
        return text

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        query: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Request:
        named = {"host": HOST, "authorization": f"Bearer {self.token if token is None else token}"}
        content = data if data is not None else b"" if body is None else msgspec.json.encode(body)
        return Request(
            method,
            path,
            urlencode(query or {}, doseq=True),
            {**named, **(headers or {})},
            content,
            Peer(address=ADDRESS),
        )

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        """Return the answer to a request."""
        return self.answer(self.request(method, path, body, **more))

    def answer(self, request: Request) -> Reply:
        return self._run(self._answer(request))

    async def _answer(self, request: Request) -> Reply:
        response = await self.app.answer(request)
        body = json.loads(response.body) if response.body else None
        return Reply(response.status, body, response.headers)

    def raw(self, method: str, path: str, data: bytes, content_type: str, token: str) -> Response:
        """Return the answer to a request as it is."""
        request = self.request(method, path, data=data, token=token, headers={"content-type": content_type})
        return self._run(self.app.answer(request))

    def text(self, path: str, **more: Any) -> str:
        """Return an answer that is no JSON."""
        response = self._run(self.app.answer(self.request("GET", path, **more)))
        assert response.status == 200, response.body
        return response.body.decode()

    def together(self, *asks: Callable[[], Request]) -> list[Reply]:
        """Return the answers to requests that are under way at the same time, in order."""

        async def run() -> list[Reply]:
            return await asyncio.gather(*(self._answer(ask()) for ask in asks))

        return self._run(run())

    def events(self, tenant: str = "local") -> list[dict[str, Any]]:
        """Return every event of a tenant's log."""
        entries = self.database.log(tenant).tail(0, 10_000)
        return [json.loads(event) for entry in entries for event in entry.events]
