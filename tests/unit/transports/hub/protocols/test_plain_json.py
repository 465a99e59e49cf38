"""A body that is small in bytes and large in values is refused before it stops everybody."""

import json

import msgspec
import pytest

from coord.core.errors import Invalid
from coord.transports.hub.protocols.plain_json import VALUES_MAX, decode_plain
from tests.support.hub.harness import HubHarness

MANY = b"[" + b"[]," * VALUES_MAX + b"[]]"


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"1,", b'{"a":{}},'])
def test_too_many_values_are_not_decoded(unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"[" + unit * VALUES_MAX + b"0]"
    monkeypatch.setattr(msgspec.json, "decode", lambda _: pytest.fail("it was decoded"))
    with pytest.raises(Invalid, match="more than 1000000 values"):
        decode_plain(body)


def test_a_large_text_is_one_value() -> None:
    text = "x" * (10 * VALUES_MAX)
    assert decode_plain(json.dumps([text]).encode()) == [text]


@pytest.mark.parametrize("path", ["/v1/locks", "/rpc", "/mcp"])
def test_no_route_decodes_too_many_values(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Types do not help: several have a field for any JSON."""
    body = b'{"session":1,"jsonrpc":"2.0","method":"x","id":1,"params":' + MANY + b"}"
    with HubHarness() as hub:
        monkeypatch.setattr(msgspec.json, "decode", lambda *_: pytest.fail("it was decoded"))
        answer = hub.raw("POST", path, body, "application/json", hub.token)
        assert b"1000000 values" in answer.body
