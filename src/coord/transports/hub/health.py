"""`/healthz`: the process answers. `/readyz`: its store answers, too."""

import asyncio

from coord.core.errors import CoordError, Unavailable
from coord.transports.hub.hub import Hub
from coord.transports.hub.request import Request, Response, json_response

REUSED_S = 1.0
"""How long an answer about the store counts: strangers may ask, and must not cost a read each."""


async def alive(hub: Hub, request: Request) -> Response:
    """Answer as long as the event loop runs."""
    return json_response({"ok": True})


async def ready(hub: Hub, request: Request) -> Response:
    """Answer 200 if the default store can be read; 503 while it cannot, or the hub stops."""
    if hub.stopping.is_set():
        raise Unavailable("the hub is stopping", hint="use another one")
    if hub.readiness is None:
        hub.readiness = asyncio.ensure_future(_read_store(hub))
        hub.readiness.add_done_callback(
            lambda _: asyncio.get_running_loop().call_later(REUSED_S, _forget, hub)
        )
    if problem := await asyncio.shield(hub.readiness):
        raise Unavailable(problem, hint="the log of the hub says more")
    return json_response({"ok": True})


async def _read_store(hub: Hub) -> str:
    """Return why the default store cannot be read; "" if it can."""
    try:
        store = await hub.stores.of_repository("")
        await hub.stores.run(lambda: store.log("local").load(()))
    except CoordError as error:
        return f"the store does not answer: {error.message}"
    return ""


def _forget(hub: Hub) -> None:
    hub.readiness = None
