"""The generation clock over HTTP: the names, the statuses and the checks of the facade."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.hub.harness import HubHarness

TASK = "/v1/tenants/local/projects/shop/tasks/A-001-login"
CLAIM = {"agent_id": "ada", "session_id": "s1", "lease_duration_seconds": 60}


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        yield harness


def test_a_task_that_was_never_added_can_be_claimed(hub: HubHarness) -> None:
    granted = hub.ask("POST", f"{TASK}/claim", CLAIM)
    assert (granted.status, granted.body["success"], granted.body["reason"]) == (200, True, "GRANTED")
    assert granted.body["claim"]["generation"]["generation"] == 1
    held = hub.ask("GET", "/v1/tenants/local/sessions/s1/claims").body
    assert [claim["task_id"] for claim in held] == ["A-001-login"]


def test_a_denied_claim_names_the_current_one(hub: HubHarness) -> None:
    """409 with the fields of the facade, the claim in the way, and the next step."""
    hub.ask("POST", f"{TASK}/claim", CLAIM)
    denied = hub.ask("POST", f"{TASK}/claim", {**CLAIM, "session_id": "s2"})
    assert (denied.status, denied.body["success"]) == (409, False)
    assert denied.body["reason"] == denied.body["code"] == "DENIED_ACTIVE_CLAIM"
    assert denied.body["claim"]["generation"]["session_id"] == denied.body["current_holder"] == "s1"
    assert denied.body["hint"]


def test_a_claim_is_renewed_submitted_and_read(hub: HubHarness) -> None:
    hub.ask("POST", f"{TASK}/claim", CLAIM)
    held = {"session_id": "s1", "expected_generation": 1}
    assert hub.ask("POST", f"{TASK}/renew", held).body["reason"] == "RENEWED"
    stale = hub.ask("POST", f"{TASK}/submit", {"session_id": "s2", "generation": 1, "result_data": {}})
    assert (stale.status, stale.body["accepted"], stale.body["reason"]) == (409, False, "SESSION_MISMATCH")
    done = hub.ask(
        "POST", f"{TASK}/submit", {"session_id": "s1", "generation": 1, "result_data": {"ok": True}}
    )
    assert (done.status, done.body["accepted"]) == (200, True)
    state = hub.ask("GET", f"{TASK}/state").body
    assert (state["state"], state["result"]["result_data"]) == ("done", {"ok": True})
    history = hub.ask("GET", f"{TASK}/history").body
    assert [(entry["generation"], entry["release_reason"]) for entry in history] == [(1, "COMPLETED")]


def test_a_released_task_has_a_next_generation(hub: HubHarness) -> None:
    hub.ask("POST", f"{TASK}/claim", CLAIM)
    release = {"session_id": "s1", "expected_generation": 1, "reason": "lunch"}
    assert hub.ask("POST", f"{TASK}/release", release).status == 200
    again = hub.ask("POST", f"{TASK}/release", release)
    assert (again.status, again.body["success"]) == (409, False)
    assert hub.ask("POST", f"{TASK}/claim", CLAIM).body["claim"]["generation"]["generation"] == 2
    assert hub.ask("GET", f"{TASK}/history").body[0]["note"] == "lunch"


@pytest.mark.parametrize(
    "change",
    [
        {"agent_id": "a/b"},
        {"session_id": ""},
        {"session_id": "s1\n"},
        {"lease_duration_seconds": 0},
        {"lease_duration_seconds": 10**400},
        {"lease_duration_seconds": True},
        {"metadata": {"a": "x" * 5000}},
        {"metadata": []},
        {"tenant": "other"},
        {"user": "root"},
    ],
)
def test_a_claim_is_checked_as_by_the_facade(hub: HubHarness, change: dict[str, Any]) -> None:
    refused = hub.ask("POST", f"{TASK}/claim", {**CLAIM, **change})
    assert (refused.status, refused.body["code"]) == (400, "invalid"), refused
    assert hub.ask("GET", f"{TASK}/state").body["state"] != "in_progress"


def test_a_large_result_arrives_whole(hub: HubHarness) -> None:
    """A result that fits no record is stored in chunks, as by every client."""
    hub.ask("POST", f"{TASK}/claim", CLAIM)
    data = {"text": "x" * 600_000}
    submitted = hub.ask("POST", f"{TASK}/submit", {"session_id": "s1", "generation": 1, "result_data": data})
    assert submitted.body["accepted"]
    read = hub.ask("GET", "/v1/projects/shop/tasks/A-001-login/result")
    assert read.body["result_data"] == data


def test_the_key_of_a_request_makes_it_happen_once(hub: HubHarness) -> None:
    key = {"idempotency-key": "k-1"}
    first = hub.ask("POST", f"{TASK}/claim", CLAIM, headers=key)
    second = hub.ask("POST", f"{TASK}/claim", CLAIM, headers=key)
    assert (first.status, second.status) == (200, 200)
    assert first.body == second.body
    other = hub.ask("POST", f"{TASK}/claim", {**CLAIM, "session_id": "s2"}, headers=key)
    assert other.status == 400
    assert other.body["code"] == "invalid"
