"""The routes of the founding document, with its field names."""

from collections.abc import Iterator

import pytest

from coord.core.alerts.commands import CheckAlerts
from coord.engine.engine import Engine
from tests.support.hub.harness import HubHarness

LOCKS = "/api/coordination/locks"
ALERTS = "/api/coordination/alerts"


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        yield harness


def test_a_file_is_locked_listed_and_released(hub: HubHarness) -> None:
    """API-1, API-2, API-3."""
    hub.ask("POST", "/v1/sessions", {"session": "ada", "role": "developer"})
    body = {"agentId": "ada", "filePath": "src/auth.ts", "reason": "implementing login"}
    granted = hub.ask("POST", LOCKS, body)
    assert (granted.status, granted.body["ok"]) == (201, True)
    (listed,) = hub.ask("GET", LOCKS).body["locks"]
    assert listed == granted.body["lock"]
    assert {name: listed[name] for name in ("filePath", "agentId", "agentRole", "reason")} == {
        **body,
        "agentRole": "developer",
    }
    assert listed["acquiredAt"] < listed["expiresAt"]
    released = hub.ask("DELETE", f"{LOCKS}/src%2Fauth.ts", query={"agentId": "ada"})
    assert (released.status, released.body["released"]) == (200, ["src/auth.ts"])
    assert hub.ask("GET", LOCKS).body == {"locks": []}


def test_a_held_file_is_refused_with_its_holder(hub: HubHarness) -> None:
    hub.ask("POST", LOCKS, {"agentId": "ada", "filePath": "src/auth/*"})
    refused = hub.ask("POST", LOCKS, {"agentId": "bob", "filePath": "src/auth/login.ts"})
    assert (refused.status, refused.body["ok"], refused.body["holder"]["agentId"]) == (409, False, "ada")
    assert refused.body["holder"]["filePath"] == "src/auth/*"


def test_an_agent_refreshes_its_own_lock(hub: HubHarness) -> None:
    body = {"agentId": "ada", "filePath": "a.py"}
    assert [hub.ask("POST", LOCKS, body).status for _ in range(2)] == [201, 200]


def test_nobody_releases_the_lock_of_another(hub: HubHarness) -> None:
    hub.ask("POST", LOCKS, {"agentId": "ada", "filePath": "src/a.py"})
    refused = hub.ask("DELETE", f"{LOCKS}/src/a.py", query={"agentId": "bob"})
    assert 400 <= refused.status < 500
    assert len(hub.ask("GET", LOCKS).body["locks"]) == 1
    assert hub.ask("DELETE", f"{LOCKS}/src/a.py", query={"agentId": "ada"}).status == 200


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", ".git/config", "a\0b"])
def test_a_path_outside_of_the_repository_is_refused(hub: HubHarness, path: str) -> None:
    assert hub.ask("POST", LOCKS, {"agentId": "ada", "filePath": path}).status == 400


def test_spellings_of_one_path_are_one_lock(hub: HubHarness) -> None:
    hub.ask("POST", LOCKS, {"agentId": "ada", "filePath": "src/./x/../a.py"})
    assert hub.ask("POST", LOCKS, {"agentId": "bob", "filePath": "file:src//a.py"}).status == 409


def test_current_alerts_are_an_array(hub: HubHarness) -> None:
    """ALR-8, API-6: the open ones, with the names of the document; closed over HTTP with an outcome."""
    hub.ask("POST", "/v1/sessions", {"session": "ada", "merge_blob": {"context_percent": 91}})
    assert hub.ask("GET", ALERTS).body == []
    Engine(hub.database, "local").call(CheckAlerts())
    (alert,) = hub.ask("GET", ALERTS).body
    assert {name: alert[name] for name in ("id", "type", "severity", "agentId")} == {
        "id": "a1",
        "type": "context_pressure",
        "severity": "warning",
        "agentId": "ada",
    }
    assert alert["timestamp"].endswith("+00:00")
    assert hub.ask("POST", "/v1/alerts/a1/close", {"right": True}).body["outcome"] == "true"
    assert hub.ask("GET", ALERTS).body == []
    assert hub.ask("GET", "/v1/alerts", query={"closed": "true"}).body["rules"][1]["precision"] == 1.0
