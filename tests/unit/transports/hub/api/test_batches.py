"""Batch routes: one answer for each item, and the status that its own request would have had."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from coord.core.commands import Command
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks
from coord.core.tasks.commands import (
    AsSession,
    ClaimTask,
    ClaimTasks,
    ReleaseClaim,
    RenewLease,
    SubmitResult,
)
from coord.sdk.remote import wire
from tests.support.hub.harness import HubHarness


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        yield harness


def answers(hub: HubHarness, noun: str, items: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    found = hub.ask("POST", f"/v1/batch/{noun}", {"items": items}, **more)
    assert found.status == 200, found
    listed: list[dict[str, Any]] = found.body["answers"]
    assert len(listed) == len(items)
    return listed


def task(number: int, **more: Any) -> dict[str, Any]:
    return {"project": "shop", "task": f"A-{number:03}", "session": "s1", **more}


def errors(hub: HubHarness, command: Command, token: str) -> str:
    """Return the code of the error that a command of the inner protocol gets; "" for none."""
    call = wire.Call(wire.Target("", "local"), [wire.raw(command)], [""], 5.0)
    found = hub.raw("POST", wire.CALL, wire.encode(call), "application/msgpack", token)
    if found.status != 200:
        return "forbidden" if found.status == 403 else str(found.status)
    (answer,) = msgspec.msgpack.decode(found.body, type=wire.Answers).answers
    return "" if answer.error is None else wire.error_of(answer.error).code


def test_claims_renewals_and_results_in_one_request_each(hub: HubHarness) -> None:
    claimed = answers(hub, "claims", [task(1), task(2), task(1, session="s2")])
    assert [each["status"] for each in claimed] == [200, 200, 409]
    assert claimed[2]["problem"]["reason"] == "DENIED_ACTIVE_CLAIM"
    renewed = answers(hub, "renewals", [task(1, generation=1), task(2, generation=9)])
    assert [each["status"] for each in renewed] == [200, 409]
    big = {"text": "x" * 600_000}
    done = answers(
        hub, "submissions", [task(1, generation=1, result={"a": 1}), task(2, generation=1, result=big)]
    )
    assert [each["reply"]["reason"] for each in done] == ["ACCEPTED", "ACCEPTED"]
    states = answers(hub, "states", [{"project": "shop", "task": f"A-00{n}"} for n in (1, 2, 3)])
    assert [each["reply"]["state"] for each in states] == ["done", "done", "ready"]
    assert hub.ask("GET", "/v1/projects/shop/tasks/A-002/result").body["result_data"] == big


def test_locks_are_granted_one_by_one(hub: HubHarness) -> None:
    found = answers(
        hub,
        "locks",
        [
            {"session": "s1", "resources": ["a.py"]},
            {"session": "s2", "resources": ["a.py", "b.py"]},
            {"session": "s2", "resources": ["b.py"]},
        ],
    )
    assert [each["status"] for each in found] == [201, 409, 201]
    assert found[1]["problem"]["holder"]["owner"] == "s1"


def test_one_bad_item_refuses_the_batch_before_anything_happens(hub: HubHarness) -> None:
    before = hub.database.log("local").seen.offset
    refused = hub.ask(
        "POST", "/v1/batch/locks", {"items": [{"session": "s1", "resources": ["a"]}, {"resources": ["b"]}]}
    )
    assert refused.status == 400
    assert hub.ask("POST", "/v1/batch/claims", {"items": []}).status == 400
    assert hub.ask("POST", "/v1/batch/claims", {"items": [task(1)] * 1001}).status == 400
    assert hub.database.log("local").seen.offset <= before + 1
    assert hub.ask("GET", "/v1/locks").body["locks"] == []


def test_a_batch_with_a_key_happens_once(hub: HubHarness) -> None:
    key = {"headers": {"idempotency-key": "k-1"}}
    items = [task(1), task(2)]
    assert answers(hub, "claims", items, **key) == answers(hub, "claims", items, **key)


def test_a_token_claims_for_no_session_that_is_not_its_own(hub: HubHarness) -> None:
    """A session that came with one token is not for another one, also where the command has no caller."""
    mine, other = hub.new_token("operate"), hub.new_token("operate")
    assert hub.ask("POST", "/v1/sessions", {"session": "s1"}, token=mine).status == 200
    assert [each["status"] for each in answers(hub, "claims", [task(1)], token=other)] == [403]
    clock = "/v1/tenants/local/projects/shop/tasks/A-001/claim"
    body = {"agent_id": "ada", "session_id": "s1"}
    assert hub.ask("POST", clock, body, token=other).status == 403
    assert hub.ask("POST", clock, body, token=mine).status == 200
    for path in ("renew", "release"):
        names = {"session": "s1", "generation": 1}
        assert hub.ask("POST", f"/v1/projects/shop/tasks/A-001/{path}", names, token=other).status == 403
    submitted = {"session": "s1", "generation": 1, "result": {}}
    assert hub.ask("POST", "/v1/projects/shop/tasks/A-001/submit", submitted, token=other).status == 403
    assert hub.ask("POST", "/v1/projects/shop/tasks/A-001/submit", submitted, token=mine).status == 200


@pytest.mark.parametrize(
    ("owner", "over"),
    [("operate", "routes"), ("operate", "calls"), ("admin", "routes"), ("admin", "calls"), ("", "store")],
)
def test_a_claim_binds_its_session_to_the_token(hub: HubHarness, owner: str, over: str) -> None:
    """A session of the generation clock was never registered; no other token acts in its name."""
    mine, other = hub.new_token(owner or "admin"), hub.new_token("operate")
    claim = ClaimTask("local", "shop", "A-001", "ada", "s1", 60_000)
    foreign = [
        RenewLease("local", "shop", "A-001", "s1", 1),
        SubmitResult("local", "shop", "A-001", "s1", 1, b"{}", "product"),
        ReleaseClaim("local", "shop", "A-001", "s1", 1),
        ClaimTask("local", "shop", "A-002", "eve", "s1", 60_000),
        ClaimTasks("local", "eve", "s1", 60_000, (("shop", "A-003"),)),
        AsSession(Caller("s1"), ClaimTask("local", "shop", "A-004", "eve", "s1", 60_000)),
        AcquireLocks(Caller("s1"), "repo", ("file:a",)),
        Register(Caller("s1")),
    ]
    assert [errors(hub, each, other) for each in foreign[:3]] == [""] * 3, "refused by their reply"
    if over == "store":
        assert hub.store.engine("local").call(claim).success
    elif over == "calls":
        assert errors(hub, claim, mine) == ""
    else:
        body = {"agent_id": "ada", "session_id": "s1"}
        path = "/v1/tenants/local/projects/shop/tasks/A-001/claim"
        assert hub.ask("POST", path, body, token=mine).status == 200
    assert [errors(hub, each, other) for each in foreign] == ["impostor"] * len(foreign)
    items = [task(1, generation=1, result={}), task(2, generation=1, result={})]
    denied = hub.ask("POST", "/v1/batch/submissions", {"items": items}, token=other)
    assert (denied.status, [each["status"] for each in denied.body["answers"]]) == (200, [403, 403])
    assert errors(hub, foreign[0], mine) == ""
    assert errors(hub, foreign[1], hub.new_token("admin")) == "", "an admin acts for every session"


def test_a_wrapped_claim_by_force_needs_an_admin(hub: HubHarness) -> None:
    forced = ClaimTask("local", "shop", "A-001", "ada", "s1", 60_000, force=True, reason="mine")
    assert errors(hub, AsSession(Caller("s1"), forced), hub.new_token("operate")) == "forbidden"
    assert errors(hub, AsSession(Caller("s1"), forced), hub.new_token("admin")) == ""


def test_a_batch_stays_inside_the_project_of_its_token(hub: HubHarness) -> None:
    token = hub.new_token("admin", project="bank")
    for noun, item in (
        ("claims", task(1)),
        ("renewals", task(1, generation=1)),
        ("submissions", task(1, generation=1)),
        ("states", {"project": "shop", "task": "A-001"}),
    ):
        body = {"items": [{**item, "project": "bank"}, item]}
        assert hub.ask("POST", f"/v1/batch/{noun}", body, token=token).status == 403
    assert hub.ask("GET", "/v1/projects/bank/tasks/A-001/state").body["state"] == "ready"
