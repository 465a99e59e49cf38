"""Every endpoint of the public API, and how they come into the router."""

from collections.abc import Awaitable, Callable
from functools import cache

from coord.transports.hub.api import openapi
from coord.transports.hub.api.endpoint import Endpoint
from coord.transports.hub.api.endpoints import (
    activity,
    admin,
    batch,
    clock,
    commands,
    events,
    founding,
    page,
    page_reads,
    plan,
    rpc,
    sessions,
    setup,
    tasks,
    waiting,
)
from coord.transports.hub.hub import Hub
from coord.transports.hub.request import Request, Response, encode_json
from coord.transports.hub.routing import Router

Handler = Callable[[Hub, Request], Awaitable[Response]]
MODULES = (
    waiting,
    commands,
    sessions,
    tasks,
    clock,
    batch,
    events,
    page,
    page_reads,
    plan,
    admin,
    founding,
    activity,
    setup,
    rpc,
)


@cache
def every_endpoint() -> tuple[Endpoint, ...]:
    """Return every endpoint, in the order of the documentation."""
    return tuple(endpoint for module in MODULES for endpoint in module.endpoints())


@cache
def document() -> bytes:
    """Return the OpenAPI document as JSON."""
    return encode_json(openapi.document(list(every_endpoint())))


async def show_document(_hub: Hub, _request: Request) -> Response:
    """Return the OpenAPI document."""
    return Response(200, document())


def add_routes(router: Router[Handler]) -> None:
    """Add the public API to a router."""
    router.add("GET", "/openapi.json", show_document)
    for endpoint in every_endpoint():
        router.add(endpoint.method, endpoint.path, endpoint)
