"""The ASGI application: check a request, find its handler, and answer; every error becomes a response.

The order of the checks: size, then `Host` (a foreign name means DNS rebinding), then `Origin` (a foreign web
page), then the token, then the route. Only `/healthz`, `/readyz` and `/openapi.json` need no token.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from coord.core.errors import CoordError
from coord.sdk.remote import wire
from coord.transports.hub import calls, health
from coord.transports.hub.api import routes as api
from coord.transports.hub.authentication import authenticate
from coord.transports.hub.hub import Hub
from coord.transports.hub.problems import HttpError, problem, wire_problem
from coord.transports.hub.request import MSGPACK, Peer, Request, Response
from coord.transports.hub.routing import Router

logger = logging.getLogger("coord.hub")

Handler = Callable[[Hub, Request], Awaitable[Response]]
BODY_BYTES_MAX = 16 * 1024 * 1024
PUBLIC = ("/healthz", "/readyz", "/openapi.json")
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


def routes() -> Router[Handler]:
    """Return every route of the hub."""
    router: Router[Handler] = Router()
    router.add("GET", "/healthz", health.alive)
    router.add("GET", "/readyz", health.ready)
    router.add("POST", wire.HELLO, calls.hello)
    router.add("POST", wire.CALL, calls.call)
    router.add("POST", wire.WAIT, calls.wait)
    router.add("POST", wire.TAIL, calls.tail)
    router.add("POST", wire.TRIM, calls.trim)
    api.add_routes(router)
    return router


class App:
    """Answers requests for one hub."""

    def __init__(self, hub: Hub, router: Router[Handler] | None = None) -> None:
        self.hub = hub
        self.router = router or routes()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection of ASGI."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        request = _request(scope)
        try:
            request.body = await _read_body(receive, request)
            response = await self.answer(request)
        except CoordError as error:
            response = self._failed(request, error)
        await _respond(send, response, head=request.method == "HEAD")

    async def answer(self, request: Request) -> Response:
        """Return the response to a request; errors included."""
        hub = self.hub
        hub.requests += 1
        hub.last_request_s = time.monotonic()
        try:
            self._check_origin(request)
            handler, request.parameters = self.router.find(request.method, request.path)
            if request.path not in PUBLIC:
                request.identity = await authenticate(hub, request)
            return await handler(hub, request)
        except CoordError as error:
            return self._failed(request, error)
        except Exception as error:
            logger.exception("the handler of %s failed", request.path)
            return self._failed(request, error)

    def _failed(self, request: Request, error: BaseException) -> Response:
        if request.headers.get("content-type") == MSGPACK:
            return wire_problem(error)
        return problem(error)

    def _check_origin(self, request: Request) -> None:
        """Refuse requests that a foreign web page makes, directly or by a name that it controls."""
        if request.peer.unix:
            return
        host = request.headers.get("host", "")
        if host.lower() not in self.hub.hosts:
            raise HttpError(
                421,
                "misdirected",
                f"this hub is not {host[:100]!r}",
                hint="coord serve --host NAME allows a name",
            )
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() not in self.hub.hosts:
            raise HttpError(403, "foreign_origin", "a web page of another origin may not ask this hub")


def _request(scope: Any) -> Request:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return Request(
        scope["method"],
        scope["raw_path"].decode("latin-1"),
        scope["query_string"].decode("latin-1"),
        headers,
        b"",
        scope.get("coord.peer") or Peer(address=(scope.get("client") or ("", 0))[0]),
    )


async def _read_body(receive: Any, request: Request) -> bytes:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HttpError(415, "compressed", "compressed bodies are not read", hint="send it as it is")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > BODY_BYTES_MAX:
        raise too_large()
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpError(400, "truncated", "the connection ended inside of the request")
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES_MAX:
            raise too_large()
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large() -> HttpError:
    """Return the refusal of a body that is too large."""
    return HttpError(
        413,
        "too_large",
        f"the body is larger than {BODY_BYTES_MAX} bytes",
        hint="send it in parts",
        headers={"Connection": "close"},
    )


async def _respond(send: Any, response: Response, *, head: bool) -> None:
    headers = [
        (b"content-type", response.content_type.encode()),
        *SECURITY_HEADERS,
        *(
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in response.headers.items()
        ),
    ]
    if response.stream is None:
        headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.stream is None:
        await send({"type": "http.response.body", "body": b"" if head else response.body})
        return
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    async for part in response.stream:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
