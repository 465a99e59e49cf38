"""Every way to get work or a lock over the network, while a person pauses or stops all agents."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import BeginToolCall
from coord.core.messages.work_mode import Mode, SetWorkMode
from coord.transports.hub.authentication import cookie_name
from coord.transports.hub.mcp.protocol import META, MODERN
from tests.support.hub.harness import ADMIN, HOST, HubHarness, Reply

TASK = "/v1/tenants/local/projects/p/tasks/named/claim"
LEASE = {"lease_ms": 60_000}
LOCKED = "file:held.py"


class Asker:
    """Somebody who asks a hub: an agent with a session of its own, or a person with a browser."""

    def __init__(self, hub: HubHarness, session: str) -> None:
        self.hub, self.session = hub, session

    @property
    def who(self) -> dict[str, Any]:
        return {"session": self.session, "agent": self.session} if self.session else {}

    def post(self, path: str, body: Any, method: str = "POST", **headers: str) -> Reply:
        if not self.session:
            named = {
                "authorization": "",
                "cookie": f"{cookie_name(self.hub.request('GET', '/'))}={self.hub.token}",
            }
            headers |= {**named, "sec-fetch-site": "same-origin", "origin": f"http://{HOST}"}
            headers |= {"content-type": "application/json"}
        return self.hub.ask(method, path, body, headers=headers)

    def rpc(self, method: str, **params: Any) -> Reply:
        params = {**({"session": self.session} if self.session else {}), **params}
        return self.post("/rpc", {"jsonrpc": "2.0", "method": method, "params": params, "id": 1})

    def tool(self, name: str, **arguments: Any) -> Reply:
        meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
        arguments = {**({"session": self.session} if self.session else {}), **arguments}
        params = {"name": name, "arguments": arguments, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        named = {
            "authorization": f"Bearer {self.hub.new_token('admin', project='p')}",
            "content-type": "application/json",
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
        return self.post("/mcp", message, **{"accept": "application/json, text/event-stream", **named})


class Way(NamedTuple):
    """A way to get something: what it asks, and whether it is work; if not, only a stop refuses it."""

    name: str
    ask: Callable[[Asker], Any]
    is_work: bool


def hook(asker: Asker) -> Any:
    caller = Caller(asker.session, agent=asker.session, project="p")
    return asker.hub.store.engine("local").call(
        BeginToolCall(caller, "shop-repo", ("file:free.py",), call="c1", lease_ms=60_000)
    )


WAYS = (
    Way("the next task", lambda it: it.post("/v1/projects/p/next", {**it.who, **LEASE}), True),
    Way("a named task", lambda it: it.post("/v1/projects/p/tasks/named/claim", {**it.who, **LEASE}), True),
    Way(
        "a claim of the clock",
        lambda it: it.post(TASK, {"agent_id": it.session, "session_id": it.session}),
        True,
    ),
    Way(
        "a batch of claims",
        lambda it: it.post(
            "/v1/batch/claims",
            {"items": [{"project": "p", "task": "named", "session": it.session, "agent": it.session}]},
        ),
        True,
    ),
    Way("task next of MCP", lambda it: it.tool("task", action="next"), True),
    Way("task claim of MCP", lambda it: it.tool("task", action="claim", task="named"), True),
    Way("a lock", lambda it: it.post("/v1/locks", {**it.who, "resources": ["file:free.py"]}), False),
    Way(
        "a lock of the founding API",
        lambda it: it.post("/api/coordination/locks", {"agentId": it.session, "filePath": "free.py"}),
        False,
    ),
    Way("a lock by JSON-RPC", lambda it: it.rpc("lock", resource="name:free"), False),
    Way("a project by JSON-RPC", lambda it: it.rpc("project-lock", project="p", area="x"), False),
    Way("a lock of MCP", lambda it: it.tool("lock", action="acquire", resources=["name:free"]), False),
    Way("a tool call", hook, False),
    Way(
        "a theft",
        lambda it: it.post(
            "/v1/locks/steal", {**it.who, "resources": [LOCKED], "force": True, "reason": "r"}
        ),
        False,
    ),
    Way("a theft by JSON-RPC", lambda it: it.rpc("steal", resource=LOCKED, force=True, reason="r"), False),
    Way(
        "a preemption",
        lambda it: it.post(
            "/v1/locks/preempt",
            {**it.who, "resources": [LOCKED], "priority": 9, "grace_ms": 1, "reason": "r"},
        ),
        False,
    ),
    Way(
        "a hand-over",
        lambda it: it.hub.ask(
            "POST",
            "/v1/handoffs",
            {"session": "zoe", "to": it.session, "project": "p", "resources": [LOCKED]},
        ),
        False,
    ),
    Way(
        "a task that is handed over",
        lambda it: it.hub.ask(
            "POST",
            "/v1/handoffs",
            {"session": "zoe", "to": it.session, "project": "p", "task": "busy", "resources": []},
        ),
        False,
    ),
)
OF_PEOPLE = (
    *("the next task", "a named task", "a lock", "a lock by JSON-RPC", "a project by JSON-RPC"),
    *("a theft", "a theft by JSON-RPC", "a preemption"),
)
"""Ways that a browser has; the others need the name of a session."""


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as found:
        engine = found.store.engine("local")
        for name in ("ann", "zoe"):
            engine.call(Register(caller=Caller(name, agent=name, project="p")))
        tasks = [{"task_id": each, "description": each} for each in ("open", "named", "busy")]
        assert found.ask("POST", "/v1/projects/p/tasks", {"tasks": tasks}).status == 201
        zoe = Asker(found, "zoe")
        assert zoe.post("/v1/projects/p/tasks/busy/claim", {**zoe.who, **LEASE}).status < 300
        assert zoe.post("/v1/locks", {**zoe.who, "resources": [LOCKED]}).status < 300
        yield found


def held(hub: HubHarness) -> dict[str, Any]:
    """Return who has which lock and which task, and who was asked for a lock."""
    found = hub.ask("GET", "/v1/page").body["tables"]
    return {
        "locks": {key: row.get("asked_by") for key, row in found["locks"].items()},
        "tasks": {key: row.get("session") for key, row in found["tasks"].items()},
    }


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the page is a new one."""
    monkeypatch.setattr("coord.transports.hub.api.endpoints.page.SHARED_S", -1.0)


def hold(hub: HubHarness, mode: Mode) -> None:
    hub.store.engine("local").call(SetWorkMode(caller=ADMIN, mode=mode, reason="a key has leaked"))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
@pytest.mark.parametrize("mode", [Mode.PAUSED, Mode.DRAINING, Mode.STOPPED])
def test_no_agent_gets_anything(hub: HubHarness, way: Way, mode: Mode) -> None:
    """A stop refuses everything, the other modes only work; afterwards the same request succeeds."""
    before, asker = held(hub), Asker(hub, "ann")
    hold(hub, mode)
    answer = way.ask(asker)
    refused = way.is_work or mode is Mode.STOPPED
    assert (held(hub) == before) is refused, answer
    if refused:
        words = answer.body if isinstance(answer, Reply) else answer.held_up
        assert "a key has leaked" in json.dumps(words), words
        hold(hub, Mode.ON)
        again = way.ask(asker)
        assert held(hub) != before, again


@pytest.mark.parametrize("way", [way for way in WAYS if way.name in OF_PEOPLE], ids=lambda way: way.name)
def test_people_are_not_held_up(hub: HubHarness, way: Way) -> None:
    before = held(hub)
    hold(hub, Mode.STOPPED)
    answer = way.ask(Asker(hub, ""))
    assert held(hub) != before, answer
