"""Offsets, events, waiting requests, and where an event came from."""

from collections.abc import Iterator

import pytest

from coord.transports.hub.api import endpoint
from coord.transports.hub.api.endpoints import waiting as waiting_requests
from coord.transports.hub.request import Request
from tests.support.hub.harness import ADDRESS, HubHarness

LOCK = {"session": "s1", "resources": ["a.py"]}


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        yield harness


def test_every_answer_names_the_newest_offset(hub: HubHarness) -> None:
    granted = hub.ask("POST", "/v1/locks", LOCK)
    offset = int(granted.headers["Coord-Offset"])
    assert granted.body["locks"][0]["fence"] == offset
    refused = hub.ask("POST", "/v1/locks", {**LOCK, "session": "s2"})
    assert int(refused.headers["Coord-Offset"]) >= offset
    missing = hub.ask("GET", "/v1/sessions/nobody")
    assert (missing.status, int(missing.headers["Coord-Offset"]) >= offset) == (404, True)


def test_a_client_reads_nothing_older_than_it_knows(hub: HubHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "OFFSET_WAIT_S", 0.01)
    now = hub.ask("POST", "/v1/locks", LOCK).headers["Coord-Offset"]
    assert hub.ask("GET", "/v1/locks", headers={"coord-min-offset": now}).status == 200
    behind = hub.ask("GET", "/v1/locks", headers={"coord-min-offset": str(int(now) + 1)})
    assert (behind.status, behind.body["code"]) == (412, "behind")


def test_an_answer_waits_for_the_offset_that_a_client_knows(hub: HubHarness) -> None:
    now = int(hub.ask("POST", "/v1/locks", LOCK).headers["Coord-Offset"])
    wanted = {"coord-min-offset": str(now + 1)}
    read, _ = hub.together(
        lambda: hub.request("GET", "/v1/locks", headers=wanted),
        lambda: hub.request("POST", "/v1/locks", {**LOCK, "resources": ["b.py"]}),
    )
    assert (read.status, len(read.body["locks"])) == (200, 2)


def test_events_are_read_after_an_offset(hub: HubHarness) -> None:
    hub.ask("POST", "/v1/locks", LOCK)
    first = hub.ask("GET", "/v1/events", query={"limit": 1}).body
    rest = hub.ask("GET", "/v1/events", query={"after": first["after"]}).body
    whole = hub.ask("GET", "/v1/events").body
    assert first["events"] + rest["events"] == whole["events"]
    assert [event["event"] for event in whole["events"]][-1] == "lock.acquired"
    assert hub.ask("GET", "/v1/events", query={"after": whole["after"]}).body["events"] == []


def test_a_query_for_events_waits_for_the_next_one(hub: HubHarness) -> None:
    hub.ask("POST", "/v1/locks", LOCK)
    after = hub.ask("GET", "/v1/events").body["after"]
    found, _ = hub.together(
        lambda: hub.request("GET", "/v1/events", query={"after": after, "wait": "30s"}),
        lambda: hub.request("DELETE", "/v1/locks", query={"resources": ["a.py"], "session": "s1"}),
    )
    assert [event["event"] for event in found.body["events"]] == ["lock.released"]


def test_a_token_of_a_project_sees_the_events_of_no_other(hub: HubHarness) -> None:
    claim = {"agent_id": "ada", "session_id": "s1"}
    for project in ("shop", "bank"):
        hub.ask("POST", f"/v1/tenants/local/projects/{project}/tasks/A-1/claim", claim)
    token = hub.new_token("view", project="shop")
    events = hub.ask("GET", "/v1/events", token=token).body["events"]
    assert [event["event"] for event in events] == ["task.claimed", "token.created"]
    assert {event["details"]["project"] for event in events} == {"shop"}


def test_entries_that_a_token_may_not_see_do_not_end_its_wait(hub: HubHarness) -> None:
    """The same holds for entries without events, such as the use of a token."""
    token = hub.new_token("view", project="shop")
    after = hub.ask("GET", "/v1/events").body["after"]
    claim = {"agent_id": "ada", "session_id": "s1"}

    def claimed(project: str) -> Request:
        return hub.request("POST", f"/v1/tenants/local/projects/{project}/tasks/A-1/claim", claim)

    found, *_ = hub.together(
        lambda: hub.request("GET", "/v1/events", query={"after": after, "wait": "30s"}, token=token),
        lambda: claimed("bank"),
        lambda: claimed("shop"),
    )
    assert [event["details"]["project"] for event in found.body["events"]] == ["shop"]


def test_a_request_for_a_lock_waits_in_the_queue(hub: HubHarness) -> None:
    hub.ask("POST", "/v1/locks", LOCK)
    waited, released = hub.together(
        lambda: hub.request("POST", "/v1/locks", {**LOCK, "session": "s2", "wait_ms": 30_000}),
        lambda: hub.request("DELETE", "/v1/locks", query={"resources": ["a.py"], "session": "s1"}),
    )
    assert (released.status, waited.status, waited.body["locks"][0]["owner"]) == (200, 201, "s2")


def test_a_wait_that_ends_leaves_the_queue(hub: HubHarness) -> None:
    hub.ask("POST", "/v1/locks", LOCK)
    late = hub.ask("POST", "/v1/locks", {**LOCK, "session": "s2", "wait_ms": 20})
    assert (late.status, late.body["outcome"], late.body["holder"]["owner"]) == (409, "waiting", "s1")
    waiting = [each for each in hub.ask("GET", "/v1/locks/requests").body if not each["denied"]]
    assert waiting == []


@pytest.mark.parametrize("ends", ["the hub stops", "another store replaces this one"])
def test_when_nothing_can_be_waited_for_no_request_stays_in_the_queue(
    hub: HubHarness, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait would return at once, and the next one, too."""
    monkeypatch.setattr(waiting_requests, "_wait", None)
    hub.ask("POST", "/v1/locks", LOCK)
    if ends == "the hub stops":
        hub.hub.stop()
    else:
        hub.store.end_waits()
    ended = hub.ask("POST", "/v1/locks", {**LOCK, "session": "s2", "wait_ms": 30_000})
    assert (ended.status, ended.body["outcome"]) == (409, "waiting")
    waiting = [each for each in hub.ask("GET", "/v1/locks/requests").body if not each["denied"]]
    assert waiting == []


def test_a_request_for_a_task_waits_for_one(hub: HubHarness) -> None:
    hub.ask(
        "POST",
        "/v1/projects/shop/tasks",
        {"tasks": [{"task_id": "a"}, {"task_id": "b", "depends_on": ["a"]}]},
    )
    ask = {"session": "s1", "lease_ms": 60_000}
    taken = hub.ask("POST", "/v1/projects/shop/next", ask).body
    assert taken["task"]["task_id"] == "a"
    waited, _ = hub.together(
        lambda: hub.request("POST", "/v1/projects/shop/next", {**ask, "session": "s2", "wait_ms": 30_000}),
        lambda: hub.request("POST", "/v1/projects/shop/tasks/a/submit", {"session": "s1", "generation": 1}),
    )
    assert (waited.body["outcome"], waited.body["task"]["task_id"]) == ("task", "b")


def test_events_name_user_token_and_address(hub: HubHarness) -> None:
    """API-11, AUD-21: every event that a request causes, and none that a process of this machine causes."""
    token = hub.new_token("operate", label="ci")
    token_id = next(each["id"] for each in hub.ask("GET", "/v1/tokens").body if each["label"] == "ci")
    before = len(hub.events())
    claim = {"agent_id": "ada", "session_id": "s1", "metadata": {"user_id": "mallory"}}
    hub.ask("POST", "/v1/tenants/local/projects/shop/tasks/A-1/claim", claim, token=token)
    hub.ask("POST", "/v1/locks", LOCK, token=token)
    events = [event for event in hub.events()[before:] if not event["event"].startswith("token.")]
    assert {event["event"] for event in events} == {"task.claimed", "session.registered", "lock.acquired"}
    for event in events:
        assert event["origin"] == {"user": "ida", "token": token_id, "address": ADDRESS}
    claimed = next(event for event in events if event["event"] == "task.claimed")
    assert claimed["user"] == "ida", "not what the metadata claim"
    assert all("origin" not in event for event in hub.events()[:1])
    admin = hub.new_token("admin")
    hub.ask("POST", "/v1/tenants/local/projects/shop/tasks/A-2/claim", claim, token=admin)
    claimed = next(event for event in reversed(hub.events()) if event["event"] == "task.claimed")
    assert (claimed["task"], claimed["user"]) == ("A-2", "ida")


def test_a_forced_claim_needs_an_admin(hub: HubHarness) -> None:
    """Whoever takes something from others has to be one, whatever the route needs."""
    hub.ask("POST", "/v1/locks", LOCK)
    steal = {"session": "s2", "resources": ["a.py"], "force": True, "reason": "urgent"}
    assert hub.ask("POST", "/v1/locks/steal", steal, token=hub.new_token("operate")).status == 403
    assert hub.ask("POST", "/v1/locks/steal", steal).status == 201


def test_a_token_is_made_used_rotated_and_revoked(hub: HubHarness) -> None:
    """The text of a new token is shown once; one that was revoked counts no more, at once."""
    made = hub.ask("POST", "/v1/tokens", {"role": "view", "label": "page"})
    text, name = made.body["token"], made.body["info"]["id"]
    assert (made.status, hub.ask("GET", "/v1/locks", token=text).status) == (201, 200)
    rotated = hub.ask("POST", f"/v1/tokens/{name}/rotate", {}).body
    assert hub.ask("GET", "/v1/locks", token=text).status == 401
    assert hub.ask("GET", "/v1/locks", token=rotated["token"]).status == 200
    assert hub.ask("DELETE", f"/v1/tokens/{rotated['info']['id']}").status == 200
    assert hub.ask("GET", "/v1/locks", token=rotated["token"]).status == 401
    assert rotated["token"] not in str(hub.ask("GET", "/v1/tokens").body)
    assert hub.ask("POST", "/v1/tokens", {"role": "view"}, headers={"idempotency-key": "k"}).status == 403


def test_limits_and_settings_are_changed_by_their_user(hub: HubHarness) -> None:
    token = hub.new_token("admin", "acme")
    body = {"limits": {"max_active_sessions": 7}}
    assert hub.ask("PATCH", "/v1/limits", body, token=token).body["max_active_sessions"] == 7
    hub.ask("PATCH", "/v1/settings", {"settings": {"hung_seconds": 900}}, token=token)
    changes = [event for event in hub.events("acme") if event["event"] in ("limits.set", "settings.changed")]
    assert [event["by"] for event in changes] == ["ida", "ida"]


def test_a_request_without_a_session_is_that_of_its_token(hub: HubHarness) -> None:
    """A token for a session need not name it; one for none must."""
    token = hub.new_token("operate", session="s7")
    granted = hub.ask("POST", "/v1/locks", {"resources": ["a.py"]}, token=token)
    assert (granted.status, granted.body["locks"][0]["owner"]) == (201, "s7")
    assert hub.ask("POST", "/v1/locks", {"resources": ["b.py"]}).status == 400
