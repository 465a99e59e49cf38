"""The routes of hooks."""

from collections.abc import Awaitable, Callable

from coord.integrations.hooks.hub_client import CONTENT_TYPE, HOOK, PRINTED
from coord.transports.hub.hooks import http_form
from coord.transports.hub.hooks.answers import answers_of
from coord.transports.hub.hooks.exchange import NotHere, read_call
from coord.transports.hub.hub import Hub
from coord.transports.hub.request import Request, Response, json_response
from coord.transports.hub.routing import Router

Handler = Callable[[Hub, Request], Awaitable[Response]]


def add_routes(router: "Router[Handler]") -> None:
    """Add the routes of hooks."""
    router.add("GET", HOOK, counts)
    router.add("POST", HOOK, hook)
    router.add("POST", PRINTED, printed)
    http_form.add_routes(router)


async def hook(hub: Hub, request: Request) -> Response:
    """Answer a hook of a process on this machine."""
    if not request.peer.unix or request.headers.get("content-type") != CONTENT_TYPE:
        raise NotHere("only the hook program of coord asks here, over the socket")
    if hub.stopping.is_set():
        raise NotHere("the hub is stopping")
    body = await answers_of(hub).answer(read_call(request.body), request.peer.pid)
    return Response(200, body, CONTENT_TYPE)


async def counts(hub: Hub, request: Request) -> Response:
    """Return how many hooks the hub has answered, and how many had to answer themselves."""
    if not request.peer.unix:
        raise NotHere("only processes of this machine ask here, over the socket")
    answers = answers_of(hub)
    return json_response({"answered": answers.answered, "left": answers.left})


async def printed(hub: Hub, request: Request) -> Response:
    """Note that a hook has printed its answer."""
    if not request.peer.unix:
        raise NotHere("only the hook program of coord asks here, over the socket")
    answers_of(hub).confirm(request.body[:64].decode("ascii", "replace"))
    return Response(204)
