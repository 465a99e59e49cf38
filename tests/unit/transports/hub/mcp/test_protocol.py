"""Both eras of MCP as messages, and what is refused before a tool runs."""

import base64
import json
from typing import Any

import pytest

from coord.core.errors import NotFound
from coord.transports.hub.mcp.protocol import LEGACY, META, MODERN, RpcError, error_reply, parse, reply_to

CAPABLE = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}


class Recorder:
    """A server that records what it is asked."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((name, arguments))
        return {"content": []}

    def read_resource(self, uri: str) -> list[dict[str, Any]]:
        if uri != "coord://locks":
            raise NotFound("there is no such resource", hint="read coord://locks")
        return [{"uri": uri, "text": "{}"}]


def body(method: str, params: Any = None, number: Any = 1) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(message | ({} if params is None else {"params": params})).encode()


def modern(method: str, number: Any = 1, **params: Any) -> bytes:
    return body(method, {**params, "_meta": CAPABLE}, number)


def headers_of(method: str, name: str = "", version: str = MODERN) -> dict[str, str]:
    named = {"mcp-name": name} if name else {}
    return {"mcp-protocol-version": version, "mcp-method": method, **named}


def answer(line: bytes, headers: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    """Return the status over HTTP and the reply."""
    try:
        message = parse(line, headers)
        assert message is not None
        return 200, json.loads(reply_to(message, Recorder()))
    except RpcError as error:
        return error.status, json.loads(error_reply(error))


@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_client_gets_the_version_it_asks_for(version: str) -> None:
    _, reply = answer(body("initialize", {"protocolVersion": version}), {})
    assert reply["result"]["protocolVersion"] == version
    assert reply["result"]["serverInfo"]["name"] == "coord"
    assert "resultType" not in reply["result"]


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01", "", None, 7, ["x"]])
def test_a_version_without_a_handshake_is_answered_with_the_newest_that_has_one(version: object) -> None:
    _, reply = answer(body("initialize", {"protocolVersion": version}), {})
    assert reply["result"]["protocolVersion"] == LEGACY[0]


def test_a_modern_client_needs_no_handshake() -> None:
    status, reply = answer(modern("server/discover"), headers_of("server/discover"))
    assert (status, reply["result"]["resultType"]) == (200, "complete")
    assert reply["result"]["supportedVersions"] == [MODERN]
    _, reply = answer(modern("tools/list", number="a"), headers_of("tools/list"))
    assert (reply["id"], reply["result"]["cacheScope"]) == ("a", "public")
    assert reply["result"]["ttlMs"] > 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"mcp-method": "tools/call", "mcp-name": "lock"},
        headers_of("tools/list", "lock"),
        headers_of("tools/call", "status"),
        headers_of("tools/call"),
        headers_of("tools/call", "lock", version="2025-11-25"),
        headers_of("tools/call", "=?base64?!!!?="),
    ],
)
def test_headers_that_contradict_the_body_are_refused(headers: dict[str, str]) -> None:
    """A proxy may have let the request pass because of its headers."""
    status, reply = answer(modern("tools/call", name="lock", arguments={}), headers)
    assert (status, reply["error"]["code"], reply["id"]) == (400, -32020, 1)


def test_a_name_in_base64_is_that_name() -> None:
    encoded = f"=?base64?{base64.b64encode(b'coord://locks').decode()}?="
    line = modern("resources/read", uri="coord://locks")
    assert answer(line, headers_of("resources/read", encoded))[1]["result"]["contents"]


@pytest.mark.parametrize("version", ["2025-11-25", "1900-01-01", 7, None])
def test_a_modern_request_with_another_version_learns_which_there_are(version: object) -> None:
    meta = {**CAPABLE, f"{META}protocolVersion": version}
    status, reply = answer(
        body("tools/list", {"_meta": meta}), headers_of("tools/list", version=str(version))
    )
    assert status == 400
    assert reply["error"]["code"] == -32022
    assert MODERN in reply["error"]["data"]["supported"]


def test_a_modern_request_states_its_version_and_its_capabilities() -> None:
    incomplete: list[Any] = [{}, {"_meta": {}}, {"_meta": 5}, {"_meta": {f"{META}protocolVersion": MODERN}}]
    for params in incomplete:
        status, reply = answer(body("tools/list", params), headers_of("tools/list"))
        assert (status, reply["error"]["code"]) == (400, -32602), params


def test_an_unknown_method_is_an_error_of_its_era() -> None:
    assert answer(modern("ping"), headers_of("ping"))[0] == 404
    status, reply = answer(body("prompts/list"), {})
    assert (status, reply["error"]["code"]) == (200, -32601)
    assert answer(body("ping"), {})[1]["result"] == {}


def test_a_missing_resource_has_the_code_of_its_era() -> None:
    assert answer(body("resources/read", {"uri": "coord://x"}), {})[1]["error"]["code"] == -32002
    _, reply = answer(modern("resources/read", uri="coord://x"))
    assert reply["error"]["code"] == -32602
    assert reply["error"]["data"]["hint"] == "read coord://locks"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":NaN}', -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 4000 + b',"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":"' + b"x" * 257 + b'","method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{}}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lock","arguments":[]}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":1}}', -32602),
    ],
)
def test_hostile_messages_get_an_error(line: bytes, code: int) -> None:
    status, reply = answer(line, {})
    assert reply["error"]["code"] == code
    assert status < 500


def test_an_id_is_returned_as_it_came() -> None:
    for number in (0, -1, 2**63 - 1, -(2**63), "", "x" * 256, "\u202e"):
        assert answer(body("ping", number=number), {})[1]["id"] == number


def test_notifications_and_replies_get_no_answer() -> None:
    for method in ("notifications/initialized", "notifications/cancelled", "tools/call", "ping"):
        message = parse(json.dumps({"jsonrpc": "2.0", "method": method}).encode(), {})
        assert message is not None
        assert not message.expects_reply
    assert parse(b'{"jsonrpc":"2.0","id":1,"result":{}}', {}) is None
    assert parse(b'{"jsonrpc":"2.0","id":1,"error":{}}', {}) is None
