"""Find the handler of a path: one lookup for a plain path, a short walk for one with variable parts."""

import re
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from coord.transports.hub.problems import HttpError

Handler = TypeVar("Handler")
_VARIABLE = re.compile(r"\{(\w+)(\.\.\.)?\}\Z")
VALUE_CHARS_MAX = 4096


class Route(NamedTuple):
    """A route as it was added: for documentation and for tests that try all of them."""

    method: str
    path: str


class _Node(Generic[Handler]):
    def __init__(self) -> None:
        self.fixed: dict[str, _Node[Handler]] = {}
        self.variable: tuple[str, _Node[Handler]] | None = None
        self.rest = False
        self.handlers: dict[str, Handler] = {}


class Router(Generic[Handler]):
    """Routes by method and path; `{name}` matches one segment, `{name...}` at the end all that are left."""

    def __init__(self) -> None:
        self._plain: dict[tuple[str, str], Handler] = {}
        self._root: _Node[Handler] = _Node()
        self.routes: dict[Route, Handler] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Add a route."""
        route = Route(method, path)
        assert route not in self.routes, f"{method} {path} is there already"
        self.routes[route] = handler
        if "{" not in path:
            self._plain[method, path] = handler
        node = self._root
        for part in path.strip("/").split("/"):
            variable = _VARIABLE.match(part)
            if variable is None:
                node = node.fixed.setdefault(part, _Node())
                continue
            if node.variable is None:
                node.variable = (variable[1], _Node())
            assert node.variable[0] == variable[1], f"{path} names a part as another route does not"
            node = node.variable[1]
            node.rest = node.rest or variable[2] is not None
        node.handlers[method] = handler

    def find(self, method: str, path: str) -> tuple[Handler, dict[str, str]]:
        """Return the handler of a path and its variable parts; raises 404 or 405."""
        handler = self._plain.get((method, path))
        if handler is not None:
            return handler, {}
        node, values = self._root, dict[str, str]()
        parts = path.removeprefix("/").split("/")
        for number, part in enumerate(parts):
            if part in node.fixed:
                node = node.fixed[part]
            elif node.variable is not None and part and node.variable[1].rest:
                values[node.variable[0]] = _value("/".join(parts[number:]))
                node = node.variable[1]
                break
            elif node.variable is not None and part:
                values[node.variable[0]] = _value(part)
                node = node.variable[1]
            else:
                raise _not_found(path)
        found = node.handlers.get(method) or (node.handlers.get("GET") if method == "HEAD" else None)
        if found is not None:
            return found, values
        if not node.handlers:
            raise _not_found(path)
        allowed = ", ".join(sorted(node.handlers))
        raise HttpError(
            405, "method_not_allowed", f"{path[:200]} knows {allowed}", headers={"Allow": allowed}
        )


def _value(part: str) -> str:
    """Return a variable part as text; an id with a slash in it is written with %2F."""
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise HttpError(400, "invalid", "the path is not UTF-8") from error
    if len(text) > VALUE_CHARS_MAX or not text.isprintable():
        raise HttpError(400, "invalid", "a part of the path is too long or not printable")
    return text


def _not_found(path: str) -> HttpError:
    return HttpError(
        404, "not_found", f"there is no {path[:200]!r} here", hint="/openapi.json lists the routes"
    )
