"""How a repository is set up: whom the hub tells, and what it says about a repository of this machine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coord.core.tokens.schema import Role
from coord.host.repository import find_repository
from coord.integrations.setup import checks
from coord.sdk.reports.doctor import OK, Finding
from coord.transports.hub.api.endpoints import setup
from tests.support.git_folders import made_repository
from tests.support.hub.harness import HubHarness, Reply
from tests.support.hub.site import Site, open_site

PATHS = ("/v1/hooks", "/v1/mirrors", "/v1/reactions")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


@pytest.mark.parametrize("path", PATHS)
def test_a_limited_token_and_another_tenant_learn_nothing_of_the_machine(site: Site, path: str) -> None:
    """What stands in a person's files belongs to no project, no session and no other tenant."""

    def ask(**limits: Any) -> int:
        return int(site.ask("GET", path, site.token(Role.ADMIN, **limits)).status)

    assert site.ask("GET", path).status == 401
    assert (ask(project="shop"), ask(session="s-bob"), ask(tenant="other")) == (403, 403, 404)
    assert json.loads(site.ask("GET", "/v1/page", site.token()).body)["hub"]["files"] is False
    answer = site.ask("GET", path, site.token())
    assert (answer.status, json.loads(answer.body)["hint"]) == (404, "ask the hub of the repository")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubHarness]:
    """A hub of a repository on this machine."""
    root = tmp_path / "shop"
    made_repository(root)
    with HubHarness(repository=find_repository(str(root))) as found:
        yield found


def ask(hub: HubHarness, path: str) -> Reply:
    return hub.ask("GET", path, token=hub.new_token("view"))


def test_another_tenant_of_this_repository_learns_nothing_of_the_machine(hub: HubHarness) -> None:
    """Tenants share a store, and so may other repositories: the files are those of one only."""
    for path in PATHS:
        assert hub.ask("GET", path, token=hub.new_token("admin", "other")).status == 404
    elsewhere = hub.ask("GET", "/v1/mirrors", headers={"coord-repository": "another"})
    assert elsewhere.status == 404


def test_a_viewer_sees_hooks_and_many_who_look_cost_one_check(
    hub: HubHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(hub, "/v1/hooks").body == []
    assert ask(hub, "/v1/page").body["hub"]["files"] is True
    setup._hooks.clear()
    made: list[str] = []

    def examine(repository: Any, _environ: Any) -> list[Finding]:
        made.append(repository.root)
        return [Finding("hooks", OK, f"check {len(made)}")]

    monkeypatch.setattr(checks, "examine_hooks", examine)
    request = hub.request("GET", "/v1/hooks")
    replies = hub.together(*[lambda: request] * 5)
    assert [each.body[0]["message"] for each in replies] == ["check 1"] * 5
    monkeypatch.setattr(setup, "CHECKED_S", -1.0)
    assert ask(hub, "/v1/hooks").body[0]["message"] == "check 2"
    assert len(made) == 2


def test_a_viewer_sees_mirrors_and_reactions_with_what_is_wrong(hub: HubHarness) -> None:
    mirrors = ask(hub, "/v1/mirrors").body
    assert [(each["name"], each["on"]) for each in mirrors] == [
        ("contract", False),
        ("claude-coord", False),
        ("agent-claims", False),
    ]
    found = ask(hub, "/v1/reactions").body
    assert (found["reactions"], found["dead"], found["performed_by"]) == ([], [], "")
