"""Valid requests for every endpoint, made from its types; and bad values for each of their fields."""

from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import inspect

from coord.transports.hub.api.endpoint import Endpoint

WORDS = {"session": "s1", "session_id": "s1", "agentId": "s1", "kind": "status", "mode": "", "profile": ""}
"""Valid texts of fields that not every word fits."""
BY_HAND: dict[str, Any] = {
    "rpc": {"jsonrpc": "2.0", "method": "heartbeat", "params": {"session": "s1"}, "id": 1},
    "changeSettings": {"settings": {"suspect_seconds": 60}},
}
BAD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 1.5, 2**53, 2**64, -(2**70), 10**400, 1e308),
    *("", "\0", "a/b", "../..", "x" * 5000, "\u202e", "\n", "é" * 300, "${x}", "'; --", "name:", "file:/etc"),
    *([], [None], [[]], ["x"] * 2000, {}, {"": ""}, {"a": {"b": [1, None]}}),
)
"""Values that a field of some type does not take."""
BAD_BODIES = (
    *(b"", b"{", b"null", b"[]", b"1", b'"x"', b"\xff\xfe", b"{}", b"NaN", b'{"a":NaN}', b'{"a":Infinity}'),
    *(b'{"session":"\\ud800"}', b'"\xed\xa0\x80"', b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000),
    *(b'{"session":"s1","session":"s2"}', b"{" + b'"a":1,' * 1000 + b'"b":2}', b"1e400", b"9" * 5000),
    *(b'{"session":"s1"} trailing', b"\xef\xbb\xbf{}", b"\0", b'{"metadata":{"a":1e999}}'),
)
"""Bodies that no endpoint takes, or only by chance."""


def path_of(endpoint: Endpoint, **values: str) -> str:
    """Return the path of an endpoint with its variable parts filled in."""
    known = {"tenant": "local", "session": "s1", "path": "src/a.py", "id": "t-0123456789ab", **values}
    path = endpoint.path.replace("...}", "}")
    for name in endpoint.variables:
        path = path.replace(f"{{{name}}}", quote(known.get(name, "x1"), safe=""))
    return path


def sample(endpoint: Endpoint) -> tuple[Any, dict[str, Any]]:
    """Return a valid body and a valid query."""
    if endpoint.name in BY_HAND:
        return BY_HAND[endpoint.name], {}
    body = None if endpoint.body is None else _value(inspect.type_info(endpoint.body), "")
    query = {} if endpoint.query is None else _value(inspect.type_info(endpoint.query), "")
    return body, {name: _as_text(value) for name, value in query.items()}


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return value
    return str(value).lower() if isinstance(value, bool) else value


def _value(kind: Any, name: str) -> Any:
    match kind:
        case inspect.Metadata():
            return _value(kind.type, name)
        case inspect.StructType():
            named = ("session", "session_id")
            wanted = [field for field in kind.fields if field.required or field.encode_name in named]
            return {field.encode_name: _value(field.type, field.encode_name) for field in wanted}
        case inspect.StrType():
            return WORDS.get(name, "src/a.py" if name == "filePath" else "x1")
        case inspect.IntType() | inspect.FloatType():
            return max(kind.ge or 0, 1000 if "_ms" in name or "second" in name else 2)
        case inspect.BoolType():
            return False
        case inspect.DictType():
            return {}
        case inspect.VarTupleType() | inspect.ListType():
            return ["src/a.py"] if name == "resources" else [_value(kind.item_type, name)]
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.UnionType():
            return _value(next(each for each in kind.types if not isinstance(each, inspect.NoneType)), name)
    raise AssertionError(f"no sample for {kind}")


def fields_of(endpoint: Endpoint) -> list[str]:
    """Return the names of the fields of a body or of a query."""
    kind = endpoint.body or endpoint.query
    return [] if endpoint.raw or kind is None else [f.encode_name for f in msgspec.structs.fields(kind)]
