"""The ledger over HTTP, with the paths and field names of the founding document."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.consent import write_configuration
from tests.support.git_folders import made_repository
from tests.support.hub.harness import HubHarness

ACTIVITY = "/api/coordination/activity"
SUMMARY = "/api/coordination/summary"
LOCKS = "/api/coordination/locks"


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        harness.ask("POST", "/v1/sessions", {"session": "ada", "role": "developer"})
        harness.ask("POST", LOCKS, {"agentId": "ada", "filePath": "src/auth.ts"})
        harness.ask("POST", LOCKS, {"agentId": "bob", "filePath": "src/main.ts"})
        harness.ask("DELETE", f"{LOCKS}/src/auth.ts", query={"agentId": "ada"})
        yield harness


def types(hub: HubHarness, **query: str) -> list[tuple[str, str]]:
    found = hub.ask("GET", ACTIVITY, query=query)
    assert found.status == 200, found.body
    return [(each["agentId"], each["actionType"]) for each in found.body["activity"]]


def test_actions_are_listed_with_the_founding_fields(hub: HubHarness) -> None:
    """API-4, AUD-7: oldest first, each with the role of its agent."""
    every = hub.ask("GET", ACTIVITY).body["activity"]
    assert types(hub) == [("ada", "lock_acquired"), ("bob", "lock_acquired"), ("ada", "lock_released")]
    assert set(every[0]) == {*("id", "agentId", "agentRole", "actionType", "summary", "details", "timestamp")}
    assert every[0]["agentRole"] == "developer"
    assert every[0]["summary"] == "Acquired lock on src/auth.ts"
    assert every[0]["details"]["event"] == "lock.acquired"
    assert [each["id"] for each in every] == sorted({each["id"] for each in every})


def test_actions_are_filtered(hub: HubHarness) -> None:
    assert types(hub, agentId="bob") == [("bob", "lock_acquired")]
    assert types(hub, type="lock_released") == [("ada", "lock_released")]
    assert types(hub, limit="1") == [("ada", "lock_released")]
    assert len(types(hub, since="2001-01-01 00:00:00")) == 3
    assert types(hub, since="2999-01-01T00:00:00+02:00") == []


@pytest.mark.parametrize(
    "query",
    [
        *({"type": "lock.acquired"}, {"limit": "0"}, {"limit": "10001"}, {"since": "yesterday"}),
        *({"since": "1e99"}, {"agentId": "a b"}, {"agent": "ada"}),
    ],
)
def test_a_filter_that_means_nothing_is_refused(hub: HubHarness, query: dict[str, str]) -> None:
    assert hub.ask("GET", ACTIVITY, query=query).status == 400


def test_the_summary_counts(hub: HubHarness) -> None:
    """API-5, OBS-26."""
    found = hub.ask("GET", SUMMARY).body
    assert found["total"] == 3
    assert found["byType"] == {"lock_acquired": 2, "lock_released": 1}
    assert found["byAgent"]["ada"] == {"lock_acquired": 1, "lock_released": 1}
    assert found["busiestFiles"][0] == {"filePath": "src/auth.ts", "actions": 1}
    assert found["firstAt"] <= found["newestAt"]
    empty = hub.ask("GET", SUMMARY, query={"since": "2999-01-01"}).body
    assert (empty["total"], empty["firstAt"], empty["busiestFiles"]) == (0, "", [])


def test_a_token_of_a_project_sees_only_its_events(hub: HubHarness) -> None:
    """An event that states no project belongs to none, as in streams."""
    token = hub.new_token("view", project="shop")
    assert hub.ask("GET", ACTIVITY, token=token).body == {"activity": []}
    assert hub.ask("GET", SUMMARY, token=token).body["total"] == 0


def test_the_ledger_has_as_many_actions_as_the_repository_says(hub: HubHarness, tmp_path: Path) -> None:
    """AUD-8: as `coord log activity` has it; a setting that is wrong, or not confirmed, counts as none."""
    root = tmp_path / "repository"
    hub.store.location = hub.store.location._replace(repository=made_repository(root))
    hub.hub.stores.environ = {"HOME": str(tmp_path)}
    write_configuration(root, "[ledger]\nentries = 2\n", hub.hub.stores.environ)
    assert types(hub) == [("bob", "lock_acquired"), ("ada", "lock_released")]
    assert types(hub, agentId="ada") == [("ada", "lock_released")]
    assert hub.ask("GET", SUMMARY).body["total"] == 2
    (root / "coord.toml").write_text("[ledger]\nentries = 1\n")
    assert len(types(hub)) == 3
    write_configuration(root, "[ledger]\nentries = 0\n", hub.hub.stores.environ)
    assert len(types(hub)) == 3
