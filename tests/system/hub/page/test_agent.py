"""The page of an agent, and what holds all agents up, in a real browser with real processes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.hub.browsing import PATIENCE_MS, Place, hub_with_page, logged_in

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with hub_with_page(tmp_path_factory.mktemp("agent")) as found:
        yield found


def test_an_agent_has_a_page_that_follows_it_and_ends_it(browser: Browser, place: Place) -> None:
    place.coord("lock", "src/app.py", agent="ada")
    with logged_in(browser, place) as (page, complaints):
        page.get_by_role("link", name="ada").first.click()
        expect(page.get_by_role("heading", name="ada")).to_be_visible()
        expect(page.get_by_role("region", name="Locks")).to_contain_text("src/app.py")
        place.coord("lock", "src/b.py", agent="ada")
        expect(page.get_by_role("region", name="Locks")).to_contain_text("src/b.py")
        expect(page.get_by_role("region", name="Newest events")).to_contain_text("src/b.py")
        page.get_by_role("button", name="End session").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Reason").fill("stuck")
        expect(dialog).to_contain_text("coord dereg s-ada --force --reason stuck")
        dialog.get_by_role("button", name="End it").click()
        expect(page.get_by_text("This session has ended")).to_be_visible()
        assert complaints == []
    assert place.coord("locks")["locks"] == []


def test_a_person_pauses_all_agents_and_lets_them_go_on(browser: Browser, place: Place) -> None:
    place.coord("task", "add", "T-1", "--description", "one")
    with logged_in(browser, place) as (page, complaints):
        page.get_by_role("button", name="Pause all").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Reason").fill("red build")
        dialog.get_by_role("button", name="Pause all").click()
        expect(page.get_by_text("All agents are paused")).to_be_visible()
        refused = place.run("task", "claim", "T-1", COORD_SESSION_ID="s-bob", COORD_AGENT="bob")
        assert (refused.returncode, "red build" in refused.stdout + refused.stderr) == (1, True)
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("dialog").get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause all")).to_be_visible()
        assert complaints == []
    assert place.coord("task", "claim", "T-1", agent="bob")["ok"] is True


def test_a_viewer_sees_an_agent_and_no_act(browser: Browser, place: Place) -> None:
    place.coord("lock", "src/c.py", agent="eve")
    with logged_in(browser, place, "view") as (page, complaints):
        page.goto(f"{place.hub.url}/agent/s-eve")
        expect(page.get_by_role("region", name="Locks")).to_contain_text("src/c.py")
        assert page.locator("[data-act]").count() == 0
        page.goto(f"{place.hub.url}/agent/nobody")
        expect(page.get_by_text("There is no such session")).to_be_visible()
        assert complaints == []
