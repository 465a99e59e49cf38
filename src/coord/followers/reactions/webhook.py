"""Post an event to a URL: signed, in bounded time, and never to an address inside the network by accident.

The URL may name a host whose address changes between a check and a connection, so the check is of the address
that is connected to. No redirect is followed. Proxies of the environment are not used: they would connect to
anything. The signature is that of standardwebhooks.com, for which many languages have a library.
"""

import base64
import hashlib
import hmac
import http.client
import ipaddress
import os
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec

from coord.core.errors import CoordError, Invalid, Refused, Unavailable
from coord.followers.reactions.events import Delivery, fields_of, fill_text, look_up

TIMEOUT_S = 10.0
RESPONSE_BYTES_MAX = 2048
SECRET_BYTES_MAX = 4096
TEXT_CHARS_MAX = 1900
"""Discord accepts 2,000 characters."""
FIELDS_SHOWN = 6
RETRY_AFTER_S_MAX = 600
TRANSIENT = frozenset((408, 425, 429))
NAT64 = ipaddress.ip_network("64:ff9b::/96")
_OK, _REDIRECT, _CLIENT, _SERVER = 200, 300, 400, 500


class Webhook(NamedTuple):
    """Where an event is posted, and how."""

    url: str
    url_env: str = ""
    url_file: str = ""
    secret_env: str = ""
    secret_file: str = ""
    format: str = "json"
    text: str = ""
    allow_private: bool = False


class Reach(NamedTuple):
    """The addresses that may be connected to, and what to say about the others."""

    allows: Callable[[str], bool]
    problem: str = ""
    hint: str = ""


class Permanent(CoordError):
    """The receiver will never accept this delivery."""


class TryLater(Unavailable):
    """The receiver did not accept a delivery now; it may have named a time."""

    after_s: float = 0


def check_url(url: str) -> SplitResult:
    """Return the parts of a URL that can be posted to."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Invalid(f"the webhook is no URL: {error}", hint="https://host/path") from error
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise Invalid("the webhook is no URL of https or http", hint="https://host/path")
    if parts.username or parts.password:
        raise Invalid("the webhook has a password in its URL", hint='use webhook = { env = "NAME" }')
    if any(not each.isprintable() or each.isspace() for each in url):
        raise Invalid("the webhook contains a space or a control character", hint="https://host/path")
    return parts


def post(
    webhook: Webhook,
    delivery: Delivery,
    reaction: str,
    environ: Mapping[str, str],
    timeout_s: float,
    now_s: int,
) -> None:
    """Post a delivery; return if the receiver accepted it, and raise otherwise."""
    url = webhook.url or read_secret("the URL", webhook.url_env, webhook.url_file, environ)
    parts = check_url(url)
    body = payload(webhook, delivery, reaction)
    headers = {
        "Host": parts.netloc,
        "Content-Type": "application/json",
        "User-Agent": "coord-reactions",
        "Webhook-Id": delivery.id_for(reaction),
        "Webhook-Timestamp": str(now_s),
    }
    if webhook.secret_env or webhook.secret_file:
        secret = read_secret("the secret", webhook.secret_env, webhook.secret_file, environ)
        headers["Webhook-Signature"] = signature(secret, delivery.id_for(reaction), now_s, body)
    exchange(parts, body, headers, min(timeout_s, TIMEOUT_S), ANYWHERE if webhook.allow_private else PUBLIC)


def signature(secret: str, identity: str, now_s: int, body: bytes) -> str:
    """Return the signature of a delivery: HMAC-SHA256 over id, time and body."""
    key = secret.encode()
    if secret.startswith("whsec_"):
        try:
            key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except ValueError as error:
            raise Permanent(
                "the secret begins with whsec_ and is not base64", hint="copy it again"
            ) from error
    signed = f"{identity}.{now_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def payload(webhook: Webhook, delivery: Delivery, reaction: str) -> bytes:
    """Return the body of a request, in the form that the receiver expects."""
    if webhook.format == "json":
        data = {
            "id": delivery.id_for(reaction),
            "type": delivery.event,
            "timestamp": delivery.at_ms,
            "reaction": reaction,
            "hops": delivery.hops + 1,
            "data": delivery.details,
        }
        return msgspec.json.encode(data)
    text = fill_text(webhook.text or _usual_text(delivery), fields_of(delivery, reaction))[:TEXT_CHARS_MAX]
    if webhook.format == "slack":  # https://api.slack.com/reference/surfaces/formatting#escaping
        safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return msgspec.json.encode({"text": safe, "unfurl_links": False, "unfurl_media": False})
    return msgspec.json.encode({"content": text, "allowed_mentions": {"parse": []}})


def _usual_text(delivery: Delivery) -> str:
    """Return a template that names the event and its first fields."""
    plain = [
        name for name, value in delivery.details.items() if isinstance(value, str | int) and name != "origin"
    ]
    shown = [name for name in plain if look_up(delivery.details, name) != ""][:FIELDS_SHOWN]
    return "coord: {event} " + " ".join(f"{name}={{{name}}}" for name in shown if name.isidentifier())


def read_secret(what: str, variable: str, file: str, environ: Mapping[str, str]) -> str:
    """Return a secret from a variable, or from a file that only its owner can read."""
    if variable:
        if not (found := environ.get(variable, "").strip()):
            raise Refused(f"{what} is missing: {variable} is not set", hint="set it where the hub starts")
        return found
    path = os.path.expanduser(file)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
                raise Refused(f"{what} in {path} can be read by others", hint=f"chmod 600 {path}")
            content = opened.read(SECRET_BYTES_MAX)
    except OSError as error:
        raise Refused(f"{what} cannot be read: {path}: {error.strerror}", hint="create it") from error
    try:
        found = content.decode().strip()
    except UnicodeDecodeError as error:
        raise Refused(f"{what} in {path} is not text", hint="write it as text") from error
    if not found:
        raise Refused(f"{what} in {path} is empty", hint="write it there")
    return found


def is_public(address: str) -> bool:
    """Whether an address belongs to the public network, whatever it is wrapped in."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        if found in NAT64:
            return is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)))
        if found.sixtofour or found.teredo or found.is_site_local or int(found) >> 32 == 0:
            return False  # old ways to wrap an IPv4 address, which nobody needs
    return found.is_global and not found.is_multicast and not found.is_reserved


ANYWHERE = Reach(lambda _address: True)
PUBLIC = Reach(is_public, "is an address inside the network", "if that is meant: allow_private = true")


def _addresses(host: str, port: int, reach: Reach) -> list[tuple[Any, ...]]:
    """Return the addresses of a host that may be connected to."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TryLater(f"{host} cannot be resolved: {error}", hint="check the name") from error
    allowed = [each for each in found if reach.allows(str(each[4][0]))]
    if not allowed:
        raise Permanent(f"{host} {reach.problem}", hint=reach.hint)
    return allowed


def _connected(host: str, port: int, limit_s: float, reach: Reach) -> socket.socket:
    """Return a connection to one of the checked addresses; nothing resolves the name again."""
    problem: OSError | None = None
    for family, kind, protocol, _, address in _addresses(host, port, reach):
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(limit_s)
            made.connect(address)
        except OSError as error:
            made.close()
            problem = error
        else:
            return made
    raise TryLater(f"{host} cannot be reached: {problem}", hint="it is tried again")


def exchange(
    parts: SplitResult, body: bytes, headers: Mapping[str, str], limit_s: float, reach: Reach
) -> None:
    """Post a body to an address within reach; return if the receiver accepted it, and raise otherwise."""
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    plain = _connected(host, port, limit_s, reach)
    connection = http.client.HTTPConnection(host, port, timeout=limit_s)
    limit = _TimeLimit(plain, limit_s)
    try:
        with limit:
            connection.sock = (
                ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
            )
            target = parts.path or "/"
            connection.request(
                "POST", f"{target}?{parts.query}" if parts.query else target, body, dict(headers)
            )
            answer = connection.getresponse()
            answer.read(RESPONSE_BYTES_MAX)
            status, after = answer.status, answer.headers.get("Retry-After", "")
    except ssl.SSLCertVerificationError as error:
        raise Permanent(f"{host}: {error.verify_message}", hint="its certificate must be valid") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = (
            f"no whole answer within {limit_s:.0f} s"
            if limit.passed
            else f"{str(error) or type(error).__name__}"
        )
        raise TryLater(f"{host}: {why}", hint="it is tried again") from error
    finally:
        connection.close()
        plain.close()
    if limit.passed:
        raise TryLater(f"{host}: no whole answer within {limit_s:.0f} s", hint="it is tried again")
    _check_status(host, status, after)


def _check_status(host: str, status: int, after: str) -> None:
    """Raise unless the receiver accepted the delivery."""
    if _OK <= status < _REDIRECT:
        return
    if _REDIRECT <= status < _CLIENT:
        raise Permanent(f"{host} answered {status}: redirects are not followed", hint="name the new address")
    if status in TRANSIENT or status >= _SERVER:
        later = TryLater(f"{host} answered {status}", hint="it is tried again")
        if after.isascii() and after.isdecimal() and len(after) < len(str(RETRY_AFTER_S_MAX)) + 2:
            later.after_s = min(int(after), RETRY_AFTER_S_MAX)
        raise later
    raise Permanent(f"{host} answered {status}", hint="check the URL and what it accepts")


class _TimeLimit:
    """Cuts a connection off after a time; the timeout of a socket begins again with each byte."""

    def __init__(self, connection: socket.socket, limit_s: float) -> None:
        self._connection = connection
        self._timer = threading.Timer(limit_s, self._cut)
        self._timer.daemon = True
        self.passed = False

    def _cut(self) -> None:
        self.passed = True
        with suppress(OSError):
            self._connection.shutdown(2)  # both directions

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
