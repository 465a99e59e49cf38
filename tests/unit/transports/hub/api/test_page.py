"""`GET /v1/page`: a state, and a stream that goes on where it ends."""

import asyncio
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from coord.core.identity import Caller
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.locks.commands import AcquireLocks, EndToolCall
from coord.core.messages.work_mode import Mode, SetWorkMode
from coord.core.page.state import PageState, apply_entry
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.questions.commands import AnswerQuestion, AskQuestion, WithdrawQuestion
from coord.core.sessions.commands import UpdateSession
from coord.core.tokens.schema import Role
from coord.sdk.page.kept_states import KeptStates
from coord.transports.hub.api.endpoints import page
from coord.transports.hub.api.endpoints.page import LogPages, PageQuery, pages_of
from coord.transports.hub.api.recently_used import TENANTS_MAX
from coord.transports.hub.streams.entries import Filter, visible_part
from tests.support.hub.site import EventStream, Site, open_site
from tests.support.lock_harness import LockHarness


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        for name in ("ada", "bob"):
            found.run(AcquireLocks(Caller(name, agent="claude", project="shop"), "r", (f"file:{name}.py",)))
        for project in ("shop", "other"):
            found.run(AddTasks(project, (NewTask(task_id="t1", description="do it"),)))
        yield found


def shown(site: Site, query: str = "", role: Role = Role.VIEW, **limits: Any) -> dict[str, Any]:
    answer = site.ask("GET", f"/v1/page{query}", site.token(role, **limits))
    assert answer.status == 200, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look is a new one."""
    monkeypatch.setattr(page, "SHARED_S", -1.0)


def test_a_page_shows_the_state_its_reader_and_the_rules(site: Site) -> None:
    found = shown(site, role=Role.OPERATE, label="ann's phone")
    assert {*found["tables"]["locks"]} == {"ada\nfile:ada.py", "bob\nfile:bob.py"}
    assert {*found["tables"]["tasks"]} == {"shop/t1", "other/t1"}
    assert (found["who"]["role"], found["who"]["label"]) == ("operate", "ann's phone")
    assert found["rules"]["lock.acquired"][0]["op"] == "put"
    assert (found["first_offset"], found["hub"]["store"], found["hub"]["tenant"]) == (0, "memory", "local")


def test_the_stream_after_a_page_makes_the_next_page(site: Site) -> None:
    """The state and what comes after it have neither a gap nor an overlap."""
    before = shown(site)
    token = site.token()
    stream = EventStream(site, f"?after={before['offset']}", token)
    stream.until("begin")
    site.run(AcquireLocks(Caller("eve", project="shop"), "r", ("file:eve.py",)))
    stream.until("lock.acquired")
    stream.close()
    state = PageState(before["offset"], before["at"], before["tables"], before["recent"])
    for entry in site.database.log("local").tail(before["offset"], 100):
        apply_entry(state, entry.offset, entry.at, entry.events)
    assert "eve\nfile:eve.py" in state.tables["locks"]
    assert state.tables == shown(site)["tables"]


def test_the_stream_of_a_project_makes_its_next_page_too(site: Site) -> None:
    """Whatever belongs to a project is said by its events, and who holds up all agents is no secret."""
    callers = {name: Caller(f"s-{name}", project=name) for name in ("shop", "other")}
    for caller in callers.values():
        site.run(Register(caller=caller))
        site.run(UpdateSession(caller=caller, role="lead"))
    before = shown(site, project="shop")
    asked = [
        site.run(AskQuestion(caller=caller, text=f"Use name {number}?"))
        for caller in callers.values()
        for number in range(3)
    ]
    for question in asked[::3]:
        site.run(
            AnswerQuestion(caller=Caller("person", person=True, terminal=True), id=question.id, answer="yes")
        )
    for caller, question in zip(callers.values(), asked[1::3], strict=True):
        site.run(WithdrawQuestion(caller=caller, id=question.id))
        site.run(EndToolCall(caller, edited=("file:x.py",)))
        site.run(UpdateSession(caller=caller, role="builder"))
    site.run(SetWorkMode(caller=Caller("person", person=True), mode=Mode.STOPPED, reason="a key leaked"))
    state = PageState(before["offset"], before["at"], before["tables"], before["recent"])

    def follow() -> None:
        after = shown(site, project="shop")
        for entry in site.database.log("local").tail(state.offset, after["offset"] - state.offset):
            seen = visible_part(entry, Filter(project="shop"))
            apply_entry(state, entry.offset, entry.at, seen.events)
        assert (state.tables, state.recent) == (after["tables"], after["recent"])

    follow()
    assert {*state.tables["questions"]} == {asked[2].id}
    assert state.tables["sessions"]["s-shop"]["role"] == "builder"
    assert state.tables["held"][""]["mode"] == "stopped"
    assert len(state.recent["decisions"]) == 2
    site.run(SetWorkMode(caller=Caller("person", person=True), mode=Mode.ON))
    for caller in callers.values():
        site.run(Deregister(caller=caller))
    follow()
    assert "s-shop" not in state.tables["sessions"]
    assert state.tables["questions"] == state.tables["held"] == {}


def test_a_page_of_the_past(site: Site) -> None:
    first = shown(site, "?at=1")
    assert (first["offset"], [*first["tables"]["locks"]]) == (1, ["ada\nfile:ada.py"])
    assert shown(site, f"?time={first['at']}")["offset"] >= 1
    assert shown(site, "?at=0")["tables"]["sessions"] == {}
    token = site.token()
    for query, status in (("?at=1000000", 404), ("?at=1&time=1", 400), ("?at=-1", 400), ("?at=x", 400)):
        assert site.ask("GET", f"/v1/page{query}", token).status == status


def test_a_token_of_a_project_sees_only_what_states_it(site: Site) -> None:
    found = shown(site, project="shop")
    assert [*found["tables"]["tasks"]] == ["shop/t1"]
    assert found["tables"]["locks"] == {}
    assert found["who"]["project"] == "shop"
    states = {each.get("project") for events in found["recent"].values() for each in events}
    assert states <= {"shop"}


def test_many_readers_cost_one_look(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that was restarted is asked by every page at once."""
    monkeypatch.setattr(page, "SHARED_S", 1000.0)
    first = shown(site)
    looks = []
    monkeypatch.setattr(page, "take_snapshot", lambda log: looks.append(log))
    assert [shown(site)["offset"] for _ in range(3)] == [first["offset"]] * 3
    assert looks == []


def test_without_a_token_there_is_no_page(site: Site) -> None:
    assert site.ask("GET", "/v1/page", "").status == 401


def test_who_looks_at_the_present_waits_for_no_look_at_the_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """A past state may take seconds; the oldest known offset is looked up once a second, too."""
    harness = LockHarness()
    harness.lock("ada", "file:a.py")
    pages = LogPages(harness.store, KeptStates())

    async def look() -> None:
        made = asyncio.Event()

        async def run(work: Callable[..., Any], *arguments: Any) -> Any:
            if arguments:
                await made.wait()
            return work(*arguments)

        asking: Any = SimpleNamespace(hub=SimpleNamespace(stores=SimpleNamespace(run=run)))
        past = asyncio.ensure_future(pages.at(asking, PageQuery(at=0)))
        await asyncio.sleep(0)
        newest = await asyncio.wait_for(pages.newest(asking), 3)
        assert (newest.state.offset, newest.first, past.done()) == (harness.store.seen.offset, 0, False)
        made.set()
        assert (await past).state.offset == 0
        assert pages._newest is newest
        monkeypatch.setattr(page, "SHARED_S", 1000.0)
        reads = harness.store.questions
        assert await pages.newest(asking) is newest
        assert harness.store.questions == reads
        pages._forget(newest)
        assert pages._newest is None, "a large state that serves nobody is dropped"

    monkeypatch.setattr(page, "SHARED_S", 500.0)
    asyncio.run(look())


def test_states_of_tenants_that_nobody_looks_at_are_forgotten(site: Site) -> None:
    def ask(tenant: str) -> LogPages:
        asking: Any = SimpleNamespace(store=site.store, tenant=tenant)
        return pages_of(asking)

    first = ask("local")
    for number in range(TENANTS_MAX - 1):
        ask(f"t{number}")
    assert ask("local") is first
    ask("another")
    assert len(page._pages[site.store]) == TENANTS_MAX
    assert ask("local") is first
