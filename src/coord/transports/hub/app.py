"""The ASGI application: check a request, find its handler, and answer; every error becomes a response.

The order of the checks: `Host` (a foreign name means DNS rebinding), then `Origin` (a foreign web page), then
the route, then the token, then its limits, and only then the body. Only `PUBLIC` routes need no token.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from coord.core.errors import Busy, CoordError
from coord.sdk.remote import wire
from coord.transports.hub import calls, health
from coord.transports.hub.api import routes as api
from coord.transports.hub.authentication import authenticate
from coord.transports.hub.browser import routes as browser
from coord.transports.hub.followers import scrape
from coord.transports.hub.hooks import routes as hook_routes
from coord.transports.hub.hub import Hub
from coord.transports.hub.mcp import endpoint as mcp
from coord.transports.hub.page import assets
from coord.transports.hub.problems import HttpError, problem, wire_problem
from coord.transports.hub.request import MSGPACK, Peer, Request, Response
from coord.transports.hub.routing import Router
from coord.transports.hub.streams import sse, websocket
from coord.transports.hub.telemetry import routes as telemetry

logger = logging.getLogger("coord.hub")

Handler = Callable[[Hub, Request], Awaitable[Response]]
BODY_BYTES_MAX = 16 * 1024 * 1024
BODIES_BYTES_MAX = 256 * 1024 * 1024
"""How much of all bodies may be in memory before further ones are refused."""
STRANGER_BYTES_MAX = 4096
"""How large a body may be if nobody has shown a token."""
PUBLIC = frozenset(("/healthz", "/readyz", "/openapi.json", *browser.PUBLIC, *assets.PUBLIC))
"""The routes that need no token."""
UPGRADES = {websocket.PATH: websocket.serve}
"""The paths of WebSockets."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


def routes() -> Router[Handler]:
    """Return every route of the hub."""
    router: Router[Handler] = Router()
    router.add("GET", "/healthz", health.alive)
    router.add("GET", "/readyz", health.ready)
    router.add("GET", scrape.PATH, scrape.scrape)
    router.add("POST", wire.HELLO, calls.hello)
    router.add("POST", wire.CALL, calls.call)
    router.add("POST", wire.WAIT, calls.wait)
    router.add("POST", wire.TAIL, calls.tail)
    router.add("POST", wire.TRIM, calls.trim)
    api.add_routes(router)
    browser.add_routes(router)
    assets.add_routes(router)
    router.add("GET", sse.PATH, sse.stream)
    router.add("GET", websocket.PATH, websocket.explain)
    hook_routes.add_routes(router)
    mcp.add_routes(router)
    telemetry.add_routes(router)
    return router


class App:
    """Answers requests for one hub."""

    def __init__(self, hub: Hub, router: Router[Handler] | None = None) -> None:
        self.hub = hub
        self.router = router or routes()
        known = self.router.routes.items()
        self._private = frozenset(handler for route, handler in known if route.path not in PUBLIC)
        self._body_bytes = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection of ASGI."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._serve_websocket(scope, receive, send)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        request = self._request(scope)
        response = await self.answer(request, receive)
        await _respond(send, receive, response, head=request.method == "HEAD")

    async def _serve_websocket(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a WebSocket after the same checks; a refused one gets the same answer as a request."""
        request = self._request(scope)
        accepted = False

        async def send_on(message: dict[str, Any]) -> None:
            nonlocal accepted
            accepted = True
            await send(message)

        await receive()
        try:
            self._check_origin(request)
            serve = UPGRADES.get(request.path)
            if serve is None:
                raise HttpError(404, "not_found", f"there is no {request.path[:200]!r} here")
            await self._identify(request)
            await serve(self.hub, request, receive, send_on)
        except Exception as error:
            if accepted:
                raise
            response = self._failed(request, error)
            start = {"status": response.status, "headers": _headers(response)}
            await send({"type": "websocket.http.response.start", **start})
            await send({"type": "websocket.http.response.body", "body": response.body})

    def _request(self, scope: Any) -> Request:
        request = _request(scope)
        if self.hub.behind_proxy and not request.peer.unix:  # the proxy adds the address that it sees
            last = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
            request.peer = request.peer._replace(address=last[:64] or request.peer.address)
        return request

    async def answer(self, request: Request, receive: Any = None) -> Response:
        """Return the response to a request; errors included. `receive` gives its body."""
        hub = self.hub
        hub.requests += 1
        hub.last_request_s = time.monotonic()
        try:
            self._check_origin(request)
            handler, request.parameters = self.router.find(request.method, request.path)
            token_id = await self._identify(request) if handler in self._private else ""
            if not token_id:
                return await self._handle(handler, request, receive)
            with hub.rates.running(token_id):
                return await self._handle(handler, request, receive)
        except Exception as error:  # noqa: BLE001 - every error becomes an answer
            return self._failed(request, error)

    async def _handle(self, handler: Handler, request: Request, receive: Any) -> Response:
        if receive is None:
            return await handler(self.hub, request)
        most = BODY_BYTES_MAX if request.identity is not None else STRANGER_BYTES_MAX
        _check_body(request, most)
        message = await receive()
        whole: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body") and len(whole) <= most:
            request.body = whole
            return await handler(self.hub, request)
        held: list[bytes] = []
        try:
            await self._read_body(message, receive, most, held)
            request.body = b"".join(held)
            return await handler(self.hub, request)
        finally:
            self._body_bytes -= sum(map(len, held))

    async def _read_body(self, message: Any, receive: Any, most: int, held: list[bytes]) -> None:
        """Collect a body that comes in parts, as long as all bodies together fit into memory."""
        size = 0
        while True:
            if message["type"] == "http.disconnect":
                raise HttpError(400, "truncated", "the connection ended inside of the request")
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise too_large(most)
            held.append(part)
            self._body_bytes += len(part)
            if self._body_bytes > BODIES_BYTES_MAX:
                raise Busy("the hub reads too many large requests", hint="try again")
            if not message.get("more_body"):
                return
            message = await receive()

    async def _identify(self, request: Request) -> str:
        """Find out who sends a request, and whether it may send one now; return the id of its token."""
        request.identity = await authenticate(self.hub, request)
        token = request.identity.token
        if token is None:
            return ""
        self.hub.rates.check(token.id, self.hub.last_request_s)
        return str(token.id)

    def _failed(self, request: Request, error: BaseException) -> Response:
        if not isinstance(error, CoordError):
            logger.error("the handler of %s failed", request.path, exc_info=error)
            error = CoordError("the hub has a defect", hint="its log says more")
        if request.headers.get("content-type") == MSGPACK:
            return wire_problem(error)
        return problem(error)

    def _check_origin(self, request: Request) -> None:
        """Refuse requests that a foreign web page makes, directly or by a name that it controls."""
        if request.peer.unix:
            return
        hosts = self.hub.hosts
        host = request.headers.get("host", "")
        if host.lower() not in hosts:
            raise HttpError(
                421,
                "misdirected",
                f"this hub is not {host[:100]!r}",
                hint="coord serve --host NAME allows a name",
            )
        origin = request.headers.get("origin")
        if origin is None:
            return
        scheme, _, name = origin.lower().partition("://")
        if scheme not in ("http", "https") or name not in hosts:
            raise HttpError(403, "foreign_origin", "a web page of another origin may not ask this hub")


def _request(scope: Any) -> Request:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return Request(
        scope.get("method", "GET"),
        scope["raw_path"].decode("latin-1"),
        scope["query_string"].decode("latin-1"),
        headers,
        b"",
        scope.get("coord.peer") or Peer(address=(scope.get("client") or ("", 0))[0]),
    )


def _check_body(request: Request, most: int) -> None:
    """Refuse a body by what its head says of it."""
    if request.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise HttpError(415, "compressed", "compressed bodies are not read", hint="send it as it is")
    declared = request.headers.get("content-length", "0")
    if len(declared) > len(str(BODY_BYTES_MAX)) or (declared.isdecimal() and int(declared) > most):
        raise too_large(most)


def too_large(most: int) -> HttpError:
    """Return the refusal of a body that is too large."""
    return HttpError(
        413,
        "too_large",
        f"the body is larger than {most} bytes",
        hint="send it in parts",
        headers={"Connection": "close"},
    )


def _headers(response: Response) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response; what cannot stand in a header is replaced, whoever it comes from."""
    own = {name.lower().encode("latin-1"): _value(text) for name, text in response.headers.items()}
    usual = [(name, value) for name, value in SECURITY_HEADERS if name not in own]
    return [(b"content-type", response.content_type.encode()), *usual, *own.items()]


def _value(text: str) -> bytes:
    return "".join(each if each.isprintable() else "?" for each in text).encode("latin-1", "replace")


async def _respond(send: Any, receive: Any, response: Response, *, head: bool) -> None:
    headers = _headers(response)
    start = {"type": "http.response.start", "status": response.status, "headers": headers}
    if response.stream is None:
        headers.append((b"content-length", str(len(response.body)).encode()))
        there = response.sent is None or not await _is_gone(receive)
        await send(start)
        await send({"type": "http.response.body", "body": b"" if head else response.body})
        if response.sent is not None and there:
            response.sent()
        return
    await send(start)
    if not head:
        await _stream(send, receive, response)
    await send({"type": "http.response.body", "body": b""})


async def _is_gone(receive: Any) -> bool:
    """Whether a client has closed its connection while it waited for the answer."""
    leaving: asyncio.Future[Any] = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    gone = leaving.done()
    leaving.cancel()
    return gone


async def _stream(send: Any, receive: Any, response: Response) -> None:
    """Send parts until there are no more, or `receive` says that the client is gone."""

    async def pump() -> None:
        assert response.stream is not None
        async with aclosing(response.stream) as parts:
            await send({"type": "http.response.body", "body": response.body, "more_body": True})
            async for part in parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    pumping, leaving = asyncio.ensure_future(pump()), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({pumping, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pumping, leaving):
            task.cancel()
        await asyncio.wait({pumping, leaving})
    if not pumping.cancelled() and (error := pumping.exception()) is not None:
        raise error
