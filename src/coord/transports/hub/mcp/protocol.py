"""MCP as messages: JSON-RPC in both eras of the protocol, apart from how the messages travel.

The modern era (2026-07-28) has neither a handshake nor a session: each request states its version in `_meta`,
and over HTTP in headers that must agree with the body. The legacy era (2024-11-05 to 2025-11-25) begins with
`initialize`; we keep nothing of it, because each call names its coord session in its arguments. So a request
of either era may come at any time, over any connection.
"""

import base64
import binascii
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from coord.core.errors import CoordError, NotFound
from coord.core.messages.quoting import visible
from coord.sdk.remote.wire import VERSION
from coord.transports.hub.mcp.definitions import INSTRUCTIONS, RESOURCES, TEMPLATES, TOOLS
from coord.transports.hub.protocols.plain_json import decode_plain

logger = logging.getLogger("coord.hub")
MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
RESOURCE_NOT_FOUND = -32002
"""Only in the legacy era."""
META = "io.modelcontextprotocol/"
LISTS_TTL_MS = 3_600_000
ID_CHARS_MAX = 256
ID_MAX = 2**63
SHOWN_CHARS_MAX = 100
SERVER = {"name": "coord", "title": "coord", "version": VERSION}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}}
NAMED = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
"""The methods whose `Mcp-Name` header repeats a parameter."""


class Message(NamedTuple):
    """A request or a notification; `modern` is the era that it belongs to."""

    id: str | int | None
    method: str
    params: dict[str, Any]
    modern: bool = False

    @property
    def expects_reply(self) -> bool:
        """Whether it is a request."""
        return self.id is not None


class RpcError(Exception):
    """A message that is refused as such; the errors of tools are results."""

    def __init__(
        self, code: int, message: str, status: int = 400, data: Any = None, of: str | int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        """The status over HTTP."""
        self.data = data
        self.of = of
        """The id of the request, if it could be read."""


class Server(Protocol):
    """What runs the tools of a request."""

    def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]: ...

    def read_resource(self, uri: str) -> list[dict[str, Any]]: ...


def parse(body: bytes, headers: Mapping[str, str] | None = None) -> Message | None:
    """Return the message in a body; None if it is a reply, which nobody expects.

    `headers` are those of HTTP, in lower case; None over standard input. Raises RpcError.
    """
    try:
        data = decode_plain(body)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise RpcError(PARSE_ERROR, f"the body is not JSON: {error}") from error
    if isinstance(data, list):
        raise RpcError(INVALID_REQUEST, "batches are not read: send one message per request")
    if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'the message is no JSON-RPC: {"jsonrpc": "2.0", "method": …}')
    number = _id(data)
    method, params = data.get("method"), data.get("params", {})
    if not isinstance(method, str):
        if method is None and ("result" in data or "error" in data):
            return None
        raise RpcError(INVALID_REQUEST, "the message has no method", of=number)
    if params is None or not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params is no object", of=number)
    message = Message(number, method, params)
    if number is None:
        return message
    try:
        return message._replace(modern=_is_modern(message, headers))
    except RpcError as error:
        error.of = number
        raise


def _id(data: dict[str, Any]) -> str | int | None:
    if "id" not in data:
        return None
    number = data["id"]
    if isinstance(number, str) and len(number) <= ID_CHARS_MAX:
        return number
    if type(number) is int and -ID_MAX <= number < ID_MAX:
        return number
    raise RpcError(
        INVALID_REQUEST, f"the id is no integer of 64 bits and no text of {ID_CHARS_MAX} characters"
    )


def _is_modern(message: Message, headers: Mapping[str, str] | None) -> bool:
    """Return whether a request belongs to the modern era; refuse one that contradicts itself."""
    meta = message.params.get("_meta", {})
    stated = meta.get(f"{META}protocolVersion") if isinstance(meta, dict) else None
    header = (headers or {}).get("mcp-protocol-version", "")
    if stated is None:
        if message.method == "initialize" or header in LEGACY:
            return False
        if header not in ("", MODERN):
            raise _unsupported(header)
        if header == MODERN or message.method == "server/discover":
            raise RpcError(INVALID_PARAMS, f"_meta has no {META}protocolVersion")
        return False
    if stated != MODERN:
        raise _unsupported(stated)
    if not isinstance(meta.get(f"{META}clientCapabilities"), dict):
        raise RpcError(INVALID_PARAMS, f"_meta has no {META}clientCapabilities")
    if headers is not None:
        _check_headers(message, headers)
    return True


def _unsupported(version: object) -> RpcError:
    requested = version[:SHOWN_CHARS_MAX] if isinstance(version, str) else ""
    data = {"supported": [MODERN, *LEGACY], "requested": requested}
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data=data)


def _check_headers(message: Message, headers: Mapping[str, str]) -> None:
    """Refuse a request whose headers say something else than its body: a proxy may have read only those."""
    wanted = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message.method}
    if message.method in NAMED:
        wanted["Mcp-Name"] = str(message.params.get(NAMED[message.method], ""))
    for name, value in wanted.items():
        given = headers.get(name.lower())
        if given is None or _decoded(given) != value:
            raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is missing or not that of the body")


def _decoded(value: str) -> str:
    """Return the value of a header, which is in Base64 if it does not fit into ASCII."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def reply_to(message: Message, server: Server) -> bytes:
    """Return the reply to a request; raises RpcError."""
    try:
        result = _result(message, server)
    except RpcError as error:
        error.of = message.id
        raise
    if message.modern:
        result = {"resultType": "complete", **result}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "result": result})


def _result(message: Message, server: Server) -> dict[str, Any]:
    params = message.params
    match message.method, message.modern:
        case "initialize", False:
            return _initialized(params)
        case "ping", False:
            return {}
        case "server/discover", True:
            about = {
                "supportedVersions": [MODERN],
                "capabilities": CAPABILITIES,
                "instructions": INSTRUCTIONS,
            }
            return _cached(message, {**about, "_meta": {f"{META}serverInfo": SERVER}})
        case "tools/list", _:
            return _cached(message, {"tools": TOOLS})
        case "resources/list", _:
            return _cached(message, {"resources": RESOURCES})
        case "resources/templates/list", _:
            return _cached(message, {"resourceTemplates": TEMPLATES})
        case "tools/call", _:
            name, arguments = params.get("name"), params.get("arguments")
            if not isinstance(name, str) or not isinstance(arguments, dict | None):
                raise RpcError(INVALID_PARAMS, "tools/call takes a name and an object of arguments")
            return server.call_tool(name, arguments or {})
        case "resources/read", _:
            uri = params.get("uri")
            if not isinstance(uri, str):
                raise RpcError(INVALID_PARAMS, "resources/read takes a uri")
            contents = _read(message, server, uri)
            return _cached(message, {"contents": contents}, ttl_ms=0, scope="private")
    shown = message.method[:SHOWN_CHARS_MAX]
    raise RpcError(METHOD_NOT_FOUND, f"Method not found: {shown}", 404 if message.modern else 200)


def _read(message: Message, server: Server, uri: str) -> list[dict[str, Any]]:
    try:
        return server.read_resource(uri)
    except Exception as error:
        if not isinstance(error, CoordError):
            logger.exception("the resource %s could not be read", visible(uri[:SHOWN_CHARS_MAX]))
            raise RpcError(INTERNAL_ERROR, "a defect of coord", 200) from error
        missing = isinstance(error, NotFound)
        code = RESOURCE_NOT_FOUND if missing and not message.modern else INVALID_PARAMS
        raise RpcError(code, visible(str(error)), 200, {"code": error.code, "hint": error.hint}) from error


def _cached(
    message: Message, result: dict[str, Any], *, ttl_ms: int = LISTS_TTL_MS, scope: str = "public"
) -> dict[str, Any]:
    """Return a result with what a modern client may keep of it."""
    return {**result, "ttlMs": ttl_ms, "cacheScope": scope} if message.modern else result


def _initialized(params: dict[str, Any]) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in LEGACY else LEGACY[0],
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": INSTRUCTIONS,
    }


def error_reply(error: RpcError) -> bytes:
    """Return an error as the reply to its request."""
    shown: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        shown["data"] = error.data
    head: dict[str, Any] = {"jsonrpc": "2.0"} if error.of is None else {"jsonrpc": "2.0", "id": error.of}
    return msgspec.json.encode({**head, "error": shown})
