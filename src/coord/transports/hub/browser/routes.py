"""`/login` and the link to it: how a browser gets its cookie."""

from typing import Any, TypeVar

import msgspec

from coord.core.errors import Invalid
from coord.core.identity import Caller
from coord.core.ids import check_id
from coord.core.tokens.commands import RevokeToken
from coord.sdk.remote import wire
from coord.transports.hub.authentication import cookie_name, unauthorized
from coord.transports.hub.browser import pages
from coord.transports.hub.browser.links import LINK_S
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import Identity, forbidden
from coord.transports.hub.request import JSON, MSGPACK, Request, Response
from coord.transports.hub.routing import Router

Body = TypeVar("Body")
PUBLIC = ("/login", "/login.js")
LOGIN_LINK = "/v1/login-link"


class NewLink(msgspec.Struct):
    """A process of this machine asks for a link that stands for a token."""

    target: wire.Target
    token: str


class Login(msgspec.Struct):
    """A browser gives the code of a link."""

    once: str


def add_routes(router: Router[Any]) -> None:
    """Add the routes of the browser."""
    router.add("GET", "/login", login_page)
    router.add("GET", "/login.js", login_script)
    router.add("POST", "/login", login)
    router.add("POST", "/logout", logout)
    router.add("POST", LOGIN_LINK, login_link)


async def login_page(hub: Hub, request: Request) -> Response:
    """Return the page that sends the code behind `#`."""
    return pages.html(pages.LOGIN)


async def login_script(hub: Hub, request: Request) -> Response:
    """Return the script of that page."""
    return pages.script(pages.LOGIN_SCRIPT)


async def login_link(hub: Hub, request: Request) -> Response:
    """Remember a token for a link; only a process of this user may ask."""
    if not request.peer.unix:
        raise forbidden("links are made over the hub's socket only")
    body = _body(request, NewLink)
    store = await hub.stores.of_root(body.target.root)
    with store.in_use():
        await hub.stores.engine(store, check_id("tenant id", body.target.tenant))
        if await hub.tokens.find(hub.stores, body.token) is None:
            raise Invalid("this token is not valid here", hint="coord token list")
    return Response(200, wire.encode({"once": hub.links.add(body.token), "seconds": LINK_S}), MSGPACK)


async def login(hub: Hub, request: Request) -> Response:
    """Turn the code of a link into a cookie."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != JSON:
        raise Invalid("the body is JSON", hint="open the link in a browser")
    hub.tokens.check_guesses(request.peer.address)
    token = hub.links.take(_body(request, Login).once)
    known = await hub.tokens.find(hub.stores, token) if token else None
    if known is None:
        hub.tokens.count_guess(request.peer.address)
        raise unauthorized("this link is not valid any more")
    return Response(204, headers={"Set-Cookie": _cookie(hub, request, token)})


async def logout(hub: Hub, request: Request) -> Response:
    """Make the browser forget its token, and revoke it: a program on another port may have a copy."""
    known: Identity = request.identity
    if known.by_cookie and known.token is not None and known.store is not None:
        engine = await hub.stores.engine(known.store, known.tenant)
        person = Caller(known.token.id, user=known.user, person=True)
        await engine.ask(RevokeToken(caller=person, id=known.token.id), origin=known.origin)
        hub.tokens.forget()
    return Response(204, headers={"Set-Cookie": _cookie(hub, request, "") + "; Max-Age=0"})


def _cookie(hub: Hub, request: Request, value: str) -> str:
    secure = "; Secure" if hub.is_secure else ""
    return f"{cookie_name(request)}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"


def _body(request: Request, kind: type[Body]) -> Body:
    try:
        if request.headers.get("content-type") == MSGPACK:
            return msgspec.msgpack.decode(request.body, type=kind)
        return msgspec.json.decode(request.body, type=kind)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            f"the request cannot be read: {str(error)[:200]}", hint="run coord open again"
        ) from error
