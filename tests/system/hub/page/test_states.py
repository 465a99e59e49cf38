"""Each view while it loads, when the hub does not answer, and when there is nothing to show."""

import re

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.hub.browsing import PATIENCE_MS
from tests.support.hub.page_site import MOVED, PROJECT, TWO_FRAMES, Traffic, fill, show, views, visit
from tests.support.hub.process import PATIENCE_S
from tests.support.hub.site import open_site
from tests.support.servers.server import poll_until

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
ASKING = {
    "activity": ("/activity", "Write the schema"),
    "alerts": ("/alerts", "Record"),
    "locks": ("/locks?on=name%3Adeploy", "No lock on it has ended"),
    "messages": ("/messages", "Go"),
    "numbers": ("/numbers", "Throughput"),
    "plan": ("/plan", "Let a reader check out"),
    "settings": ("/settings", "None follows this log"),
    "task": (f"/task/{PROJECT}/checkout", "src/checkout.py"),
    "why": (f"/why/task/{PROJECT}%2Fcheckout", "ada works on checkout"),
}
"""Views that ask the hub for more than the state, and words that only its answer has."""
WITHOUT = {"now": "cleo", "merges": "Nothing was merged yet", "agent": "checkout"}
"""Views that are whole with the state alone, and what they show."""
EMPTY = {
    "activity": "The log begins here",
    "agent": "There is no such session",
    "alerts": "All is calm",
    "locks": "coord lock src/app.py",
    "merges": "coord merge BRANCH",
    "messages": "coord send",
    "now": "coord init",
    "numbers": "Tasks done",
    "plan": "coord plan load",
    "settings": "None follows this log",
    "task": "There is no such task",
    "why": "no task",
}
"""What each view says where nothing has happened."""


class Gate:
    """Holds the requests of a page to the API, lets them fail, or lets them through."""

    def __init__(self, page: Page) -> None:
        self.held: list[Route] = []
        self.state = "open"
        page.route("**/v1/**", self._meet)

    def _meet(self, route: Route) -> None:
        if self.state == "held":
            self.held.append(route)
        elif self.state == "broken":
            route.abort()
        else:
            route.continue_()

    def fail(self) -> None:
        """Break what is held and what comes."""
        self.state = "broken"
        for route in self.held:
            route.abort()
        self.held.clear()


def states(page: Page, gate: Gate, path: str, shown: str) -> list[str]:
    """Show a view while its requests are held, fail, and are tried again; return what is wrong with that."""
    main, wrong = page.locator("main"), []
    gate.state = "held"
    page.evaluate(MOVED, path)
    poll_until(lambda: page.evaluate(TWO_FRAMES) or gate.held, PATIENCE_S, f"{path} asks for nothing")
    loads = main.get_by_role("status", name="Loading")
    wrong += ["does not say that it loads"] if not loads.count() or not loads.first.is_visible() else []
    wrong += ["shows too early what it asks for"] if shown in main.inner_text() else []
    traffic = Traffic(page)
    gate.fail()
    traffic.settle()
    alert = main.get_by_role("alert").filter(has_text="the hub does not answer")
    again = main.get_by_role("button", name=re.compile("Try again|Older entries"))
    wrong += ["does not say that it failed"] if not alert.count() else []
    wrong += ["cannot try again"] if again.count() < alert.count() else []
    gate.state = "open"
    for _ in range(alert.count()):
        if again.count():  # one answer may be what two panels lack
            again.first.click()
            traffic.settle()
    expect(main).to_contain_text(shown)
    expect(alert).to_have_count(0)
    traffic.end()
    return wrong


def test_every_view_loads_fails_and_tries_again(browser: Browser) -> None:
    """Its own requests are held, then broken, then answered; the frame and the stream have what they need."""
    assert {*ASKING, *WITHOUT} == set(views())
    with open_site() as site:
        fill(site)
        with visit(browser, site) as (page, _):
            gate = Gate(page)
            found = {name: states(page, gate, path, shown) for name, (path, shown) in ASKING.items()}
            gate.state = "broken"
            for name, shown in WITHOUT.items():
                page.evaluate(MOVED, views()[name])
                expect(page.locator("main")).to_contain_text(shown)
        with visit(browser, site) as (page, _):  # it reads the same events as Activity
            found["agent"] = states(page, Gate(page), "/agent/s-ada", "ada took task checkout")
        assert {name: each for name, each in found.items() if each} == {}


def test_every_view_of_an_empty_store_helps(browser: Browser) -> None:
    """No view is blank, none has a defect, and each says what there is to do."""
    with open_site() as site, visit(browser, site, path="/locks") as (page, complaints):
        found = {}
        for name, path in views().items():
            show(page, path)
            expect(page.locator("main h1")).to_have_count(1)
            found[name] = page.inner_text("main")
            assert "This view has a defect" not in found[name], name
        assert set(found) == set(EMPTY)
        assert {name: found[name] for name, words in EMPTY.items() if words not in found[name]} == {}
        assert [each for each in complaints if "404" not in each] == []
