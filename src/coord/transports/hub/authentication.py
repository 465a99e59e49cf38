"""Find out who sends a request: the kernel for the unix socket, a token for TCP."""

import os

from coord.core.ids import check_id
from coord.core.tokens.schema import Role
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import PROCESS, REPORT_PATHS, Identity, forbidden
from coord.transports.hub.problems import HttpError
from coord.transports.hub.request import Request

COOKIE = "coord_token"


async def authenticate(hub: Hub, request: Request) -> Identity:
    """Return the sender of a request, or refuse it."""
    if request.peer.unix:
        if request.peer.uid != os.getuid():
            raise HttpError(403, "forbidden", "the socket of this hub is for its own user only")
        return PROCESS
    text, from_cookie = _token_text(request)
    if not text:
        raise unauthorized("this request needs a token")
    if from_cookie:
        _check_page(request)
    known = await hub.tokens.identify(hub.stores, text, request.peer.address)
    if known is None:
        raise unauthorized("this token is not valid here")
    repository = request.headers.get("coord-repository", "")
    if repository:
        check_id("repository id", repository)  # it becomes a part of keys
    else:
        repository = known.store.location.repository_id
    info, tenant = known.info, known.parsed.tenant
    if info.role is Role.REPORT and request.path not in REPORT_PATHS:
        raise forbidden("this token may only report usage")
    return Identity(known.store, info.role, tenant, repository, info, request.peer.address, from_cookie)


async def is_still_valid(hub: Hub, request: Request) -> bool:
    """Whether the token of an accepted request counts now; for what takes longer than a request."""
    if request.peer.unix:
        return True
    return await hub.tokens.find(hub.stores, _token_text(request)[0]) is not None


def _token_text(request: Request) -> tuple[str, bool]:
    """Return the token of a request, and whether a browser sent it by itself."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return text.strip(), False
    wanted = cookie_name(request)
    for part in request.headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            return value, True
    return "", False


def cookie_name(request: Request) -> str:
    """Return the name of the cookie with the token; browsers send cookies to every port of a host."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() and port.isascii() else COOKIE


def _check_page(request: Request) -> None:
    """Refuse a request that a page of another site or port lets the browser make with its cookie."""
    fetched = request.headers.get("sec-fetch-site")
    if fetched not in (None, "same-origin", "none"):
        raise csrf("another page made this request")
    writes = request.method not in ("GET", "HEAD") or "upgrade" in request.headers
    if writes and "origin" not in request.headers and fetched != "same-origin":
        raise csrf("this request does not say which page made it")


def csrf(message: str) -> HttpError:
    """Return the refusal of a request that a page of somebody else may have made."""
    return HttpError(403, "foreign_origin", message, hint="send Authorization: Bearer TOKEN instead")


def unauthorized(message: str) -> HttpError:
    """Return the refusal of a request whose sender is not known."""
    return HttpError(
        401,
        "unauthorized",
        message,
        hint="send Authorization: Bearer TOKEN; coord token create makes one",
        headers={"WWW-Authenticate": "Bearer"},
    )
