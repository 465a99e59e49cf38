"""Now and Locks at a glance: what happened meanwhile, what agents use, and who waits for whom."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.support.hub.browsing import PATIENCE_MS
from tests.support.hub.page_events import ADDED
from tests.support.hub.page_site import PROJECT, go, live, visit
from tests.support.hub.site import Site, open_site

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
LOOKED = """if (!localStorage.getItem("coord.looks")) {
  const looks = {"": {at: Date.now() - 6 * 60_000, offset: 1}};
  localStorage.setItem("coord.looks", JSON.stringify(looks));
}"""
"""A reader who looked six minutes ago, and not since."""
OUTSIDE = """() => {
  const picture = document.querySelector(".picture svg").getBoundingClientRect();
  return [...document.querySelectorAll(".picture :is(rect, path, text)")].filter((each) => {
    const box = each.getBoundingClientRect();
    return each.closest("defs") ? false : box.left < picture.left - 1 || box.right > picture.right + 1
      || box.top < picture.top - 1 || box.bottom > picture.bottom + 1 || !box.width;
  }).map((each) => each.outerHTML);
}"""
"""Returns what is drawn outside of the picture, where nobody sees it."""
CREW = [
    {"event": "session.registered", "session": f"s-{agent}", "agent": agent, "project": PROJECT}
    for agent in ("ada", "bob", "cleo")
]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


def words(drawn: Locator) -> list[str]:
    """Return the texts of parts of a picture, in order."""
    return sorted(text.strip() for text in drawn.all_text_contents())


def lock(agent: str, name: str) -> dict[str, Any]:
    return {
        "event": "lock.acquired",
        "session": f"s-{agent}",
        "resource": f"file:src/{name}",
        "mode": "write",
    }


def wait(agent: str, name: str, holder: str, seconds: int = 1) -> dict[str, Any]:
    since_ms = int(time.time() * 1000) - seconds * 1000
    found = {"event": "lock.waiting", "id": f"w-{agent}", "session": f"s-{agent}", "since_ms": since_ms}
    return {**found, "resources": [f"file:src/{name}"], "holder": f"s-{holder}"}


def test_a_circle_of_waits_is_drawn_and_marked(browser: Browser, site: Site) -> None:
    """In words, too; what only waits for the circle is not marked, and a wait that ends undoes it."""
    waits = [wait("ada", "b.py", "bob", 30), wait("bob", "a.py", "ada", 20), wait("cleo", "a.py", "ada", 10)]
    with visit(browser, site, path="/locks") as (page, complaints):
        page.evaluate(ADDED, [*CREW, lock("ada", "a.py"), lock("bob", "b.py"), *waits])
        picture = page.get_by_role("img", name="ada waits for bob; bob waits for ada; cleo waits for ada")
        expect(picture).to_be_visible()
        expect(page.get_by_role("group", name="Who waits for whom")).to_be_visible()
        expect(page.get_by_text("a deadlock", exact=True)).to_be_visible()
        marked, others = ("g.circle", "g:is(.node, .edge):not(.circle)")
        assert words(page.locator(marked)) == ["ada", "bob", "src/a.py", "src/b.py"]
        assert words(page.locator(others)) == ["cleo", "src/a.py"]
        expect(page.locator(".waits li").nth(2)).to_contain_text("cleo waiting for src/a.py behind ada, 2nd")
        assert page.evaluate(OUTSIDE) == []
        page.evaluate(ADDED, [{"event": "lock.wait_ended", "id": "w-ada"}])
        expect(page.get_by_role("img", name="bob waits for ada; cleo waits for ada")).to_be_visible()
        expect(page.get_by_text("a deadlock", exact=True)).to_have_count(0)
        assert page.locator(".circle").count() == 0
        assert page.evaluate(OUTSIDE) == []
        page.locator(".node").filter(has_text="cleo").click()
        expect(page).to_have_url(f"http://{site.address}/agent/s-cleo")
        assert complaints == []


def test_a_waiting_agent_shows_its_queue_its_context_and_its_cost(browser: Browser, site: Site) -> None:
    """OBS-2: its task is in its queue, because it works on none; as a card and as a row."""
    used = {"event": "usage.reported", "session": "s-ada", "context_percent": 95, "cost": 1_240_000}
    task = {"project": PROJECT, "task": "checkout", "session": "s-ada"}
    events = [
        *CREW,
        {"event": "task.added", **task, "title": "Check out"},
        {"event": "task.claimed", **task, "generation": 1, "lease_ms": 600_000},
        {**used, "cost": 1_000_000, "context_percent": 60},
        {**used, "cost": 240_000},
        lock("bob", "auth.ts"),
        wait("ada", "auth.ts", "bob", 100),
    ]
    with visit(browser, site, path="/now?shape=cards") as (page, complaints):
        page.evaluate(ADDED, events)
        for shape, place in (("cards", page.locator(".card.agent")), ("rows", page.locator(".agents .row"))):
            go(page, f"/now?shape={shape}")
            ada = place.filter(has_text="ada").first
            expect(ada).to_contain_text(re.compile(r"waiting for src/auth\.ts behind bob, 1m4\ds"))
            expect(ada.get_by_title("Tasks that it has besides this one")).to_have_text("1")
            expect(ada).to_contain_text("checkout")
            expect(ada).to_contain_text("95%")
            expect(ada).to_contain_text("$1.24")
            bob = place.filter(has_not_text="ada").filter(has_text="bob")
            expect(bob).to_contain_text("works")
            expect(bob).not_to_contain_text("%")
            expect(bob).not_to_contain_text("$")
            if shape == "cards":
                meter = ada.get_by_role("meter", name="Context used")
                expect(meter).to_have_attribute("aria-valuenow", "95")
                expect(meter).to_have_attribute("data-tone", "bad")
        assert complaints == []


def test_what_happened_since_the_last_look(browser: Browser, site: Site) -> None:
    """Counted with a way to each kind; it goes when it is dismissed, and a reload is no news."""
    site.write(2, event="git.merged", branch="login", into="main", session="s-ada", files=["a.py"])
    site.write(event="message.sent", id="m1", session="s-ada", to=["s-bob"], subject="Done")
    site.write(event="session.ended", session="s-cleo", end_reason="closed")
    with visit(browser, site, script=LOOKED) as (page, complaints):
        away = page.get_by_role("region", name="While you were away")
        expect(away).to_contain_text(re.compile("the last 6m"))
        links = {each.inner_text(): each.get_attribute("href") for each in away.get_by_role("link").all()}
        assert links == {
            "2 branches merged": "/merges",
            "1 message": "/messages",
            "1 session ended": "/activity",
        }
        page.get_by_role("link", name="2 branches merged").click()
        expect(page.locator("main")).to_contain_text("login")
        go(page, "/now")
        away.get_by_role("button", name="Dismiss").click()
        expect(away).to_have_count(0)
        page.reload()
        live(page)
        expect(page.get_by_role("heading", name="Agents")).to_be_visible()
        assert away.count() == 0
        assert complaints == []
