"""JSON-RPC 2.0: the operations of the third founding document, and the examples of the specification."""

from collections.abc import Iterator
from typing import Any

import pytest

from coord.transports.hub.api.endpoints.rpc import operations
from tests.support.hub.harness import HubHarness


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        yield harness


def call(hub: HubHarness, method: str, token: str | None = None, **params: Any) -> Any:
    """Return the result of a call, or its error."""
    message = {"jsonrpc": "2.0", "method": method, "params": params, "id": 7}
    answer = hub.ask("POST", "/rpc", message, token=token)
    assert (answer.status, answer.body["id"], answer.body["jsonrpc"]) == (200, 7, "2.0")
    return answer.body.get("result", answer.body.get("error"))


def test_every_operation_of_the_document_works(hub: HubHarness) -> None:
    """API-10, STO-27: all 16, by their names."""
    assert call(hub, "register", session="s1", agent="ada", task="TOD-406")["session"]["agent"] == "ada"
    assert call(hub, "heartbeat", session="s1")["session_id"] == "s1"
    assert call(hub, "peers", session="s1", live=True) == []
    lock = call(hub, "lock", session="s1", resource="main-branch", ttl_ms=60_000, reason="merging")
    assert [each["resource"] for each in lock["locks"]] == ["file:main-branch", "name:main-branch"]
    assert call(hub, "lock", session="s2", resource="name:main-branch")["code"] == -32001
    assert call(hub, "steal", session="s2", resource="main-branch")["code"] == -32001
    assert call(hub, "unlock", session="s1", resource="main-branch")["released"]
    assert call(hub, "send", session="s1", peer="s2", kind="handoff", subject="yours")["recipients"]
    assert call(hub, "recv", session="s2", drain=True)["messages"][0]["subject"] == "yours"
    assert call(hub, "update", session="s1", status="working", merge_blob={"a": 1})["blob"] == {"a": 1}
    assert call(hub, "broadcast", session="s1", kind="status", subject="all")["recipients"].keys() == {"s2"}
    assert call(hub, "project-lock", session="s1", project="reverie", area="x")["outcome"] == "granted"
    assert call(hub, "project-unlock", session="s1", project="reverie", area="x")["released"]
    assert call(hub, "status", session="s1")["session"]["session_id"] == "s1"
    assert call(hub, "log")["events"]
    assert call(hub, "log", what="stats")["events"]["lock.acquired"] == 3
    assert call(hub, "log", what="locks")[0]["owner"] == "s1"
    assert {event["event"] for event in call(hub, "log", what="session", session="s2")["events"]}
    assert "coord_sessions_live 2" in call(hub, "metrics")["text"]
    question = call(hub, "ask", session="s1", text="which?", options=["a", "b"], kind="decision")
    assert (question["id"], question["kind"]) == ("q1", "decision")
    assert call(hub, "decide", id="q1", answer="A")["question"]["answer"] == "a"
    assert call(hub, "decide", id="q1", answer="b")["code"] == -32001
    assert call(hub, "decisions")["questions"] == []
    assert call(hub, "needs")["needs"] == []
    assert call(hub, "dereg", session="s1")["session_id"] == "s1"
    assert len(operations().keys() - {"deregister"}) == 20


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"NaN", -32700),
        (b"[]", -32600),
        (b"1", -32600),
        (b'{"jsonrpc": "2.0", "method": 1, "params": "bar"}', -32600),
        (b'{"method": "peers", "id": 1}', -32600),
        (b'{"jsonrpc": "1.0", "method": "peers", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "method": "peers", "id": {}}', -32600),
        (b'{"jsonrpc": "2.0", "method": "peers", "id": true}', -32600),
        (b'{"jsonrpc": "2.0", "method": "foobar", "id": 1}', -32601),
        (b'{"jsonrpc": "2.0", "method": "FindToken", "id": 1}', -32601),
        (b'{"jsonrpc": "2.0", "method": "lock", "params": ["a"], "id": 1}', -32602),
        (b'{"jsonrpc": "2.0", "method": "lock", "params": {"resource": "a"}, "id": 1}', -32602),
        (b'{"jsonrpc": "2.0", "method": "lock", "params": {"caller": {}}, "id": 1}', -32602),
        (b'{"jsonrpc": "2.0", "method": "dereg", "params": {"session": "a/b"}, "id": 1}', -32602),
    ],
)
def test_errors_have_the_codes_of_the_specification(hub: HubHarness, data: bytes, code: int) -> None:
    answer = hub.ask("POST", "/rpc", data=data)
    assert (answer.status, answer.body["error"]["code"]) == (200, code)
    assert set(answer.body) == {"jsonrpc", "error", "id"}


def test_an_error_of_coord_has_its_details(hub: HubHarness) -> None:
    error = call(hub, "unlock", session="s1", resource="a.py")
    assert (error["code"], error["data"]["code"]) == (-32004, "not_found")
    assert error["data"]["hint"]


def test_a_batch_is_answered_in_order_and_runs_in_order(hub: HubHarness) -> None:
    """A later request sees what an earlier one did; a notification has no answer."""
    lock = {"session": "s1", "resource": "a.py"}
    batch = [
        {"jsonrpc": "2.0", "method": "lock", "params": lock, "id": "first"},
        {"jsonrpc": "2.0", "method": "heartbeat", "params": {"session": "s1"}},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "unlock", "params": lock, "id": 2},
        {"jsonrpc": "2.0", "method": "lock", "params": {**lock, "session": "s2"}, "id": None},
    ]
    answers = hub.ask("POST", "/rpc", batch).body
    assert [(each["id"], "error" in each) for each in answers] == [
        ("first", False),
        (None, True),
        (2, False),
        (None, False),
    ]
    assert answers[1]["error"]["code"] == -32600


def test_notifications_are_carried_out_and_not_answered(hub: HubHarness) -> None:
    """Neither alone nor in a batch, and not even if they fail."""
    lock = {"jsonrpc": "2.0", "method": "lock", "params": {"session": "s1", "resource": "a.py"}}
    for message in (lock, [lock, lock], {"jsonrpc": "2.0", "method": "nope"}):
        answer = hub.ask("POST", "/rpc", message)
        assert (answer.status, answer.body) == (204, None)
    assert len(hub.ask("GET", "/v1/locks").body["locks"]) == 1


def test_a_long_batch_is_refused_as_a_whole(hub: HubHarness) -> None:
    beat = {"jsonrpc": "2.0", "method": "heartbeat", "params": {"session": "s1"}, "id": 1}
    assert hub.ask("POST", "/rpc", [beat] * 101).body["error"]["code"] == -32600
    assert hub.ask("GET", "/v1/sessions").body == []


@pytest.mark.parametrize("method", sorted(operations()))
def test_a_viewer_changes_nothing(hub: HubHarness, method: str) -> None:
    token = hub.new_token("view")
    hub.ask("GET", "/v1/locks", token=token)
    before = hub.database.log("local").seen.offset
    params = {"session": "s1", "resource": "a", "project": "p", "to": "s2", "kind": "warn", "subject": "x"}
    params |= {"text": "x?", "id": "q1", "answer": "a"} | ({"kind": "ask"} if method == "ask" else {})
    fields = operations()[method].params.__struct_fields__
    given: dict[str, Any] = {name: value for name, value in params.items() if name in fields}
    if "resources" in fields:
        given["resources"] = ["a"]
    error = call(hub, method, token, **given)
    if method not in ("peers", "status", "log", "metrics", "decisions", "needs"):
        assert error["data"]["code"] == "forbidden", error
    assert hub.database.log("local").seen.offset == before


def test_reports_about_the_tenant_are_not_for_a_project(hub: HubHarness) -> None:
    token = hub.new_token("admin", project="shop")
    for what in ({}, {"what": "stats"}, {"what": "locks"}):
        assert call(hub, "log", token, **what)["data"]["code"] == "forbidden"
    assert call(hub, "metrics", token)["data"]["code"] == "forbidden"


def test_the_key_of_a_batch_covers_each_request(hub: HubHarness) -> None:
    """Sent again with the same key, every request of the batch happens once."""
    sends = [
        {
            "jsonrpc": "2.0",
            "method": "send",
            "params": {"session": "s1", "to": "s2", "kind": "status", "subject": str(number)},
            "id": number,
        }
        for number in range(2)
    ]
    call(hub, "register", session="s2")
    first, second = (hub.ask("POST", "/rpc", sends, headers={"idempotency-key": "k"}).body for _ in range(2))
    assert first == second
    assert [each["subject"] for each in call(hub, "recv", session="s2")["messages"]] == ["0", "1"]
