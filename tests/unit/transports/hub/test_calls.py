"""The routes that are no endpoints: what a token may not do, it may not do here either."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from coord.core.identity import Caller
from coord.core.locks.commands import ListLocks
from coord.core.tasks.commands import ClaimTask
from coord.sdk.remote import wire
from coord.transports.hub.app import PUBLIC, routes
from coord.transports.hub.request import JSON, MSGPACK, Response
from tests.support.hub.harness import HubHarness
from tests.unit.transports.hub.api.test_every_route import ENDPOINTS, SECRET

ANN = wire.Target(tenant="ann")
READ = wire.raw(ListLocks(Caller("s1")))
WRITE = wire.raw(ClaimTask("ann", "x1", "x1", "agent", "s1", 60_000))
AFTER = {"session_id": "s1", "hook_event_name": "PostToolUse"}
MCP = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "coord://events?after=0"}}


class Asked(NamedTuple):
    """A request for something of the tenant `ann`, and the answer to a token of another one."""

    method: str
    body: Any
    status: int
    query: str = ""


INNER = {
    "/v1/hello": Asked("POST", wire.Hello(ANN), 403),
    "/v1/call": Asked("POST", wire.Call(ANN, [READ, WRITE]), 403),
    "/v1/wait": Asked("POST", wire.Wait(ANN, 0, 0.0), 403),
    "/v1/tail": Asked("POST", wire.Tail(ANN, 0, 1000), 403),
    "/v1/trim": Asked("POST", wire.Trim(ANN), 403),
    "/v1/hook": Asked("POST", {}, 409),
    "/v1/hook/claude": Asked("POST", AFTER, 403, "git=/"),
    "/v1/hook/printed": Asked("POST", {}, 409),
    "/v1/stream": Asked("GET", {}, 403, "tenant=ann&after=0"),
    "/v1/ws": Asked("GET", {}, 426, "tenant=ann&after=0"),
    "/mcp": Asked("POST", MCP, 200, "tenant=ann"),
    "/metrics": Asked("GET", {}, 403, "tenant=ann"),
    "/v1/metrics": Asked("POST", {}, 200, "tenant=ann"),
    "/v1/logs": Asked("POST", {}, 200, "tenant=ann"),
    "/v1/traces": Asked("POST", {}, 200, "tenant=ann"),
    "/v1/login-link": Asked("POST", {}, 403),
    "/logout": Asked("POST", {}, 204),
}


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        for tenant in ("local", "ann"):
            for project in ("mine", "other"):
                task = {"task_id": f"{SECRET}-{tenant}-{project}"}
                made = harness.ask(
                    "POST",
                    f"/v1/projects/{project}/tasks",
                    {"tasks": [task]},
                    token=harness.new_token("admin", tenant),
                )
                assert made.status < 300
        yield harness


def ask(hub: HubHarness, path: str, asked: Asked, token: str) -> Response:
    inner = isinstance(asked.body, msgspec.Struct)
    data = wire.encode(asked.body) if inner else json.dumps(asked.body).encode()
    request = hub.request(
        asked.method, path, data=data, token=token, headers={"content-type": MSGPACK if inner else JSON}
    )
    request.query_text = asked.query
    return hub._run(hub.app.answer(request))


def test_every_route_is_an_endpoint_or_here() -> None:
    endpoints = {endpoint.path for endpoint in ENDPOINTS}
    assert {route.path for route in routes().routes} - endpoints - set(PUBLIC) == set(INNER)


@pytest.mark.parametrize("path", INNER)
def test_a_token_reaches_no_other_tenant(hub: HubHarness, path: str) -> None:
    """API-9: none of them is exempt."""
    before = hub.database.log("ann").seen.offset
    answer = ask(hub, path, INNER[path], hub.new_token("admin", "bob"))
    assert answer.status == INNER[path].status
    assert SECRET.encode() not in answer.body
    assert hub.database.log("ann").seen.offset == before


@pytest.mark.parametrize("path", INNER)
def test_a_viewer_changes_nothing(hub: HubHarness, path: str) -> None:
    token = hub.new_token("view", "ann")
    hub.ask("GET", "/v1/locks", token=token)  # its first use is noted
    before = hub.database.log("ann").seen.offset
    answer = ask(hub, path, INNER[path], token)
    usage = ("/v1/metrics", "/v1/logs", "/v1/traces")
    writes = path in ("/v1/call", "/v1/trim", "/v1/hook/claude", "/v1/login-link", *usage)
    assert (answer.status == 403) is writes
    assert hub.database.log("ann").seen.offset == before


def test_a_token_of_a_project_reads_its_own_events_only(hub: HubHarness) -> None:
    """The log of a tenant has those of all projects; offsets stay, so that no gap is seen."""
    body = Asked("POST", wire.Tail(wire.Target(tenant="local"), 0, 1000), 200)
    found = []
    for limits in ({}, {"project": "mine"}):
        answer = ask(hub, "/v1/tail", body, hub.new_token("view", **limits))
        found.append(msgspec.msgpack.decode(answer.body, type=wire.Entries).entries)
    everything, own = found
    assert [entry.offset for entry in own][: len(everything)] == [entry.offset for entry in everything]
    events = [json.loads(event) for entry in own for event in entry.events]
    assert {event["project"] for event in events} == {"mine"}
    assert len(events) < sum(len(entry.events) for entry in everything)
