"""The OpenAPI 3.1 document of the public API, made from its endpoints."""

from functools import cache
from typing import Any

import msgspec

from coord.sdk.remote.wire import VERSION
from coord.transports.hub.api.endpoint import OFFSET_MAX, Endpoint
from coord.transports.hub.api.replies import Problem
from coord.transports.hub.problems import PROBLEM

REFERENCE = "#/components/schemas/{name}"
STATUSES = {
    400: "The request is not valid",
    401: "The token is missing or not valid",
    403: "The token does not allow this",
    404: "It does not exist",
    405: "The path has no such method",
    409: "It is refused",
    410: "It is gone",
    412: "The log is not as new as Coord-Min-Offset demands",
    413: "The body is too large",
    415: "The body is not JSON",
    429: "Too many requests",
    500: "The hub or its store is damaged",
    501: "This store cannot do it",
    503: "The store is busy or away; try again",
    504: "Whether it happened is not known; send it again with the same Idempotency-Key",
}
"""What any route may answer beside its own replies."""
ID_SCHEMA = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:@+=,~#-]*$", "maxLength": 128}
HEADERS = (
    (
        "Coord-Min-Offset",
        "Answer from a state at least as new as this offset",
        {"type": "integer", "minimum": 0, "maximum": OFFSET_MAX},
    ),
    (
        "Coord-Repository",
        "The repository whose files and names are meant",
        ID_SCHEMA,
    ),
)
IDEMPOTENCY = ("Idempotency-Key", "A write with the same key is carried out once", ID_SCHEMA)


def document(endpoints: list[Endpoint]) -> dict[str, Any]:
    """Return the whole document."""
    types = _types(endpoints)
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    schema_of = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path.replace("...}", "}"), {})[endpoint.method.lower()] = _operation(
            endpoint, schema_of
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "coord",
            "version": VERSION,
            "description": "Locks, tasks, sessions and messages for agents that share a repository.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {
                **{
                    str(status): _content(says, schema_of[id(Problem)], PROBLEM)
                    for status, says in STATUSES.items()
                },
                "431": {"description": "The URL or a header is too long", "content": {"text/plain": {}}},
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(endpoints: list[Endpoint]) -> list[Any]:
    found: list[Any] = [Problem]
    for endpoint in endpoints:
        found += [kind for kind in (endpoint.body, endpoint.query) if kind is not None]
        found += [kind for kind in endpoint.replies.values() if kind is not None]
    return list({id(kind): kind for kind in found}.values())


def _operation(endpoint: Endpoint, schema_of: dict[int, Any]) -> dict[str, Any]:
    responses = {str(status): {"$ref": f"#/components/responses/{status}"} for status in (*STATUSES, 431)}
    for status, kind in endpoint.replies.items():
        content_type = "application/json" if status < 400 else PROBLEM
        says = STATUSES.get(status, "Done")
        schema = None if kind is None else schema_of[id(kind)]
        responses[str(status)] = _content(says, schema, content_type)
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "x-role": str(endpoint.role),
        "parameters": _parameters(endpoint),
        "responses": dict(sorted(responses.items())),
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": endpoint.body_required,
            "content": {"application/json": {"schema": schema_of[id(endpoint.body)]}},
        }
    return operation


def _content(says: str, schema: Any, content_type: str) -> dict[str, Any]:
    offset = {
        "description": "The newest entry of the log that the answer knows",
        "schema": {"type": "integer"},
    }
    content = {"content": {content_type: {"schema": schema}}} if schema is not None else {}
    return {"description": says, "headers": {"Coord-Offset": offset}, **content}


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": ID_SCHEMA if name != "path" else {"type": "string", "minLength": 1, "maxLength": 4096},
        }
        for name in endpoint.variables
    ]
    if endpoint.query is not None:
        found += _query_parameters(endpoint.query)
    headers = HEADERS if endpoint.method == "GET" else (*HEADERS, IDEMPOTENCY)
    for name, description, schema in headers:
        found.append({"name": name, "in": "header", "description": description, "schema": schema})
    return found


@cache
def _query_parameters(kind: Any) -> list[dict[str, Any]]:
    (_,), components = msgspec.json.schema_components([kind], ref_template=REFERENCE)
    schema = components[kind.__name__]
    required = set(schema.get("required", ()))
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": {key: value for key, value in each.items() if key != "default" or value is not None},
        }
        for name, each in schema["properties"].items()
    ]
