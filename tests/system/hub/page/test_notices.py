"""What happens in the log, as toasts and as notifications of a real Chromium in front of a real hub."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from coord.core.alerts.commands import CheckAlerts
from coord.core.alerts.rules import CONTEXT_FIELD
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks
from coord.core.messages.work_mode import Mode, SetWorkMode
from coord.core.tokens.schema import Role
from coord.host.processes import describe
from coord.transports.hub.api.endpoints import page as page_endpoint
from tests.support.hub.axe import axe_script, problems
from tests.support.hub.browsing import PATIENCE_MS
from tests.support.hub.page_site import fill, go, live, send, visit
from tests.support.hub.site import PERSON, Site, open_site

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
HOSTILE = '<img src=x onerror="window.ran=1">\u202e'
BROWSER = """
  window.told = [], window.ended = [], window.isAway = false;
  if (window.Notification) window.Notification = class extends Notification {
    constructor(title, given) { super(title, given); window.told.push({title, ...given, made: this}); }
    close() { super.close(); window.ended.push(this); }
  };
  Object.defineProperty(document, "hidden", {get: () => window.isAway});
  document.hasFocus = () => !window.isAway;
  window.look = (away) => { window.isAway = away; document.dispatchEvent(new Event("visibilitychange")); };
"""
"""Writes down each notification, and lets a test say whether somebody looks: else toasts stay."""
LONG_MS = 60_000
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
COMING = """async (place) => {
  const {noteAt} = await import("/static/parts/toast.js");
  while (!noteAt(place)) await new Promise(requestAnimationFrame);
}"""
"""Waits until a note is there, or waits for its place."""
LEADS = """() => navigator.locks.request("test", async () => {
  const of = (found, wanted) => found.find(({name}) => name === wanted)?.clientId;
  let held;
  do ({held} = await navigator.locks.query()); while (of(held, "coord.notify") !== of(held, "test"));
})"""
"""Waits until a page is the one that notifies."""
_numbers = itertools.count(1)
TOLD = "window.told.map(({title, body, tag}) => [title, body, tag])"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        fill(found)
        yield found


@contextmanager
def away(browser: Browser, site: Site, **options: Any) -> Iterator[tuple[Page, list[str]]]:
    """Yield a page at which nobody looks."""
    with visit(browser, site, script=BROWSER, **options) as (page, complaints):
        page.evaluate("look(true)")
        yield page, complaints


def toast(page: Page, title: str) -> Locator:
    return page.locator(".toast").filter(has=page.get_by_text(title, exact=True))


def grave(complaints: list[str]) -> list[str]:
    """Leave out that a page whose clock jumps connects again, and again."""
    return [each for each in complaints if "closed before the connection is established" not in each]


def titles(page: Page) -> list[str]:
    return page.locator(".toast strong").all_inner_texts()


def ask(site: Site, text: str = "May I?") -> str:
    """Ask something that nobody has asked before, because a repeated question is no news; return its id."""
    text = f"{text} ({next(_numbers)})"
    return str(send(site, site.token(Role.ADMIN), "/v1/questions", session="s-ada", text=text)["id"])


def steal(site: Site, *names: str) -> None:
    """Let one agent lock names, and another one steal them."""
    token = site.token(Role.ADMIN)
    send(site, token, "/v1/locks", session="s-cleo", resources=[*names])
    send(site, token, "/v1/locks/steal", session="s-dan", resources=[*names], reason="now", force=True)
    send(site, token, "/v1/locks/release", session="s-dan", resources=[*names])


def crash(site: Site, agent: str) -> None:
    """Let a real process hold a lock, kill it, and let somebody else find its session dead."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    caller = Caller(f"s-{agent}", agent=agent, process=describe(process.pid))
    site.run(Register(caller))
    site.run(AcquireLocks(caller, "r", (f"file:{agent}.py",)))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    site.run(AcquireLocks(Caller("s-dan", agent="dan"), "r", (f"file:{agent}.py",)))


def alarm(site: Site) -> None:
    """Let an agent report that its context is full, and the hub look."""
    site.run(Register(Caller("s-bob", agent="bob"), blob={CONTEXT_FIELD: 97}))
    site.run(CheckAlerts())


def hold_up(site: Site, mode: Mode) -> None:
    site.run(SetWorkMode(caller=PERSON, mode=mode, reason="lunch"))


def test_what_happens_gives_a_notice_with_a_link(browser: Browser, site: Site) -> None:
    """UI-2, UI-4: a killed process, locks as one, an alert, and a question whose text stays text."""
    with away(browser, site) as (page, complaints):
        crash(site, "eve")
        crashed = toast(page, "An agent crashed")
        expect(crashed).to_contain_text("eve died")
        expect(crashed.get_by_role("link", name="Look")).to_have_attribute("href", "/agent/s-eve")
        expect(page.locator("[aria-live=assertive]")).to_contain_text("eve died")
        steal(site, "name:one", "name:two")
        lost = toast(page, "2 locks were lost")
        expect(lost).to_contain_text("stolen, to dan")
        expect(lost.get_by_role("link", name="Look")).to_have_attribute("href", "/locks")
        steal(site, "name:three")
        expect(toast(page, "3 locks were lost")).to_have_count(1)
        alarm(site)
        expect(toast(page, "Alert")).to_contain_text("97 % full")
        question = ask(site, HOSTILE)
        asked = page.get_by_role("status").locator(".toast").filter(has_text="An agent asks")
        expect(asked).to_contain_text('<img src=x onerror="window.ran=1">⟨202e⟩')
        expect(page).to_have_title("(3) Now · coord")
        hold_up(site, Mode.PAUSED)
        expect(toast(page, "All agents are held up")).to_contain_text("lunch")
        expect(page.locator(".toast")).to_have_count(4)
        expect(crashed).to_have_count(0)
        hold_up(site, Mode.ON)
        send(site, site.token(Role.ADMIN), f"/v1/questions/{question}/answer", answer="no", session="ida")
        expect(asked).to_have_count(0)
        assert set(titles(page)) == {"3 locks were lost", "Alert"}
        assert page.evaluate("window.ran") is None
        assert complaints == []


def test_nothing_moves_under_a_pointer_or_the_focus(browser: Browser, site: Site) -> None:
    """The keyboard reaches a notice, and its time stands still there; what comes meanwhile waits."""
    with away(browser, site, reduced_motion="reduce") as (page, complaints):
        page.clock.install()
        ask(site)
        steal(site, "name:one")
        expect(page.locator(".toast")).to_have_count(2)
        page.keyboard.press("n")
        page.evaluate("look(false)")
        dismiss = toast(page, "A lock was lost").get_by_role("button", name="Dismiss")
        expect(dismiss).to_be_focused()
        place = dismiss.bounding_box()
        hold_up(site, Mode.PAUSED)
        page.evaluate(COMING, "notice held")
        page.clock.run_for(LONG_MS)
        assert set(titles(page)) == {"An agent asks", "A lock was lost"}
        assert dismiss.bounding_box() == place
        page.keyboard.press("Escape")
        expect(toast(page, "An agent asks").get_by_role("button", name="Dismiss")).to_be_focused()
        page.evaluate("look(true)")
        page.keyboard.press("Enter")
        expect(page.get_by_role("main")).to_be_focused()
        held = toast(page, "All agents are held up")
        held.hover()
        page.evaluate("look(false)")
        page.clock.run_for(LONG_MS)
        assert titles(page) == ["All agents are held up"]
        page.get_by_role("navigation").hover()
        page.clock.run_for(LONG_MS)
        expect(held).to_have_count(0)
        hold_up(site, Mode.ON)
        assert grave(complaints) == []


def test_own_acts_and_a_reload_give_no_notice(
    browser: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a reload the stream brings what a kept snapshot has not; that is the past."""
    monkeypatch.setattr(page_endpoint, "SHARED_S", 3_600.0)
    with away(browser, site) as (page, complaints):
        page.get_by_role("button", name="Pause all").click()
        page.get_by_label("Reason").fill("mine")
        page.get_by_role("dialog").get_by_role("button", name="Pause all").click()
        expect(page.get_by_text("All agents are paused")).to_be_visible()
        ask(site)
        expect(toast(page, "An agent asks")).to_be_visible()
        assert titles(page) == ["Paused", "An agent asks"]
        page.reload()
        live(page)
        page.evaluate("look(true)")
        expect(page.get_by_text("All agents are paused")).to_be_visible()
        hold_up(site, Mode.ON)
        hold_up(site, Mode.DRAINING)
        expect(toast(page, "All agents are held up")).to_be_visible()
        assert titles(page) == ["All agents are held up"]
        hold_up(site, Mode.ON)
        assert complaints == []


def settings(page: Page) -> Locator:
    go(page, "/settings")
    return page.get_by_role("region", name="Notices")


def turn_on(page: Page, site: Site) -> None:
    """Turn notifications on, as a reader does, in a browser that allows them."""
    page.context.grant_permissions(["notifications"], origin=f"http://{site.address}")
    settings(page).get_by_role("button", name="Turn on notifications").click()
    expect(page.get_by_role("button", name="Turn off notifications")).to_be_visible()
    assert page.evaluate(TOLD)[-1][0] == "Notifications are on"
    page.evaluate("window.told.length = 0")


def test_a_notification_comes_if_nobody_looks(browser: Browser, site: Site) -> None:
    """Only after somebody turned it on, and a click leads to the thing."""
    with away(browser, site) as (page, complaints):
        page.context.grant_permissions(["notifications"], origin=f"http://{site.address}")
        ask(site)
        expect(toast(page, "An agent asks")).to_be_visible()
        assert page.evaluate(TOLD) == [], "nobody turned it on"
        turn_on(page, site)
        steal(site, "name:one")
        expect(toast(page, "A lock was lost")).to_be_visible()
        ((title, body, tag),) = page.evaluate(TOLD)
        assert (title, tag) == ("A lock was lost", "coord lost name:one s-cleo")
        assert body.startswith("cleo lost name:one: stolen, to dan")
        hold_up(site, Mode.STOPPED)
        expect(toast(page, "All agents are held up")).to_be_visible()
        hold_up(site, Mode.ON)
        expect(toast(page, "All agents are held up")).to_have_count(0)
        assert page.evaluate("window.ended.includes(window.told[1].made)"), "it is over"
        page.evaluate("look(false)")
        hold_up(site, Mode.PAUSED)
        expect(toast(page, "All agents are held up")).to_be_visible()
        assert len(page.evaluate(TOLD)) == 2, "somebody looks"
        page.evaluate("window.told[0].made.dispatchEvent(new Event('click'))")
        expect(page).to_have_url(f"http://{site.address}/locks?on=name%3Aone")
        hold_up(site, Mode.ON)
        assert complaints == []


def test_of_two_pages_the_one_last_looked_at_notifies(browser: Browser, site: Site) -> None:
    with away(browser, site) as (page, complaints):
        other = page.context.new_page()
        other.add_init_script(BROWSER)
        other.goto(f"http://{site.address}/plan")
        live(other)
        other.evaluate("look(true)")
        turn_on(page, site)
        counts = []
        for number, looked_at in enumerate((page, other)):
            looked_at.evaluate("look(false)")
            looked_at.evaluate(LEADS)
            looked_at.evaluate("look(true)")
            ask(site, f"Number {number}?")
            for each in (page, other):
                expect(each.locator(".toast").filter(has_text=f"Number {number}?")).to_be_visible()
            counts.append((len(page.evaluate(TOLD)), len(other.evaluate(TOLD))))
        assert counts == [(1, 0), (1, 1)]
        other.close()
        page.evaluate(LEADS)
        ask(site, "Number 2?")
        expect(page.locator(".toast").filter(has_text="Number 2?")).to_be_visible()
        assert len(page.evaluate(TOLD)) == 2
        assert complaints == []


def test_quiet_hours_hold_notifications_back(browser: Browser, site: Site) -> None:
    """Toasts come all the same, and one notification afterwards says what there was."""
    with away(browser, site, timezone_id="Europe/Berlin") as (page, complaints):
        turn_on(page, site)
        chosen = settings(page)
        chosen.get_by_label("Quiet hours").check()
        chosen.get_by_label("From").fill("21:00")
        chosen.get_by_label("Until").fill("06:00")
        page.clock.install(time="2026-01-05T22:30:00Z")
        page.reload()
        live(page)
        page.evaluate("look(true)")
        ask(site)
        steal(site, "name:one", "name:two")
        expect(toast(page, "An agent asks")).to_be_visible()
        expect(toast(page, "2 locks were lost")).to_be_visible()
        assert page.evaluate(TOLD) == []
        page.clock.fast_forward("06:00:00")
        assert page.evaluate(TOLD) == []
        page.clock.fast_forward("01:00:00")
        ((title, body, _),) = page.evaluate(TOLD)
        assert title == "While it was quiet"
        assert set(body.split(" · ")) == {"An agent asks", "2 locks were lost"}
        assert grave(complaints) == []


def test_a_browser_without_notifications_says_so(browser: Browser, site: Site) -> None:
    """One that asks and gets no; one that has none; and a page that came over plain http from elsewhere."""
    with visit(browser, site) as (page, complaints):
        settings(page).get_by_role("button", name="Turn on notifications").click()
        for script, words in (
            ("", "This browser blocks notifications"),
            ("delete window.Notification", "This browser has no notifications of pages"),
            (
                "Object.defineProperty(window, 'isSecureContext', {value: false})",
                "only over https, or from 127.0.0.1",
            ),
        ):
            page.evaluate(script)
            page.get_by_label("Quiet hours").click()
            expect(page.get_by_role("region", name="Notices")).to_contain_text(words)
            assert page.get_by_role("button", name="Turn on notifications").count() == 0
        assert complaints == []


def test_everybody_can_read_notices(browser: Browser, site: Site) -> None:
    script = axe_script()
    if not script:
        pytest.skip("axe-core is not installed: tools/setup agents")
    with away(browser, site, reduced_motion="reduce") as (page, complaints):
        page.evaluate(script)
        ask(site)
        steal(site, "name:one")
        hold_up(site, Mode.PAUSED)
        expect(page.locator(".toast")).to_have_count(3)
        assert page.evaluate("document.getAnimations().length") == 0
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            assert problems(page) == []
        settings(page).get_by_label("Quiet hours").check()
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            assert problems(page) == []
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        hold_up(site, Mode.ON)
        assert complaints == []
