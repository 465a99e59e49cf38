"""As much of JSON Schema (draft 2020-12) as our schemas use; a word that is not known here is an error."""

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
ANNOTATIONS = {"$schema", "$id", "$comment", "$defs", "title", "description", "default"}
KNOWN = ANNOTATIONS | {
    "$ref",
    "type",
    "enum",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
}


def violations(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None) -> Iterator[str]:
    """Yield what is wrong with a value."""
    root = schema if root is None else root
    unknown = schema.keys() - KNOWN
    assert not unknown, f"the schema says {unknown}, which nobody checks"
    if "$ref" in schema:
        yield from violations(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{value!r} is none of {schema['enum']}"
    if "anyOf" in schema and all(list(violations(value, each, root)) for each in schema["anyOf"]):
        yield f"{value!r} fits nothing of {schema['anyOf']}"
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        yield f"{value!r} is no {kind}"
    elif kind == "object":
        yield from _members(value, schema, root)
    elif kind == "array":
        for item in value:
            yield from violations(item, schema.get("items", {}), root)


def _members(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{name} is missing"
    for name, member in value.items():
        if name in properties:
            yield from violations(member, properties[name], root)
        elif others is False:
            yield f"{name} is not allowed"
        elif isinstance(others, dict):
            yield from violations(member, others, root)
