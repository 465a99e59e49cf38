"""The files of the page: found once, kept in memory, and the same for everybody, so they need no token.

Only what `static/` holds at the start is ever served: a request is looked up among those names and reaches no
file system, and a link in the folder is left out. Comments and indentation of our files are for readers
of the repository. They would be a tenth of the bytes that a browser loads, so they are not sent.
"""

import gzip
import os
import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from coord.transports.hub.hub import Hub
from coord.transports.hub.problems import HttpError
from coord.transports.hub.request import Request, Response
from coord.transports.hub.routing import Router

FOLDER = Path(__file__).parent / "static"
PREFIX = "/static/"
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
ROUTES = (
    *(
        "/",
        "/now",
        "/locks",
        "/plan",
        "/activity",
        "/messages",
        "/merges",
        "/alerts",
        "/numbers",
        "/settings",
    ),
    *("/task/{address...}", "/agent/{address...}", "/why/{address...}"),
)
"""The addresses of the page; its own router reads them."""
ASSETS = f"{PREFIX}{{name...}}"
PUBLIC = (*ROUTES, ASSETS)
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
"""Nothing but our own files runs or is loaded, and only lit-html makes HTML of text: its own templates."""
VENDOR = "vendor"
STYLE = "style.css"
"""All styles, as one file: they are a quarter smaller than as many."""
_STYLES = ("tokens.css", "base.css", "parts.css", "views.css", "plan.css", "feeds.css", "settings.css")
"""Each may change what those before it say."""
_COMPRESSED_FROM = 512
_FOR_READERS = {
    ".js": re.compile(rb"^[ \t]*(//.*)?", re.MULTILINE),
    ".css": re.compile(rb"/\*.*?\*/\s*|^\s+", re.MULTILINE | re.DOTALL),
}
"""Parts of our files that are not sent. A module keeps its lines: errors name those of the repository."""


class Asset(NamedTuple):
    """A file of the page as it is sent."""

    body: bytes
    compressed: bytes
    content_type: str
    etag: str


@cache
def assets() -> dict[str, Asset]:
    """Return the files of the page by their names below `static/`; the styles are one file."""
    found = find_assets(FOLDER)
    parts = [found.pop(path.relative_to(FOLDER).as_posix()).body for path in style_files()]
    return {**found, STYLE: _asset(b"".join(parts), ".css")}


def style_files() -> list[Path]:
    """Return the files with styles, in the order in which they count; those of others are last."""
    return sorted(
        FOLDER.rglob("*.css"),
        key=lambda path: _STYLES.index(path.name) if path.name in _STYLES else len(_STYLES),
    )


@cache
def page_id() -> str:
    """Return what all files of the page have in common: another one means that a page was loaded before."""
    return sha256("".join(each.etag for each in assets().values()).encode()).hexdigest()[:16]


def find_assets(folder: Path) -> dict[str, Asset]:
    """Read the files of a folder that are of a known type; links lead nowhere."""
    found: dict[str, Asset] = {}
    for root, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if path.suffix in TYPES and not path.is_symlink() and path.is_file():
                below = path.relative_to(folder).as_posix()
                body = path.read_bytes()
                if path.suffix in _FOR_READERS and not below.startswith(f"{VENDOR}/"):
                    body = _FOR_READERS[path.suffix].sub(b"", body)
                found[below] = _asset(body, path.suffix)
    return found


def _asset(body: bytes, suffix: str) -> Asset:
    compressed = gzip.compress(body, 9, mtime=0) if len(body) >= _COMPRESSED_FROM else b""
    etag = sha256(body).hexdigest()[:32]
    return Asset(body, compressed if len(compressed) < len(body) else b"", TYPES[suffix], etag)


def add_routes(router: Router[Any]) -> None:
    """Add the addresses of the page and its files."""
    for path in ROUTES:
        router.add("GET", path, index)
    router.add("GET", ASSETS, asset)


async def index(hub: Hub, request: Request) -> Response:
    """Return the page, which reads its own address."""
    return _response(assets()[INDEX], request, {"Content-Security-Policy": CSP})


async def asset(hub: Hub, request: Request) -> Response:
    """Return a file of the page."""
    name = request.parameters["name"]
    found = assets().get(name) if name != INDEX else None
    if found is None:
        raise HttpError(404, "not_found", f"the page has no file {name[:200]!r}", hint="reload the page")
    return _response(found, request, {})


def _response(found: Asset, request: Request, headers: dict[str, str]) -> Response:
    """Return a file, compressed if the client takes that, or 304 if it has it already."""
    zipped = bool(found.compressed) and _takes_gzip(request.headers.get("accept-encoding", ""))
    etag = f'"{found.etag}-gzip"' if zipped else f'"{found.etag}"'
    headers = {**headers, "Cache-Control": "no-cache", "ETag": etag, "Vary": "Accept-Encoding"}
    if etag in (
        each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")
    ):
        return Response(304, b"", found.content_type, headers)
    if zipped:
        headers["Content-Encoding"] = "gzip"
    return Response(200, found.compressed if zipped else found.body, found.content_type, headers)


def _takes_gzip(accepted: str) -> bool:
    """Whether a client accepts gzip; `gzip;q=0` says that it does not."""
    for each in accepted.lower().split(","):
        name, _, quality = each.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "").rstrip("0") not in ("q=", "q=0.")
    return False
