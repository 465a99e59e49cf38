"""Every route, from the table of endpoints: who may use it, and that no input makes the hub fail."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from coord.core.tokens.schema import Role
from coord.transports.hub.api.endpoint import BODIES, Endpoint
from coord.transports.hub.api.routes import every_endpoint
from coord.transports.hub.app import PUBLIC, routes
from tests.support.hub import samples
from tests.support.hub.harness import HubHarness, Reply

ENDPOINTS = every_endpoint()
NAMES = [endpoint.name for endpoint in ENDPOINTS]
SECRET = "secret-of-ann"
every_route = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)


@pytest.fixture(scope="module")
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        _fill(harness)
        yield harness


def _fill(hub: HubHarness) -> None:
    """Put something of every kind into the tenant `ann`, all with one word in it."""
    token, session = hub.new_token("admin", "ann", label=SECRET), f"{SECRET}-1"
    task = {"task_id": "x1", "description": SECRET, "files": [f"{SECRET}.py"]}
    for method, path, body in (
        ("POST", "/v1/sessions", {"session": session, "project": "x1", "role": "lead"}),
        ("POST", "/v1/sessions", {"session": "s1", "task": SECRET}),
        ("POST", "/v1/locks", {"session": session, "resources": ["src/a.py", f"name:{SECRET}"]}),
        ("POST", "/v1/projects/x1/tasks", {"tasks": [task]}),
        ("POST", "/v1/projects/x1/tasks/x1/claim", {"session": session, "lease_ms": 60_000}),
        ("POST", "/v1/messages", {"session": session, "to": "s1", "kind": "warn", "subject": SECRET}),
        ("PUT", f"/v1/groups/x1/members/{session}", {"create": True}),
        ("POST", "/v1/delegations", {"session": session, "to": "s1", "what": SECRET}),
    ):
        done = hub.ask(method, path, body, token=token)
        assert done.status < 300, done


def ask(hub: HubHarness, endpoint: Endpoint, token: str, **path: str) -> Reply:
    body, query = samples.sample(endpoint)
    return hub.ask(endpoint.method, samples.path_of(endpoint, **path), body, query=query, token=token)


def code_of(reply: Reply) -> str:
    return str(reply.body.get("code", "")) if isinstance(reply.body, dict) else ""


def offset(hub: HubHarness, tenant: str = "local") -> int:
    return hub.database.log(tenant).seen.offset


def test_every_route_is_an_endpoint_or_tested_elsewhere() -> None:
    """No route escapes these tests: each one is an endpoint, or has tests of its own."""
    listed = {endpoint.path for endpoint in ENDPOINTS}
    assert {route.path for route in routes().routes} - listed <= TESTED_ELSEWHERE


TESTED_ELSEWHERE = {
    *PUBLIC,
    *("/v1/hello", "/v1/call", "/v1/wait", "/v1/tail", "/v1/trim"),
    *(
        "/v1/hook",
        "/v1/hook/printed",
        "/v1/hook/claude",
        "/v1/stream",
        "/v1/ws",
        "/mcp",
        "/metrics",
        "/v1/metrics",
        "/v1/logs",
        "/v1/traces",
        "/v1/login-link",
        "/logout",
    ),
}
"""The inner protocol, hooks, streams, MCP, metrics, usage and the browser link."""


@every_route
def test_a_request_without_a_token_is_refused(hub: HubHarness, endpoint: Endpoint) -> None:
    assert endpoint.path not in PUBLIC
    before = offset(hub)
    refused = ask(hub, endpoint, token="")
    assert (refused.status, refused.body["code"]) == (401, "unauthorized")
    assert offset(hub) == before


@every_route
def test_a_token_reaches_no_other_tenant(hub: HubHarness, endpoint: Endpoint) -> None:
    """API-9: a token of one tenant sees and changes nothing of another, on any route."""
    before = offset(hub, "ann")
    token = hub.new_token("admin", "bob")
    answer = ask(
        hub, endpoint, token, tenant="ann", session=f"{SECRET}-1" if "tenant" in endpoint.variables else "s1"
    )
    if "tenant" in endpoint.variables:
        assert (answer.status, answer.body["code"]) == (403, "forbidden")
    assert SECRET not in msgspec.json.encode(answer.body).decode()
    assert offset(hub, "ann") == before
    mine = ask(hub, endpoint, hub.new_token("admin", "ann"), tenant="ann")
    assert code_of(mine) != "forbidden", mine


@every_route
def test_a_role_suffices_for_no_more_than_it_says(hub: HubHarness, endpoint: Endpoint) -> None:
    """A viewer changes nothing, and an operator nothing that is for admins."""
    for role in (Role.VIEW, Role.OPERATE):
        token = hub.new_token(str(role))
        hub.ask("GET", "/v1/locks", token=token)
        before = offset(hub)
        answer = ask(hub, endpoint, token)
        if not role.allows(endpoint.role):
            assert (answer.status, answer.body["code"]) == (403, "forbidden"), answer
            assert offset(hub) == before
        else:
            assert code_of(answer) not in ("unauthorized", "forbidden"), answer


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.role is Role.VIEW], ids=lambda e: e.name)
def test_a_viewer_reads_and_writes_nothing(hub: HubHarness, endpoint: Endpoint) -> None:
    token = hub.new_token("view")
    hub.ask("GET", "/v1/locks", token=token)
    before = offset(hub)
    ask(hub, endpoint, token)
    assert offset(hub) == before


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if "project" in e.variables], ids=lambda e: e.name)
def test_a_token_of_a_project_reaches_no_other(hub: HubHarness, endpoint: Endpoint) -> None:
    token = hub.new_token("admin", project="mine")
    refused = ask(hub, endpoint, token, project="x1")
    assert (refused.status, refused.body["code"]) == (403, "forbidden")
    assert code_of(ask(hub, endpoint, token, project="mine")) != "forbidden"


def _names_session(endpoint: Endpoint) -> bool:
    # The session of a new token is checked by the core; an agent in a filter of the ledger acts not at all.
    if endpoint.name in ("createToken", "listActivity"):
        return False
    fields = samples.fields_of(endpoint)
    return not {"session", "session_id", "agentId"}.isdisjoint([*fields, *endpoint.variables])


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if _names_session(e)], ids=lambda e: e.name)
def test_a_token_of_a_session_acts_for_no_other(hub: HubHarness, endpoint: Endpoint) -> None:
    """The sample names the session s1, in the path, the query or the body."""
    refused = ask(hub, endpoint, hub.new_token("admin", session="s9"))
    assert refused.status == 403, refused
    allowed = ask(hub, endpoint, hub.new_token("admin", session="s1"))
    assert code_of(allowed) != "forbidden", allowed


@every_route
def test_no_body_makes_the_hub_fail(hub: HubHarness, endpoint: Endpoint) -> None:
    for data in samples.BAD_BODIES:
        answer = hub.ask(endpoint.method, samples.path_of(endpoint), data=data)
        assert answer.status < 500, (data[:80], answer)
        assert answer.status in endpoint.replies or answer.status in (400, 404, 409), (data[:80], answer)


@every_route
def test_no_value_of_a_field_makes_the_hub_fail(hub: HubHarness, endpoint: Endpoint) -> None:
    body, query = samples.sample(endpoint)
    for name in samples.fields_of(endpoint):
        for bad in samples.BAD_VALUES:
            answer = _with(hub, endpoint, body, query, name, bad)
            assert answer.status < 500, (name, bad, answer)
            assert answer.status != 500


def _with(hub: HubHarness, endpoint: Endpoint, body: Any, query: Any, name: str, bad: Any) -> Reply:
    path = samples.path_of(endpoint)
    if endpoint.method in BODIES:
        text = msgspec.json.encode({**body, name: None}).replace(
            f'"{name}":null'.encode(), f'"{name}":'.encode() + _json(bad)
        )
        return hub.ask(endpoint.method, path, data=text)
    return hub.ask(endpoint.method, path, query={**query, name: bad if isinstance(bad, str) else str(bad)})


def _json(value: Any) -> bytes:
    return (
        str(value).encode()
        if isinstance(value, int) and not isinstance(value, bool)
        else msgspec.json.encode(value)
    )


@every_route
def test_no_part_of_a_path_makes_the_hub_fail(hub: HubHarness, endpoint: Endpoint) -> None:
    body, query = samples.sample(endpoint)
    for name in endpoint.variables:
        for bad in ("..", "a/b", "\0", "x" * 5000, "\u202e", "%", "é", " ", "{x}", "\ud800"[:0] + "\\"):
            path = samples.path_of(endpoint, **{name: bad})
            answer = hub.ask(endpoint.method, path, body, query=query)
            assert 400 <= answer.status < 500 or name == "path", (name, bad, answer)


@pytest.mark.parametrize("raw", ["%ff", "%", "%zz", "%ed%a0%80", "%00", "..%2f..", "%2e%2e"])
def test_a_path_that_is_no_text_is_refused(hub: HubHarness, raw: str) -> None:
    assert hub.ask("GET", f"/v1/sessions/{raw}").status == 400


@every_route
def test_a_huge_offset_or_a_bad_key_is_refused(hub: HubHarness, endpoint: Endpoint) -> None:
    body, query = samples.sample(endpoint)
    for header, value in (
        ("coord-min-offset", "x"),
        ("coord-min-offset", "-1"),
        ("coord-min-offset", "9" * 400),
        ("coord-min-offset", "1_0"),
        ("idempotency-key", "a/b"),
        ("idempotency-key", "x" * 500),
        ("coord-repository", "../../x"),
        ("coord-repository", "x" * 500),
    ):
        answer = hub.ask(
            endpoint.method, samples.path_of(endpoint), body, query=query, headers={header: value}
        )
        assert answer.status == 400, (header, value, answer)
