"""`/mcp`: streamable HTTP for clients of both eras of MCP, and for `coord mcp`.

Every POST is one message and gets one answer as JSON; there are no sessions and no streams, so a GET or a
DELETE gets 405, as the specification says. Calls run in threads; `wait` and
`ask_human` wait in the event loop.
"""

import asyncio
import base64
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from coord.core.errors import CoordError, Invalid
from coord.core.identity import Caller, Process
from coord.core.ids import check_id
from coord.engine.engine import Engine
from coord.host.caller import TENANT
from coord.host.processes import lineage, own_ancestors
from coord.host.store_location import StoreLocation
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import Identity
from coord.transports.hub.mcp.bridge_call import COMMAND_ID, HEADER, BridgeCall, speaker
from coord.transports.hub.mcp.hub_client import HubClient, as_session, plain_caller
from coord.transports.hub.mcp.protocol import Message, RpcError, error_reply, parse, reply_to
from coord.transports.hub.mcp.resources import read_resource
from coord.transports.hub.mcp.tools import AskCall, Call, WaitCall, failed, read_call, run_tool
from coord.transports.hub.problems import HttpError
from coord.transports.hub.request import JSON, Request, Response
from coord.transports.hub.routing import Router
from coord.transports.hub.stores import OpenStore

logger = logging.getLogger("coord.hub")
PATH = "/mcp"
THREADS = 16
KEPT_S = 1.0
LOOK_S = 0.1
"""How long `ask_human` waits between two looks, while the log grows by other things."""
PEERS_MAX = 1000
FROM_STORE = ("tools/call", "resources/read")


def add_routes(router: Router[Any]) -> None:
    """Add the route of MCP."""
    router.add("POST", PATH, Endpoint().post)


class Endpoint:
    """Answers the messages of MCP clients."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="coord-mcp")

    async def post(self, hub: Hub, request: Request) -> Response:
        """Answer one message."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise HttpError(415, "invalid", "a message of MCP is JSON", hint=f"send Content-Type: {JSON}")
        try:
            bridged = request.peer.unix and HEADER.lower() in request.headers
            message = parse(request.body, None if bridged else request.headers)
            if message is None or not message.expects_reply:
                return Response(202)
            if message.method not in FROM_STORE:
                return Response(body=reply_to(message, NoStore()))
            return Response(body=await self._from_store(hub, request, message))
        except RpcError as error:
            return Response(error.status, error_reply(error))

    async def _from_store(self, hub: Hub, request: Request, message: Message) -> bytes:
        """Run a tool or read a resource; an error of the store is that of the call."""
        try:
            sender = await _find_sender(hub, request)
        except CoordError as error:
            if request.peer.unix and HEADER.lower() in request.headers:
                raise  # the bridge then runs the call itself
            return reply_to(message, Refusing(error))
        store, engine = sender.store, sender.engine
        with store.in_use():
            arguments = message.params.get("arguments")
            if message.params.get("name") == "wait" and isinstance(arguments, dict):
                message = await _waited(hub, message, arguments, store, engine.tenant)
            if message.params.get("name") == "ask_human" and isinstance(arguments, dict):
                return await self._ask(hub, message, arguments, sender)
            return await self._run(message, sender)

    async def _run(self, message: Message, sender: "Sender") -> bytes:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, reply_to, message, sender)

    async def _ask(self, hub: Hub, message: Message, arguments: dict[str, Any], sender: "Sender") -> bytes:
        """Ask a person, and wait for the answer here: a thread that waits is lost for others."""
        reply = await self._run(_with(message, {**arguments, "timeout_s": 0}), sender)
        try:
            call = read_call("ask_human", arguments)
        except Invalid:
            return reply
        assert isinstance(call, AskCall), "read as such"
        watcher = hub.watcher(sender.store, sender.engine.tenant)
        again: dict[str, Any] = {"session": call.session, "timeout_s": 0}
        if own := call.command_id or sender.command_id:  # it acknowledges the message with the answer
            again["command_id"] = f"{own[:120]}.answer"
        until = time.monotonic() + call.timeout_s
        while (name := _open_question(reply)) and not hub.stopping.is_set():
            left_s = until - time.monotonic()
            if left_s <= 0:
                break
            await watcher.wait(sender.store.log(sender.engine.tenant).seen.offset, left_s)
            await asyncio.sleep(min(LOOK_S, max(0.0, until - time.monotonic())))
            reply = await self._run(_with(message, {**again, "id": name}), sender)
        return reply


def _with(message: Message, arguments: dict[str, Any]) -> Message:
    return message._replace(params={**message.params, "arguments": arguments})


def _open_question(reply: bytes) -> str:
    """Return the id of the question in a reply, if it is open."""
    result = msgspec.json.decode(reply).get("result", {})
    question = result.get("structuredContent", {}).get("question", {})
    return question["id"] if question.get("state") == "open" else ""


async def _waited(
    hub: Hub, message: Message, arguments: dict[str, Any], store: OpenStore, tenant: str
) -> Message:
    """Wait for the log as the arguments say; return the message without the time that is over."""
    try:
        call = read_call("wait", arguments)
    except Invalid:
        return message  # the tool says what is wrong
    assert isinstance(call, WaitCall), "read as such"
    after = store.log(tenant).seen.offset if call.after is None else call.after
    if call.timeout_s and not hub.stopping.is_set():
        await hub.watcher(store, tenant).wait(after, call.timeout_s)
    waited = {**arguments, "after": after, "timeout_s": 0}
    return message._replace(params={**message.params, "arguments": waited})


class NoStore:
    """A server for messages that need no store."""

    def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError(f"{name} needs a store")

    def read_resource(self, uri: str) -> list[dict[str, Any]]:
        raise AssertionError(f"{uri} needs a store")


class Refusing:
    """A server whose store cannot be used."""

    def __init__(self, error: CoordError) -> None:
        self._error = error

    def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return failed(self._error)

    def read_resource(self, uri: str) -> list[dict[str, Any]]:
        raise self._error


class Sender:
    """The sender of a message, and the store that it means: a server for its calls."""

    def __init__(self, hub: Hub, request: Request, store: OpenStore, engine: Engine) -> None:
        self.store = store
        self.engine = engine
        self._identity: Identity = request.identity
        self._peer = request.peer
        self._environ = hub.stores.environ
        self._bridge = _bridge_call(request)
        self.command_id = _command_id(request)
        root = self._bridge.root if self._bridge is not None else ""
        self._location: StoreLocation = hub.stores.location_of(root) or store.location

    def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool."""
        try:
            call = read_call(name, arguments)
            client = self._client(call)
            try:
                return run_tool(client, call)
            finally:
                client.close()
        except CoordError as error:
            return failed(error)
        except Exception as error:
            logger.exception("the tool %s failed", name[:100])
            return failed(error)

    def read_resource(self, uri: str) -> list[dict[str, Any]]:
        """Read a resource."""
        client = self._client(Call())
        try:
            return read_resource(client, uri)
        finally:
            client.close()

    def _client(self, call: Call) -> HubClient:
        repository = self._location.repository
        root = repository.root if repository is not None and repository.root is not None else "/"
        return HubClient(
            self.store,
            self.engine,
            self._identity,
            self._caller(call),
            location=self._location,
            cwd=self._bridge.cwd if self._bridge is not None else root,
            environ=self._environ,
            command_id=getattr(call, "command_id", "") or self.command_id,
        )

    def _caller(self, call: Call) -> Caller:
        """Return the caller of a call: the session that it names, or that of its process or token."""
        session = check_id("session id", call.session) if call.session else ""
        plain = plain_caller(self._identity, self._identity.check_session(session), self._location)
        if self._identity.token is not None:
            return plain
        ancestors = ancestors_of(self._peer.pid)
        if self._bridge is None:
            return msgspec.structs.replace(plain, process_ancestors=ancestors)
        caller, otherwise = (
            None if each is None else msgspec.structs.replace(each, process_ancestors=ancestors, token="")
            for each in (self._bridge.caller, self._bridge.otherwise)
        )
        assert caller is not None, "only the other one may be missing"
        return as_session(caller, session) if session else speaker(self.engine, caller, otherwise)


_known: dict[int, tuple[float, tuple[Process, ...]]] = {}
"""The ancestors of peers, and until when we believe that they are the same."""


def ancestors_of(pid: int) -> tuple[Process, ...]:
    """Return the ancestors of a peer; reading them takes a third of a call, so they are kept for a second."""
    now = time.monotonic()
    until, found = _known.get(pid, (0.0, ()))
    if until > now:
        return found
    if len(_known) >= PEERS_MAX:
        _known.clear()
    found = tuple(own_ancestors(lineage(pid)))
    _known[pid] = (now + KEPT_S, found)
    return found


def _bridge_call(request: Request) -> BridgeCall | None:
    """Return what `coord mcp` says about its agent; nobody else may say so."""
    given = request.headers.get(HEADER.lower(), "") if request.peer.unix else ""
    if not given:
        return None
    try:
        return msgspec.json.decode(base64.b64decode(given), type=BridgeCall)
    except (ValueError, msgspec.MsgspecError) as error:
        raise Invalid(f"the header Coord-Caller cannot be read: {error}") from error


def _command_id(request: Request) -> str:
    """Return the id that a bridge gives a call which has none."""
    given = request.headers.get(COMMAND_ID.lower(), "") if request.peer.unix else ""
    return check_id("command id", given) if given else ""


async def _find_sender(hub: Hub, request: Request) -> Sender:
    identity: Identity = request.identity
    if not request.peer.unix:
        assert identity.store is not None, "a token names its store"
        store, tenant = identity.store, identity.tenant
    elif (bridge := _bridge_call(request)) is None:
        store, tenant = await hub.stores.at(hub.stores.default), TENANT
    else:
        store, tenant = await hub.stores.of_root(bridge.root), check_id("tenant id", bridge.tenant)
        if bridge.store_id != store.database.store_id:
            raise HttpError(421, "misdirected", "this hub has another store there")
    engine = await hub.stores.engine(store, tenant)
    return Sender(hub, request, store, engine)
