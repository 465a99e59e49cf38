"""Find out who sends a request: the kernel for the unix socket, a token for TCP."""

import os

from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import PROCESS, Identity
from coord.transports.hub.problems import HttpError
from coord.transports.hub.request import Request

COOKIE = "coord_token"


async def authenticate(hub: Hub, request: Request) -> Identity:
    """Return the sender of a request, or refuse it."""
    if request.peer.unix:
        if request.peer.uid != os.getuid():
            raise HttpError(403, "forbidden", "the socket of this hub is for its own user only")
        return PROCESS
    text = _token_text(request)
    if not text:
        raise unauthorized("this request needs a token")
    hub.tokens.check_guesses(request.peer.address)
    known = await hub.tokens.find(hub.stores, text)
    if known is None:
        hub.tokens.count_guess(request.peer.address)
        raise unauthorized("this token is not valid here")
    repository = request.headers.get("coord-repository", "") or known.store.location.repository_id
    info, tenant = known.info, known.parsed.tenant
    return Identity(known.store, info.role, tenant, repository, info, request.peer.address)


async def is_still_valid(hub: Hub, request: Request) -> bool:
    """Whether the token of an accepted request counts now; for what takes longer than a request."""
    if request.peer.unix:
        return True
    return await hub.tokens.find(hub.stores, _token_text(request), fresh=True) is not None


def _token_text(request: Request) -> str:
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return text.strip()
    for part in request.headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def unauthorized(message: str) -> HttpError:
    """Return the refusal of a request whose sender is not known."""
    return HttpError(
        401,
        "unauthorized",
        message,
        hint="send Authorization: Bearer TOKEN; coord token create makes one",
        headers={"WWW-Authenticate": "Bearer"},
    )
