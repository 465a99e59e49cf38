"""The page of a real hub in a real browser: live, by keyboard, on a phone, and without its hub."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.hub.browsing import PATIENCE_MS, Place, hub_with_page, logged_in
from tests.support.hub.process import serving

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
HOSTILE = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>\u202e${1}'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with hub_with_page(tmp_path_factory.mktemp("page")) as found:
        yield found


def test_a_lock_that_a_process_takes_appears_without_reload(browser: Browser, place: Place) -> None:
    """The way of a commit to the reader: store, stream, rules, list; and back when it is released."""
    with logged_in(browser, place) as (page, complaints):
        page.evaluate("window.sameDocument = true")
        page.keyboard.press("g")
        page.keyboard.press("l")
        expect(page.get_by_role("heading", name="Nothing is locked")).to_be_visible()
        place.coord("lock", "src/app.py", "--no-wait", agent="ada")
        row = page.get_by_role("button", name=re.compile("app.py"))
        expect(row).to_contain_text("ada")
        row.click()
        expect(page.get_by_role("complementary")).to_contain_text("Fence")
        place.coord("unlock", "src/app.py", agent="ada")
        expect(row).to_have_count(0)
        assert page.evaluate("window.sameDocument") is True
        assert complaints == []


def test_a_question_is_answered_on_the_page(browser: Browser, place: Place) -> None:
    """The button shows its command, and the agent reads the answer."""
    asked = place.coord("ask", HOSTILE, "--options", "yes,no", agent="bob")["question"]["id"]
    with logged_in(browser, place, "operate") as (page, complaints):
        card = page.get_by_role("article").filter(has_text="bob asks")
        expect(card).to_contain_text("<img src=x")
        expect(card).to_contain_text("⟨202e⟩")
        card.get_by_role("button", name="yes").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text(f"coord decide {asked} yes")
        dialog.get_by_label("Reason").fill("because")
        expect(dialog).to_contain_text("--reason because")
        dialog.get_by_role("button", name="Answer").click()
        expect(card).to_have_count(0)
        expect(page.get_by_role("status")).to_contain_text("Answered")
        assert page.evaluate("window.ran") is None
        assert complaints == []
    answered = place.coord("decisions", "--all", agent="bob")["decisions"]
    assert [(each["answer"], each["reason"]) for each in answered if each["id"] == asked] == [
        ("yes", "because")
    ]


def test_who_may_only_look_gets_no_button_that_acts(browser: Browser, place: Place) -> None:
    asked = place.coord("ask", "Proceed?", "--options", "sure", agent="eve")["question"]["id"]
    with logged_in(browser, place, "view") as (page, complaints):
        card = page.get_by_role("article").filter(has_text="eve asks")
        expect(card).to_contain_text("Proceed?")
        assert card.get_by_role("button").count() == 0
        assert complaints == []
    place.coord("decide", asked, "sure")


def test_a_lock_is_released_on_the_page(browser: Browser, place: Place) -> None:
    """The holder loses it by its fence, with the reason, and no session of the page stays behind."""
    place.coord("lock", "name:deploy", "--no-wait", agent="gus")
    with logged_in(browser, place) as (page, complaints):
        page.goto(f"{place.hub.url}/locks?on=name%3Adeploy")
        page.get_by_role("button", name="Release").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Reason").fill("it hangs")
        dialog.get_by_role("button", name="Release").click()
        expect(page.get_by_text("Nobody holds it.")).to_be_visible()
        page.get_by_role("button", name="Refresh").click()
        expect(page.get_by_role("complementary")).to_contain_text("stolen")
        page.goto(f"{place.hub.url}/now")
        expect(page.get_by_role("link", name=re.compile("page-"))).to_have_count(0)
        assert complaints == []
    assert place.coord("locks")["locks"] == []


def test_the_keyboard_reaches_everything(browser: Browser, place: Place) -> None:
    with logged_in(browser, place) as (page, complaints):
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Jump to an agent")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press(":")
        page.keyboard.type("locks")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{place.hub.url}/locks")
        page.keyboard.press("/")
        page.keyboard.type("nothing like this")
        expect(page).to_have_url(re.compile("q=nothing"))
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        expect(page).to_have_url(f"{place.hub.url}/locks")
        page.keyboard.press("Escape")
        expect(page).to_have_url(f"{place.hub.url}/")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        assert page.url == f"{place.hub.url}/", "escape never leaves the page"
        assert complaints == []


def test_a_reader_without_a_cookie_is_told_how_to_log_in(browser: Browser, place: Place) -> None:
    with closing(browser.new_context()) as context, closing(context.new_page()) as page:
        page.goto(f"{place.hub.url}/locks")
        expect(page.get_by_text("coord open", exact=True).first).to_be_visible()
        assert page.get_by_role("navigation").count() == 0


def test_the_past_is_shown_and_cannot_be_changed(browser: Browser, place: Place) -> None:
    taken = place.coord("lock", "src/old.py", "--no-wait", agent="ivy")
    fence = taken["locks"][0]["fence"]
    place.coord("unlock", "src/old.py", agent="ivy")
    with logged_in(browser, place) as (page, complaints):
        page.goto(f"{place.hub.url}/locks?at={fence}&on=file%3Asrc%2Fold.py")
        expect(page.get_by_role("button", name=re.compile("old.py"))).to_contain_text("ivy")
        assert page.get_by_role("button", name="Release").count() == 0
        page.get_by_role("button", name="Back to live").click()
        expect(page.get_by_role("button", name=re.compile("old.py"))).to_have_count(0)
        assert complaints == []


def requests_of(page: Page) -> list[str]:
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url))
    return found


def test_the_page_outlives_its_hub(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It keeps what it has, says so, and goes on with the next hub at the same address."""
    with hub_with_page(tmp_path_factory.mktemp("restart")) as place, logged_in(browser, place) as (page, _):
        place.coord("lock", "name:one", "--no-wait", agent="ada")
        expect(page.get_by_role("link", name=re.compile("ada"))).to_be_visible()
        address = place.hub.url.removeprefix("http://")
        place.hub.stop()
        expect(page.get_by_role("alert")).to_contain_text("The hub does not answer")
        expect(page.get_by_role("link", name=re.compile("ada"))).to_be_visible()
        page.keyboard.press(":")
        page.keyboard.type("write a message")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Subject").fill("only once")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("the hub does not answer")
        asked = requests_of(page)
        with serving(place.repository, place.environ, listen=address):
            page.get_by_text("Live", exact=True).wait_for()
            assert {url.partition("?")[0].rpartition("/")[2] for url in asked} == {"page"}
            dialog.get_by_role("button", name="Try again").click()
            expect(dialog).to_have_count(0)
            subjects = [each["subject"] for each in place.coord("recv", "--peek", agent="ada")["messages"]]
            assert subjects.count("only once") == 1
            place.coord("lock", "name:two", "--no-wait", agent="bob")
            expect(page.get_by_role("link", name=re.compile("bob"))).to_be_visible()


def test_it_fits_a_phone_in_every_theme(browser: Browser, place: Place) -> None:
    """Nothing is wider than the screen, and the theme is what the reader chose."""
    place.coord(
        "lock",
        "src/a/very/long/path/to/some/file/that/has/a/name.py",
        "--no-wait",
        agent="zed",
    )
    with logged_in(browser, place, viewport={"width": 360, "height": 740}) as (page, complaints):
        for path in ("/now", "/locks", "/locks?on=file%3Asrc"):
            page.goto(f"{place.hub.url}{path}")
            expect(page.get_by_role("main")).to_contain_text("zed")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        grounds = set()
        for _ in range(4):
            page.keyboard.press("t")
            grounds.add(page.evaluate("document.documentElement.dataset.theme"))
        assert grounds == {"auto", "light", "dark", "contrast"}
        assert complaints == []
    place.coord("unlock", "--all", agent="zed")
