"""Every view at an earlier time: what was there then, nothing later, and words where nothing is known."""

import re
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from coord.core.tokens.schema import Role
from tests.support.hub.browsing import PATIENCE_MS
from tests.support.hub.page_run import STEPS, TIMES, WATCH, Step, addresses, lived, word
from tests.support.hub.page_site import PROJECT, go, send, visit
from tests.support.hub.site import Site, open_site

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def run() -> Iterator[tuple[Site, list[Step]]]:
    with open_site() as site:
        yield site, lived(site)


def to(page: Page, path: str, at: object) -> None:
    go(page, f"{path}{'&' if '?' in path else '?'}at={at}")


def test_no_view_shows_anything_later(browser: Browser, run: tuple[Site, list[Step]]) -> None:
    """Also while another time is on its way, forwards and back, and while entries arrive."""
    site, steps = run
    with visit(browser, site) as (page, complaints):
        for path, _ in addresses(STEPS - 1):
            go(page, path)  # so that the present is known, and could be shown
        for number in (STEPS - 1, 0, 2, 1):
            step = steps[number]
            to(page, "/now", step.offset)
            expect(page.get_by_text(f"(entry {step.offset})")).to_be_visible()
            page.evaluate(WATCH, f"zq[{number + 1}-9]z")
            for path, shown in addresses(number):
                to(page, path, step.offset)
                expect(page.locator("main")).to_contain_text(shown)
                assert max([*page.evaluate(TIMES), 0]) <= step.at, path
            tile = page.locator(".tiles > div").filter(has_text="denied").locator("b")
            to(page, "/numbers", step.offset)
            expect(tile).to_have_text(str(step.locks))
            site.write(1, event="file.edited", session="s-zq9z", agent="zq9z", resource="file:zq9z.py")
            assert page.evaluate("window.seen") == []
        assert complaints == []


def test_a_task_shows_what_it_was(browser: Browser, run: tuple[Site, list[Step]]) -> None:
    site, steps = run
    path = f"/task/{PROJECT}/{word(1)}-task"
    with visit(browser, site) as (page, complaints):
        to(page, path, steps[1].offset)
        claims = page.get_by_role("region", name="Claims")
        expect(claims).to_contain_text("left")
        expect(page.get_by_role("region", name="Specification")).to_contain_text("zq1z description")
        assert page.get_by_role("region", name="Result").count() == 0
        assert page.get_by_role("heading", name="Refused").count() == 0
        to(page, path, steps[2].offset)
        expect(claims).to_contain_text("accepted")
        expect(page.get_by_role("region", name="Result")).to_contain_text("zq2z result")
        to(page, f"/why/task/{PROJECT}%2F{word(1)}-task", steps[1].offset)
        expect(page.get_by_role("status").filter(has_text="zq1z-task was in progress")).to_be_visible()
        expect(page.locator("main")).to_contain_text("zq1z-agent asked: zq1z?")
        assert complaints == []


def test_a_path_has_its_newest_history(browser: Browser, run: tuple[Site, list[Step]]) -> None:
    """Newest first, of what overlaps the path, the earlier ones on demand; and none later than its time."""
    site, token = run[0], run[0].token(Role.ADMIN)
    fences = []
    for number in range(60):
        for resource in ("file:way/a.py", f"file:way/{number}.md"):
            taken = send(site, token, "/v1/locks", session="s-past", resources=[resource])
            send(site, token, "/v1/locks/release", session="s-past", resources=[resource])
            fences.append(taken["locks"][0]["fence"])
    send(site, token, "/v1/locks", session="s-past", resources=["file:way/*.py"])
    send(site, token, "/v1/locks/release", session="s-past", resources=["file:way/*.py"])
    with visit(browser, site) as (page, complaints):
        go(page, "/locks?on=file%3Away%2Fa.py")
        periods = page.get_by_role("complementary").get_by_role("listitem")
        expect(periods).to_have_count(50)
        expect(periods.first).to_contain_text("on way/*.py")
        page.get_by_role("button", name="Earlier ones").click()
        expect(periods).to_have_count(61)
        shown = [int(text.split("fence ")[1].split(",")[0]) for text in periods.all_inner_texts()]
        assert shown == sorted(shown, reverse=True)
        to(page, "/locks?on=file%3Away%2Fa.py", fences[59])
        expect(periods).to_have_count(30)
        page.reload()
        expect(periods).to_have_count(30)
        to(page, "/locks?on=file%3Away%2Fa.py", fences[79])
        page.get_by_role("button", name="Earlier ones").click()
        expect(periods).to_have_count(40)
        go(page, "/locks?on=file%3Away%2F%7B")
        expect(page.get_by_role("complementary")).to_contain_text("write {a,b}")
        assert [each for each in complaints if "400" not in each and "422" not in each] == []


def test_a_log_is_played_to_its_end_while_it_grows(browser: Browser, run: tuple[Site, list[Step]]) -> None:
    site, steps = run
    with visit(browser, site) as (page, complaints):
        to(page, "/activity", steps[0].offset)
        page.get_by_label("Speed").select_option("100")
        page.keyboard.press("p")
        last = site.write(3, session="s-new", agent="new")
        expect(page.get_by_role("button", name="Play (p)")).to_be_visible()
        expect(page.get_by_text(re.compile(rf"^{last} / {last}$"))).to_be_visible()
        expect(page.locator("main")).to_contain_text("zq3z")
        page.keyboard.press("[")
        expect(page.get_by_text(f"{last - 1} / {last}")).to_be_visible()
        page.route("**/v1/events*", lambda route: route.abort())
        page.keyboard.press("]")
        expect(page.locator(".banner")).to_contain_text("It does not go on: the hub does not answer")
        page.unroute("**/v1/events*")
        page.keyboard.press("]")
        expect(page.get_by_text(f"{last} / {last}")).to_be_visible()
        assert "does not go on" not in page.locator(".banner").inner_text()
        assert [each for each in complaints if "ERR_FAILED" not in each] == []


def test_a_shared_link_shows_the_same_moment_in_another_zone(
    browser: Browser, run: tuple[Site, list[Step]]
) -> None:
    """The same entry, view, filter and events; each reader has the times of the own zone."""
    site, steps = run
    path, step = "/activity?q=zq1z&kind=message", steps[2]
    with (
        visit(browser, site, Role.VIEW, timezone_id="Europe/Berlin") as (one, complaints),
        visit(browser, site, Role.VIEW, timezone_id="Asia/Kolkata") as (other, others),
    ):
        one.context.grant_permissions(["clipboard-read", "clipboard-write"])
        to(one, path, step.offset)
        one.get_by_role("button", name="Share").click()
        expect(one.get_by_role("status").get_by_text("Copied")).to_be_visible()
        link = one.evaluate("navigator.clipboard.readText()")
        assert link == f"http://{site.address}{path}&at={step.offset}"
        other.goto(link)
        rows = []
        for page, zone in ((one, "Europe/Berlin"), (other, "Asia/Kolkata")):
            expect(page.locator(".banner")).to_contain_text(f"(entry {step.offset})")
            expect(page.get_by_label("Filter events")).to_have_value("zq1z")
            row = page.get_by_role("group", name=re.compile("zq1z mail"))
            shown = row.locator("time")
            instant = datetime.fromisoformat(shown.get_attribute("datetime") or "")
            assert shown.inner_text() == instant.astimezone(ZoneInfo(zone)).strftime("%H:%M:%S")
            rows.append((instant, row.locator(".said").inner_text()))
        assert rows[0] == rows[1]
        assert complaints == others == []


def test_an_address_without_a_time_is_explained(browser: Browser, run: tuple[Site, list[Step]]) -> None:
    """In another zone, too."""
    site, steps = run
    with visit(browser, site, Role.VIEW, timezone_id="Pacific/Auckland") as (page, complaints):
        banner = page.locator(".banner")
        for garbage in ("abc", "-1", "1.5", "tt", "9" * 30):
            go(page, f"/now?at={garbage}")
            expect(page.get_by_text("This address names no time")).to_be_visible()
        to(page, "/locks", 10**12)
        expect(banner).to_contain_text("It is the newest")
        to(page, "/locks", f"t{steps[1].at}")
        expect(banner).to_contain_text(f"(entry {steps[1].offset})")
        to(page, "/locks", "t1")
        expect(banner).to_contain_text("the beginning (entry 0)")
        to(page, "/locks", f"t{10**14}")
        expect(banner).to_contain_text("You see the state at")
        assert complaints == []


def test_below_what_was_trimmed_the_nearest_state_is_shown(browser: Browser) -> None:
    with open_site() as site, visit(browser, site) as (page, complaints):
        token, log = site.token(Role.ADMIN), site.database.log("local")
        for number in range(20):
            send(site, token, "/v1/locks", session="s-ada", resources=[f"name:{number}"])
        to(page, "/locks", 10)
        expect(page.get_by_text(re.compile("^10 / "))).to_be_visible()
        log.trim(16)
        page.keyboard.press("]")
        banner = page.locator(".banner")
        expect(banner).to_contain_text("It is the earliest that is known")
        first = int(page.get_by_role("slider").get_attribute("min") or "0")
        assert first >= 15
        to(page, "/locks", 3)
        expect(banner).to_contain_text(f"(entry {first})")
        expect(page.locator("main")).to_contain_text("name:9")
        assert [each for each in complaints if "404" not in each] == []


def test_ages_are_those_of_the_time_that_is_shown(browser: Browser, run: tuple[Site, list[Step]]) -> None:
    """Also if the present arrives after the past, as it does whenever the connection is lost."""
    site, steps = run
    held: list[Route] = []
    times = """() => import("/static/core/store.js").then(({liveState, now, shown}) =>
      [liveState().offset, now.value, shown.value.at])"""
    with visit(browser, site) as (page, complaints):
        page.route(re.compile(r"/v1/page$"), lambda route: held.append(route))
        page.goto(f"http://{site.address}/now?at={steps[1].offset}")
        expect(page.locator(".banner")).to_contain_text(f"(entry {steps[1].offset})")
        assert page.evaluate(times) == [0, steps[1].at, steps[1].at]
        held[0].continue_()
        expect(page.get_by_role("heading", name="Agents")).to_be_visible()
        offset, *shown = page.evaluate(times)
        assert (offset > steps[1].offset, shown) == (True, [steps[1].at, steps[1].at])
        assert complaints == []
