"""The settings of a real repository in a real browser: the slider, the rules, tokens, and who only looks."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.hub.browsing import PATIENCE_MS, Place, hub_with_page, logged_in

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with hub_with_page(tmp_path_factory.mktemp("settings")) as found:
        found.coord("init", "--yes")
        yield found


def show(page: Page, place: Place, path: str = "/settings") -> None:
    page.goto(f"{place.hub.url}{path}")
    page.get_by_role("heading", name="Settings").wait_for()


def value_of(place: Place, name: str) -> object:
    found = place.coord("limits", "show")
    return {each["name"]: each["value"] for each in found["settings"]}[name]


def confirm(page: Page, command: str) -> None:
    """Read the command of the open act, do it, and wait until it is over."""
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(command)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)


def test_the_slider_limits_the_agents_of_a_project_at_once(browser: Browser, place: Place) -> None:
    """UI-1, SUP-2: from 1 to 20, at runtime, by keyboard; the next agent is refused, and undo lets it in."""
    with logged_in(browser, place) as (page, complaints), logged_in(browser, place, "view") as (other, _):
        for each in (page, other):
            show(each, place)
        slider = page.get_by_role("slider", name="Agents at most")
        assert (slider.get_attribute("min"), slider.get_attribute("max")) == ("1", "20")
        slider.focus()
        page.keyboard.press("Home")
        page.get_by_role("button", name="Set to 1").press("Enter")
        confirm(page, "limits set max_agents=1")
        expect(other.get_by_role("region", name="Agents", exact=True)).to_contain_text("1 at most")
        assert value_of(place, "max_agents") == 1
        place.coord("register", agent="ada")
        refused = place.run("register", COORD_SESSION_ID="s-bob", COORD_AGENT="bob")
        assert (refused.returncode, "max_agents" in refused.stderr) == (1, True)
        page.get_by_role("button", name="Undo").press("Enter")
        confirm(page, "limits set max_agents=default")
        expect(other.get_by_role("region", name="Agents", exact=True)).to_contain_text("no limit")
        place.coord("register", agent="bob")
        assert complaints == []


def test_a_rule_is_changed_within_its_range_and_reset(browser: Browser, place: Place) -> None:
    with logged_in(browser, place) as (page, complaints):
        show(page, place, "/settings?q=hung")
        row = page.get_by_role("listitem").filter(has_text="silent for this time is hung")
        expect(page.get_by_role("region", name="Rules").get_by_role("listitem")).to_have_count(1)
        row.get_by_role("button", name="Change…").click()
        page.get_by_role("spinbutton").fill("10")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_be_visible()
        assert page.evaluate("document.querySelector('dialog input').validity.rangeUnderflow") is True
        page.get_by_role("spinbutton").fill("200")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("suspect comes first and hung last")
        page.get_by_role("spinbutton").fill("1200")
        confirm(page, "coord limits set hung_seconds=1200")
        expect(row).to_contain_text("20m")
        row.get_by_role("button", name="Reset").click()
        confirm(page, "coord limits set hung_seconds=default")
        expect(row).to_contain_text("10m")
        assert [each for each in complaints if "400" not in each] == []


def test_a_token_is_shown_once_works_and_is_revoked(browser: Browser, place: Place) -> None:
    with logged_in(browser, place) as (page, complaints):
        show(page, place)
        page.get_by_role("button", name="New token").click()
        page.get_by_label("What it is for").fill("a script <b>")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("Copy it now")
        text = page.get_by_role("dialog").locator("code").inner_text()
        page.get_by_role("button", name="Close").last.click()
        row = (
            page.get_by_role("region", name="Tokens").get_by_role("listitem").filter(has_text="a script <b>")
        )
        expect(row).to_contain_text("may look")
        assert text not in page.content()

        def asks() -> int:
            request = urllib.request.Request(f"{place.hub.url}/v1/locks")
            request.add_header("Authorization", f"Bearer {text}")
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_MS / 1000) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as refused:
                return int(refused.code)

        assert asks() == 200
        row.get_by_role("button", name="Revoke").click()
        confirm(page, "coord token revoke")
        expect(row).to_have_count(0)
        assert asks() == 401
        expect(page.get_by_role("region", name="Changes")).to_contain_text("was revoked")
        assert complaints == []


def test_what_is_set_up_is_shown_with_the_next_step(browser: Browser, place: Place) -> None:
    """Hooks as doctor finds them, mirrors, reactions with their problems; looking again asks again."""
    with logged_in(browser, place, "view") as (page, complaints):
        show(page, place)
        hooks = page.get_by_role("region", name="Hooks")
        expect(hooks).to_contain_text("files are as coord init wrote them")
        expect(page.get_by_role("region", name="Mirrors")).to_contain_text("coord mirror on contract")
        expect(page.get_by_role("region", name="Reactions")).to_contain_text("coord.toml")
        (place.repository / ".gemini/settings.json").write_text("{}")
        place.coord("mirror", "on", "contract")
        page.get_by_role("region", name="Mirrors").get_by_role("button", name="Look again").click()
        expect(page.get_by_role("region", name="Mirrors")).to_contain_text("coord mirror off contract")
        expect(page.get_by_role("region", name="Followers")).to_contain_text("metrics")
        with page.expect_response(re.compile("/v1/hooks")):
            hooks.get_by_role("button", name="Look again").click()
        assert page.locator("main [data-act]").count() == 0
        expect(page.get_by_role("slider")).to_be_disabled()
        assert complaints == []
    found = json.loads(place.run("doctor").stdout)["checks"]
    assert [each["state"] for each in found if each["check"] == "hooks"] == ["bad"]
    place.coord("doctor", "--fix")
    place.coord("mirror", "off", "contract")


def test_the_past_shows_what_had_been_changed_by_then(browser: Browser, place: Place) -> None:
    place.coord("limits", "set", "stale_seconds=400")
    before = place.coord("log", "tail", "-n", "1")["head"]
    place.coord("limits", "set", "stale_seconds=450")
    with logged_in(browser, place) as (page, complaints):
        show(page, place, f"/settings?at={before}")
        changes = page.get_by_role("region", name="Changes")
        expect(changes).to_contain_text("stale_seconds 400")
        expect(changes).not_to_contain_text("450")
        page.get_by_role("button", name="Back to live").click()
        expect(changes).to_contain_text("stale_seconds 450")
        assert complaints == []
