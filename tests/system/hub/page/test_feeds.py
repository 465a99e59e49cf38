"""Activity, messages, merges, alerts and numbers of a real hub in a real browser."""

import json
import re
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from tests.support.git_folders import git
from tests.support.hub.axe import axe_script, problems
from tests.support.hub.browsing import PATIENCE_MS, Place, hub_with_page, logged_in
from tests.support.hub.page_site import go, show

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
HOSTILE = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>'
HOSTILE_FILE = "<img src=x onerror=window.ran=1>.py"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A hub with a message, a lock, a branch that was refused, and one that nobody has merged yet."""
    with hub_with_page(tmp_path_factory.mktemp("feeds")) as found:
        found.coord("lock", "src/app.py", "--no-wait", agent="ada")
        found.coord("register", agent="bob")
        found.coord("send", "s-bob", "request", HOSTILE, "--body", HOSTILE * 20, agent="ada")
        for branch, name in (("later", "later.py"), ("feature", HOSTILE_FILE)):
            git(found.repository, "checkout", "-q", "-b", branch, "main")
            (found.repository / name).write_text(HOSTILE)
            git(found.repository, "add", name)
            git(found.repository, "commit", "-qm", "new", "--no-verify")
        git(found.repository, "checkout", "-q", "main")
        refused = found.run("merge", "feature", COORD_SESSION_ID="s-ada", COORD_AGENT="ada")
        assert "had not locked" in refused.stderr
        yield found


def test_every_view_shows_what_happened_and_runs_no_foreign_script(browser: Browser, place: Place) -> None:
    """One visit: a live sentence, a raw entry, a text that stays unread, a diff, and charts with a table."""
    with logged_in(browser, place, "operate") as (page, complaints):
        page.goto(f"{place.hub.url}/activity")
        locked = page.get_by_role("group", name=re.compile("ada locked .*app.py"))
        expect(locked).to_be_visible()
        place.coord("lock", "src/b.py", "--no-wait", agent="bob")
        expect(page.get_by_role("group", name=re.compile("bob locked .*b.py"))).to_be_visible()
        locked.click()
        expect(page.get_by_role("dialog")).to_contain_text('"event": "lock.acquired"')
        page.keyboard.press("Escape")
        page.get_by_label("Kind").select_option("message")
        expect(page).to_have_url(re.compile("kind=message"))
        expect(locked).to_have_count(0)
        expect(page.get_by_role("group", name=re.compile("ada wrote to bob"))).to_be_visible()
        page.goto(f"{place.hub.url}/activity?shape=lanes")
        expect(page.get_by_role("img", name=re.compile("ada: .*lock"))).to_be_visible()
        page.goto(f"{place.hub.url}/messages")
        letter = page.get_by_role("article").filter(has_text="request")
        expect(letter).to_contain_text("<img src=x")
        letter.get_by_role("button", name="Show all of it").click()
        page.goto(f"{place.hub.url}/merges")
        page.get_by_role("button", name="Diff").first.click()
        expect(page.get_by_role("complementary", name="Diff")).to_contain_text(HOSTILE_FILE)
        expect(page.get_by_role("complementary", name="Diff")).to_contain_text("<script>")
        if script := axe_script():
            page.evaluate(script)
            for theme in THEMES:
                page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                assert problems(page) == []
        place.coord("lock", "name:pr-merge-queue", "--no-wait", agent="bob")
        expect(page.get_by_role("region", name="Queue")).to_contain_text("bob merges now")
        place.coord("unlock", "name:pr-merge-queue", agent="bob")
        expect(page.get_by_role("region", name="Queue")).to_have_count(0)
        page.goto(f"{place.hub.url}/alerts")
        expect(page.get_by_role("heading", name="How often each rule is right")).to_be_visible()
        page.goto(f"{place.hub.url}/numbers")
        expect(page.locator(".u-wrap canvas").first).to_be_visible()
        locks = page.locator(".tiles > div").filter(has_text="denied").locator("b")
        before = int(locks.inner_text())
        assert page.get_by_role("table", name=re.compile("Locks")).get_by_role("row").count() >= 2
        place.coord("lock", "src/c.py", "--no-wait", agent="bob")
        expect(locks).to_have_text(str(before + 1))
        assert page.evaluate("window.ran") is None
        assert complaints == []
    assert HOSTILE in place.coord("recv", "--peek", agent="bob")["messages"][0]["body"]


def test_open_views_follow_real_commands(browser: Browser, place: Place) -> None:
    """Without a reload; what agents and people write stays text in results, requirements and notes, too."""
    place.coord("task", "add", "T-1", "--requirements", json.dumps({HOSTILE: HOSTILE}))
    with logged_in(browser, place, "view") as (page, complaints):
        page.evaluate("window.sameDocument = true")
        show(page, "/messages")
        place.coord("send", "s-bob", "status", "The schema is there", "--body", "Go on", agent="ada")
        letter = page.get_by_role("article").filter(has_text="The schema is there")
        expect(letter).to_contain_text("Go on")
        show(page, "/merges")
        merges = page.get_by_role("article").filter(has_text="later")
        expect(merges).to_have_count(0)
        refused = place.run("merge", "later", COORD_SESSION_ID="s-ada", COORD_AGENT="ada")
        assert refused.returncode == 1
        expect(merges).to_contain_text(re.compile("refused.*had not locked", re.DOTALL))
        place.coord("merge", "later", "--any-file")
        expect(merges.filter(has_text="merged")).to_contain_text("later.py")
        show(page, "/alerts")
        place.coord("update", "--blob", json.dumps({"context_percent": 97}), "--merge-blob", agent="ada")
        past_the_hub = place.run("alerts", COORD_HUB="off")  # which looks every minute, and a command at once
        (alert,) = json.loads(past_the_hub.stdout)["alerts"]
        expect(page.get_by_role("article")).to_contain_text("97 % full")
        place.coord("alerts", "close", alert["id"], "--false", "--note", HOSTILE)
        expect(page.get_by_role("heading", name="All is calm")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="false alarm")).to_contain_text(HOSTILE)
        show(page, "/task/shop/T-1")
        expect(page.get_by_role("region", name="Specification").locator("dt")).to_have_text(HOSTILE)
        expect(page.get_by_role("region", name="Specification").locator("dd")).to_have_text(HOSTILE)
        place.coord("task", "claim", "T-1", agent="ada")
        expect(page.get_by_role("region", name="Claims")).to_contain_text("ada")
        expect(page.locator("main h1 + .chip")).to_have_text("in progress")
        place.coord("task", "submit", "T-1", "--result", json.dumps({HOSTILE: HOSTILE}), agent="ada")
        expect(page.locator("main h1 + .chip")).to_have_text("done")
        expect(page.get_by_role("region", name="Result")).to_contain_text("<img src=x onerror=")
        go(page, "/activity?shape=lanes")
        lane = page.get_by_role("img", name=re.compile("^dan: 0 tasks, 1 lock"))
        expect(lane).to_have_count(0)
        place.coord("lock", "src/d.py", "--no-wait", agent="dan")
        expect(lane).to_be_visible()
        assert page.evaluate("[window.sameDocument, window.ran]") == [True, None]
        assert page.locator("main img, main script").count() == 0
        assert complaints == []


def test_a_person_sees_the_command_of_a_message(browser: Browser, place: Place) -> None:
    with logged_in(browser, place, "operate") as (page, complaints):
        page.goto(f"{place.hub.url}/messages")
        page.get_by_role("button", name="Write", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label(re.compile("^To")).fill("s-ada")
        dialog.get_by_label("Subject").fill("from a person")
        expect(dialog).to_contain_text("coord send s-ada request 'from a person'")
        assert complaints == []


def test_a_viewer_is_offered_no_writing(browser: Browser, place: Place) -> None:
    with logged_in(browser, place, "view", viewport={"width": 360, "height": 740}) as (page, complaints):
        for name in ("activity", "messages", "merges", "alerts", "numbers"):
            page.goto(f"{place.hub.url}/{name}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
        page.goto(f"{place.hub.url}/messages")
        expect(page.get_by_role("button", name=re.compile("ada & bob"))).to_be_visible()
        assert page.get_by_role("button", name="Write", exact=True).count() == 0
        assert complaints == []
