"""The page misses nothing: two browsers, lost connections and messages, and a log whose beginning is gone."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from coord.core.alerts.commands import CheckAlerts, CloseAlert
from coord.core.identity import Caller
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.sessions.commands import UpdateSession
from coord.core.settings import ChangeSettings
from coord.core.tokens.schema import Role
from coord.sdk.log_reader import first_offset
from coord.sdk.page.snapshot import RECENT_ENTRIES, SEEN
from coord.stores.contract import Store
from tests.support.hub.browsing import PATIENCE_MS
from tests.support.hub.page_site import PROJECT, fill, go, live, send, show, visit
from tests.support.hub.process import PATIENCE_S
from tests.support.hub.site import Site, open_site
from tests.support.servers.server import poll_until

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
MISSED = 5_000
SOCKETS = """
  window.sockets = []; window.lose = 0; window.lost = [];
  window.WebSocket = class extends WebSocket {
    constructor(...given) { super(...given); window.sockets.push(this); }
    set onmessage(handler) {
      super.onmessage = handler && ((message) => {
        const {type, offset} = JSON.parse(message.data);
        if (type !== "entry" || window.lose === 0) return handler(message);
        window.lose -= 1;
        window.lost.push(offset);
      });
    }
  };"""
"""Keeps the connections of a page where a test finds them, and loses as many entries as it says."""
STATE = """() => import("/static/core/store.js").then(({liveState}) => {
  const {offset, at, tables, recent} = liveState();
  return JSON.stringify({offset, at, recent, tables: Object.fromEntries(
    Object.entries(tables).map(([name, table]) => [name, Object.fromEntries(table)]))});
})"""

CAUGHT_UP = """async (wanted) => {
  const {liveState} = await import("/static/core/store.js");
  while (liveState().offset < wanted) await new Promise(requestAnimationFrame);
}"""

SHOWN = """() => {
  const main = document.querySelector("main").cloneNode(true);
  for (const each of main.querySelectorAll("time, .times, .badge, [aria-label=Tokens]")) each.remove();
  return main.textContent.replace(/\\s+/g, " ");
}"""
"""What a view says, without what differs from one look to the next."""
ASKING = ("/why/task/shop/checkout", "/alerts", "/messages", "/settings")
"""The views that ask for more than the state has."""

CONNECTED_AGAIN = """async () => {
  while (window.sockets[1]?.readyState !== 1) await new Promise(requestAnimationFrame);
}"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        fill(found)
        yield found


def log_of(site: Site) -> Store:
    found: Store = site.database.log("local")
    return found


def add(site: Site, *tasks: str) -> None:
    """Commit one entry for each task."""
    for task in tasks:
        site.run(AddTasks(PROJECT, (NewTask(task_id=task, description=f"Task {task}"),)))


def caught_up(page: Page, site: Site) -> dict[str, Any]:
    """Return what a page knows once it has every entry."""
    newest = log_of(site).load((), ()).read_point.offset
    page.evaluate(CAUGHT_UP, newest)
    found: dict[str, Any] = json.loads(page.evaluate(STATE))
    return found


def same_as_a_new_page(browser: Browser, site: Site, page: Page) -> dict[str, Any]:
    """Return what a page knows, which is what one knows that has loaded everything now."""
    with visit(browser, site) as (fresh, _):
        wanted, found = caught_up(fresh, site), caught_up(page, site)
        assert found["offset"] == wanted["offset"]
        for name, table in wanted["tables"].items():
            assert comparable(found["tables"][name]) == comparable(table), name
        begins = max(found["offset"] - RECENT_ENTRIES, first_offset(log_of(site)) - 1)
        for name, items in wanted["recent"].items():
            older = [each for each in found["recent"][name] if each["offset"] > begins]
            assert older == [each for each in items if each["offset"] > begins], name
    return found


def comparable(table: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a snapshot reads from the newest entries only: a page that is open longer knows more."""
    return {
        key: {name: value for name, value in row.items() if name not in SEEN} for key, row in table.items()
    }


def test_two_browsers_see_the_same_change(browser: Browser, site: Site) -> None:
    with visit(browser, site) as (one, complaints), visit(browser, site) as (other, others):
        add(site, "for-two")
        known = caught_up(one, site)
        assert known == caught_up(other, site)
        assert f"{PROJECT}/for-two" in known["tables"]["tasks"]
        assert complaints == others == []


def test_a_page_that_missed_thousands_of_entries_is_whole_again(browser: Browser, site: Site) -> None:
    """It says that it is old while it is, and keeps what it has."""
    with visit(browser, site, script=SOCKETS, path="/locks") as (page, _):
        page.context.set_offline(True)
        page.evaluate("window.sockets.at(-1).close()")
        expect(page.get_by_role("alert")).to_contain_text("The hub does not answer")
        expect(page.get_by_role("main")).to_contain_text("deploy")
        add(site, *(f"missed-{number:04}" for number in range(MISSED)))
        page.context.set_offline(False)
        live(page)
        expect(page.get_by_role("alert")).to_have_count(0)
        add(site, "after-all")
        tasks = same_as_a_new_page(browser, site, page)["tables"]["tasks"]
        assert len([key for key in tasks if key.startswith(f"{PROJECT}/missed-")]) == MISSED
        assert f"{PROJECT}/after-all" in tasks


def test_views_ask_again_after_a_lost_connection(browser: Browser, site: Site) -> None:
    """What each of them has asked for changes while the page is offline; none shows what it had."""
    with visit(browser, site, script=SOCKETS) as (page, complaints):
        known = {path: shown(page, path) for path in ASKING}
        page.context.set_offline(True)
        page.evaluate("window.sockets.at(-1).close()")
        expect(page.get_by_role("alert")).to_contain_text("The hub does not answer")
        change_what_is_asked(site)
        page.context.set_offline(False)
        live(page)
        complaints.clear()
        with visit(browser, site) as (fresh, _):
            for path in ASKING:
                wanted = shown(fresh, path)
                assert wanted != known[path], path
                show(page, path)
                poll_until(lambda: page.evaluate(SHOWN) == wanted, PATIENCE_S, f"{path} is old")  # noqa: B023
        assert complaints == []


def shown(page: Page, path: str) -> str:
    show(page, path)
    found: str = page.evaluate(SHOWN)
    return found


def change_what_is_asked(site: Site) -> None:
    """Ask a question, close an alert, write a message and change a rule."""
    token, dan = site.token(Role.ADMIN), Caller("s-dan", agent="dan", project=PROJECT)
    send(site, token, "/v1/questions", session="s-ada", text="May I go on?")
    send(site, token, "/v1/messages", session="s-dan", kind="info", subject="News", body="All of it")
    site.run(UpdateSession(caller=dan, merge_blob={"context_percent": 95}))
    (alert,) = site.run(CheckAlerts()).raised
    site.run(CloseAlert(caller=Caller("tty-1", user="grace", person=True), id=alert, right=True))
    site.run(ChangeSettings({"hung_seconds": 1200}))


def test_a_lost_message_is_noticed_and_healed(browser: Browser, site: Site) -> None:
    with visit(browser, site, script=SOCKETS) as (page, complaints):
        page.evaluate("window.lose = 1")
        add(site, "lost", "next")
        tasks = same_as_a_new_page(browser, site, page)["tables"]["tasks"]
        assert {f"{PROJECT}/lost", f"{PROJECT}/next"} <= set(tasks)
        assert len(page.evaluate("window.lost")) == 1
        assert complaints == []


def test_a_log_without_its_beginning(browser: Browser, site: Site) -> None:
    """The live page goes on, before and after a new connection; the past says what is gone."""
    with visit(browser, site, script=SOCKETS, path="/locks") as (page, complaints):
        known = caught_up(page, site)["offset"]
        add(site, "before-the-cut")
        log_of(site).trim(log_of(site).load((), ()).read_point.offset)
        add(site, "after-the-cut")
        same_as_a_new_page(browser, site, page)
        page.evaluate("window.sockets.at(-1).close()")
        add(site, "connected-again")
        expect(page.get_by_role("alert")).to_have_count(0)
        same_as_a_new_page(browser, site, page)
        assert complaints == []
        go(page, f"/locks?at={known - 1}")
        banner = page.locator(".banner")
        expect(banner).to_contain_text("It is the earliest that is known")
        assert int(banner.inner_text().partition("(entry ")[2].partition(")")[0]) > known
        page.get_by_role("button", name="Back to live").click()
        expect(page.get_by_role("main")).to_contain_text("deploy")


def test_the_first_picture_has_the_whole_state(browser: Browser, site: Site) -> None:
    """A view that asks for something by the state, here for settings of a project, asks right."""
    with visit(browser, site, path="/settings") as (page, complaints):
        page.reload()
        live(page)
        expect(page.get_by_role("region", name="Agents", exact=True)).to_contain_text("no limit")
        assert complaints == []


def test_a_page_of_before_an_upgrade_says_so(
    browser: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its modules would read the snapshots and rules of a later version."""
    with visit(browser, site, script=SOCKETS) as (page, complaints):
        upgraded = page.get_by_text("The hub was upgraded")
        live(page)
        page.evaluate("window.sockets.at(-1).close()")
        page.evaluate(CONNECTED_AGAIN)
        expect(upgraded).to_have_count(0)
        monkeypatch.setattr("coord.transports.hub.api.endpoints.page.page_id", lambda: "later")
        page.evaluate("window.sockets.at(-1).close()")
        expect(upgraded).to_be_visible()
        page.get_by_role("button", name="Reload").click()
        live(page)
        expect(upgraded).to_have_count(0)
        assert complaints == []
