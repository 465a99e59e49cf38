"""`/healthz`: the process answers. `/readyz`: its store answers, too."""

from coord.core.errors import CoordError, Unavailable
from coord.transports.hub.hub import Hub
from coord.transports.hub.request import Request, Response, json_response


async def alive(hub: Hub, request: Request) -> Response:
    """Answer as long as the event loop runs."""
    return json_response({"ok": True})


async def ready(hub: Hub, request: Request) -> Response:
    """Answer 200 if the default store can be read; 503 while it cannot, or the hub stops."""
    if hub.stopping.is_set():
        raise Unavailable("the hub is stopping", hint="use another one")
    try:
        store = await hub.stores.of_repository("")
        await hub.stores.run(lambda: store.log("local").load(()))
    except CoordError as error:
        raise Unavailable(f"the store does not answer: {error.message}", hint=error.hint) from error
    return json_response({"ok": True})
