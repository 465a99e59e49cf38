"""What the views of the page read: for whom, and nothing beyond the token."""

import asyncio
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from coord.core.events import every_event
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks
from coord.core.messages.commands import PeekMessages, SendMessage
from coord.core.tokens.schema import Role
from coord.transports.hub.api.endpoints import page_reads
from coord.transports.hub.api.endpoints.page_reads import (
    MessagesQuery,
    NumbersQuery,
    show_messages,
    show_numbers,
)
from coord.transports.hub.api.recently_used import TENANTS_MAX
from tests.support.hub.site import Site, open_site

PATHS = ("/v1/page/sentences", "/v1/page/messages", "/v1/page/diff?commit=" + "0" * 40, "/v1/page/numbers")
BOB = Caller("s-bob", agent="bob")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        found.run(Register(BOB))
        found.run(AcquireLocks(Caller("s-ada", agent="ada"), "r", ("file:a.py",)))
        found.run(
            SendMessage(Caller("s-ada", agent="ada"), to="s-bob", kind="request", subject="look", body="text")
        )
        yield found


def ask(site: Site, path: str, role: Role = Role.VIEW, **limits: Any) -> tuple[int, Any]:
    answer = site.ask("GET", path, site.token(role, **limits))
    return answer.status, json.loads(answer.body)


@pytest.mark.parametrize("path", PATHS)
def test_nobody_reads_without_a_token(site: Site, path: str) -> None:
    assert site.ask("GET", path).status == 401


def test_sentences_are_those_of_all_events(site: Site) -> None:
    status, found = ask(site, "/v1/page/sentences")
    assert (status, found.keys()) == (200, {str(kind.__struct_config__.tag) for kind in every_event()})


def test_a_viewer_reads_messages_and_their_recipient_still_gets_them(site: Site) -> None:
    status, (found,) = ask(site, "/v1/page/messages?session=s-bob")
    assert (status, found["subject"], found["body"], found["waiting"]) == (200, "look", "text", True)
    assert [each.body for each in site.run(PeekMessages(BOB)).messages] == ["text"]


def test_a_token_reads_no_messages_outside_of_its_limits(site: Site) -> None:
    assert ask(site, "/v1/page/messages", project="shop")[0] == 403
    assert ask(site, "/v1/page/messages?session=s-bob", session="s-cyd")[0] == 403
    assert ask(site, "/v1/page/messages", session="s-cyd") == (200, [])
    assert len(ask(site, "/v1/page/messages", session="s-bob")[1]) == 1


def test_the_messages_of_a_log_are_read_by_one_at_a_time() -> None:
    """Each reads every inbox, so readers of one log wait for each other, and those of others do not."""
    active: list[str] = []
    most: dict[str, int] = {}

    class Store:
        def log(self, _tenant: str) -> None: ...

    def asking(tenant: str) -> Any:
        async def run(_read: Any) -> list[Any]:
            active.append(tenant)
            most["any"] = max(most.get("any", 0), len(active))
            most[tenant] = max(most.get(tenant, 0), active.count(tenant))
            for _ in range(3):
                await asyncio.sleep(0)
            active.remove(tenant)
            return []

        identity = SimpleNamespace(token=None, check_session=lambda session: session)
        hub = SimpleNamespace(stores=SimpleNamespace(run=run))
        return SimpleNamespace(values=MessagesQuery(), identity=identity, store=store, tenant=tenant, hub=hub)

    async def all_at_once() -> None:
        await asyncio.gather(*(show_messages(asking(tenant)) for tenant in ("a", "a", "b", "a")))

    store = Store()
    asyncio.run(all_at_once())
    assert most == {"any": 2, "a": 1, "b": 1}


def test_code_is_not_for_limited_tokens_nor_for_other_tenants(site: Site) -> None:
    path = "/v1/page/diff?branch=main&into=main"
    assert ask(site, path, project="shop")[0] == 403
    assert ask(site, path, session="s-bob")[0] == 403
    assert ask(site, path, tenant="other")[0] == 404
    assert site.ask("GET", path, site.token(), b"", **{"Coord-Repository": "another"}).status == 404


@pytest.mark.parametrize("query", ["", "?branch=main", "?branch=a&into=b&commit=c", "?into=main"])
def test_a_diff_names_a_commit_or_two_branches(site: Site, query: str) -> None:
    assert ask(site, f"/v1/page/diff{query}")[0] == 400


def test_numbers_count_the_log_and_those_of_a_project_only_its_events(site: Site) -> None:
    status, found = ask(site, "/v1/page/numbers")
    assert (status, found["whole"], sum(found["counts"]["locks"])) == (200, True, 1)
    assert found["rules"]["counts"]["lock.acquired"] == [{"series": "locks"}]
    assert sum(ask(site, "/v1/page/numbers", project="shop")[1]["counts"]["locks"]) == 0
    assert ask(site, "/v1/page/numbers?buckets=401")[0] == 400


class Logs:
    """The store of a hub, as far as numbers need it, with logs that are empty."""

    def log(self, tenant: str) -> Any:
        return SimpleNamespace(tail=lambda *_: [], now=lambda: 0, tenant=tenant)


def asking(store: Logs, tenant: str, project: str = "", run: Callable[..., Any] | None = None) -> Any:
    token = SimpleNamespace(project=project) if project else None
    hub = SimpleNamespace(stores=SimpleNamespace(run=run))
    identity = SimpleNamespace(token=token)
    return SimpleNamespace(store=store, tenant=tenant, identity=identity, hub=hub, values=NumbersQuery())


def test_each_tenant_keeps_its_numbers_whoever_else_asks() -> None:
    """Numbers that another tenant pushes out begin again with each request, and never reach the end."""
    store = Logs()
    tenants = [f"t{number}" for number in range(TENANTS_MAX)]
    first = [page_reads._numbers_of(asking(store, tenant)) for tenant in tenants]
    for number in range(2 * page_reads.PROJECTS_MAX):
        page_reads._numbers_of(asking(store, tenants[0], f"p{number}"))
    again = [page_reads._numbers_of(asking(store, tenant)) for tenant in tenants]
    assert again[1:] == first[1:]
    assert len(page_reads._numbers[store][tenants[0]]) == page_reads.PROJECTS_MAX  # type: ignore[index]
    page_reads._numbers_of(asking(store, "another"))
    assert len(page_reads._numbers[store]) == TENANTS_MAX  # type: ignore[index]


def test_one_request_counts_at_a_time_and_the_others_take_no_thread() -> None:
    """Eight of them would be all threads of the hub."""
    store = Logs()
    running: list[str] = []
    most: list[int] = []

    async def run(work: Callable[..., Any], *arguments: Any) -> Any:
        running.append("thread")
        most.append(len(running))
        await asyncio.sleep(0)
        running.pop()
        return work(*arguments)

    async def ask_often() -> list[Any]:
        return await asyncio.gather(*[show_numbers(asking(store, "local", run=run)) for _ in range(9)])

    assert [reply.whole for reply in asyncio.run(ask_often())] == [True] * 9
    assert most == [1] * 9
