"""Activity, messages, merges, alerts and numbers of a real hub in a real browser."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.git_folders import git
from tests.support.hub.browsing import PATIENCE_MS, Place, hub_with_page, logged_in

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
HOSTILE = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A hub with a message, a lock and a branch that was refused."""
    with hub_with_page(tmp_path_factory.mktemp("feeds")) as found:
        found.coord("lock", "src/app.py", "--no-wait", agent="ada")
        found.coord("register", agent="bob")
        found.coord("send", "s-bob", "request", HOSTILE, "--body", HOSTILE * 20, agent="ada")
        git(found.repository, "checkout", "-q", "-b", "feature")
        (found.repository / "new.py").write_text(HOSTILE)
        git(found.repository, "add", "new.py")
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
        expect(page.get_by_role("complementary", name="Diff")).to_contain_text("new.py")
        expect(page.get_by_role("complementary", name="Diff")).to_contain_text("<script>")
        place.coord("lock", "name:pr-merge-queue", "--no-wait", agent="bob")
        expect(page.get_by_role("region", name="Queue")).to_contain_text("bob merges now")
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
        expect(page.get_by_role("button", name=re.compile("ada"))).to_be_visible()
        assert page.get_by_role("button", name="Write", exact=True).count() == 0
        assert complaints == []
