"""Every view: readable for everybody, in every theme; stored text stays text, and viewers only look."""

import os
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from coord.core.tokens.schema import Role
from coord.transports.hub.api.routes import every_endpoint
from tests.support.hub.axe import axe_script, problems, problems_in_themes
from tests.support.hub.browsing import PATIENCE_MS, until
from tests.support.hub.page_acts import NODE, printed_acts
from tests.support.hub.page_events import ADDED, EVERY_EVENT, SAMPLES
from tests.support.hub.page_site import PROJECT, fill, go, show, views, visit
from tests.support.hub.site import Site, open_site

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
ASKED = os.environ.get("COORD_SCREENSHOTS", "")
PICTURES = Path(ASKED or Path(__file__).parents[4] / "build" / "pictures")
PHONE = {"width": 360, "height": 740}
ATTACKS = (
    '<img src=x onerror="window.ran=1">',
    '"><script>window.ran=1</script>',
    "javascript:window.ran=1//${window.ran=1}",
    "<svg/onload=window.ran=1><style>*{display:none}</style>",
)
LONG = "-".join(["a-name-that-somebody-made-of-a-title"] * 3)
LONG_EVENTS: list[dict[str, Any]] = [
    {"event": "session.registered", "session": "s-long", "agent": LONG, "role": LONG, "tool": LONG},
    {
        "event": "task.added",
        "project": PROJECT,
        "task": LONG,
        "title": LONG * 3,
        "track": LONG,
        "priority": 3,
    },
    {"event": "task.claimed", "project": PROJECT, "task": LONG, "session": "s-long", "lease_ms": 60_000},
    {"event": "lock.acquired", "session": "s-long", "resource": f"file:src/{LONG}/{LONG}/שלום/{LONG}.py"},
    {"event": "lock.waiting", "id": "w-long", "session": "s-ada", "resources": [f"file:src/{LONG}"]},
    {"event": "question.asked", "id": "q-long", "session": "s-long", "text": LONG, "options": [LONG, "כן"]},
    {
        "event": "git.merge_refused",
        "session": "s-long",
        "branch": LONG,
        "into": LONG,
        "files": [f"{LONG}/{LONG}"],
    },
    {"event": "message.sent", "id": "m-long", "session": "s-long", "to": ["s-ada"], "subject": LONG},
]
"""Names and paths as long as people and tools make them."""

CLIPPED = """() => [...document.querySelectorAll("main *")].filter((each) => {
  const style = getComputedStyle(each);
  const text = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const hides = ["hidden", "clip"].includes(style.overflowX) && each.scrollWidth > each.clientWidth + 1;
  const cuts = style.textOverflow === "ellipsis" || style.webkitLineClamp !== "none";
  return text && hides && !cuts && style.clipPath === "none";
}).map((each) => each.outerHTML.slice(0, 200))"""
"""Returns texts that end in the middle of a letter."""

UNTITLED = """() => [...document.querySelectorAll("main *")].filter((each) => {
  const style = getComputedStyle(each);
  if (style.textOverflow !== "ellipsis" && style.webkitLineClamp === "none") return false;
  if (each.scrollWidth <= each.clientWidth && each.scrollHeight <= each.clientHeight + 1) return false;
  each.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
  return !each.closest("[title]:not([title=''])");
}).map((each) => each.outerHTML.slice(0, 200))"""
"""Returns texts that are cut and do not show themselves whole when somebody points at them."""

UNMARKED = """() => {
  const ground = getComputedStyle(document.body).backgroundColor;
  return [...document.querySelectorAll(".dot, .swatch, .stacked i, .meter i, .bar i")].filter((each) => {
    const {backgroundColor, borderTopWidth} = getComputedStyle(each);
    return backgroundColor === ground && borderTopWidth === "0px";
  }).map((each) => each.outerHTML);
}"""
"""Returns marks that have the colour of the ground, so that nobody sees them."""

SMALL_TARGETS = "() => axe.run('main', {runOnly: ['target-size'], resultTypes: ['violations']})"
KEPT = (*SAMPLES, "event", "state", "kind", "mode", "severity")
SHAPES = {
    "rows": "/now?shape=rows",
    "board": "/plan?shape=board",
    "lanes": "/activity?shape=lanes",
    "drawer": "/locks?on=name%3Adeploy",
    "thread": "/messages?with=everybody",
    "past": "/now?at=9",
    "empty": "/locks?at=0",
    "gone": "/locks?at=99999",
    "no agent": "/agent/nobody",
    "no task": f"/task/{PROJECT}/nothing",
    "no question": "/why/alert/nothing",
}
"""Other shapes of views, what opens beside them, earlier times, and what is not there."""
ENDINGS = ("ended", "released", "withdrawn", "moved", "answered", "closed")
ACTS = "main [data-act]"
HOLDS = ("Pause all", "Drain", "Emergency stop")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        fill(found)
        yield found


def shoot(page: Page, name: str) -> None:
    """Write a picture of a page: as JPEG, which takes half of the time of PNG."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.jpg", type="jpeg", quality=80)


def shoot_if_asked(page: Page, name: str) -> None:
    """Write a picture that only somebody who looks for something wants to see."""
    if ASKED:
        shoot(page, name)


def begun_events() -> list[dict[str, Any]]:
    """Return every event that the page draws and that ends nothing."""
    return [each for each in EVERY_EVENT if not each["event"].endswith(ENDINGS)]


def test_everybody_can_read_every_view(browser: Browser, site: Site) -> None:
    """In every shape, at earlier times, and with a dialog; light, dark and with high contrast."""
    script = axe_script()
    if not script:
        pytest.skip("axe-core is not installed: tools/setup agents")
    with visit(browser, site, reduced_motion="reduce") as (page, complaints):
        page.evaluate(script)
        page.evaluate(ADDED, begun_events())
        found = {}
        for name, path in {**views(), **SHAPES}.items():
            show(page, path)
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                shoot(page, f"{name}-{theme}")
            found[name] = problems_in_themes(page)
        go(page, "/now")
        found["frame"] = problems_in_themes(page, "nav, header.top")
        page.locator(ACTS).first.click()
        found["act"] = problems_in_themes(page)
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        found["keys"] = problems_in_themes(page)
        assert {name: each for name, each in found.items() if each} == {}
        assert [each for each in complaints if "404" not in each] == []


def test_everybody_can_read_a_phone_in_the_colours_of_the_system(browser: Browser, site: Site) -> None:
    """No view is wider than a phone, and none needs colours of its own."""
    with visit(browser, site, viewport=PHONE) as (page, complaints):
        page.evaluate(axe_script())
        page.evaluate(ADDED, begun_events())
        found = {}
        for name, path in views().items():
            show(page, path)
            shoot(page, f"{name}-phone")
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], name
            boxes = [link.bounding_box() for link in page.locator("nav li a").all()]
            assert all(box and box["x"] + box["width"] <= PHONE["width"] for box in boxes), name
            page.emulate_media(forced_colors="active")
            shoot_if_asked(page, f"{name}-forced-phone")
            found[name] = [*problems(page), *page.evaluate(UNMARKED)]
            page.emulate_media(forced_colors="none")
        assert {name: each for name, each in found.items() if each} == {}
        assert complaints == []


def test_long_names_and_both_directions_fit(browser: Browser, site: Site) -> None:
    """On a phone, a tablet and a desk, and in a page that reads from right to left: nothing leaves the page.

    Numbers have the same digits everywhere, whatever the reader's language is.
    """
    with visit(browser, site, locale="ar-EG") as (page, complaints):
        page.evaluate(axe_script())
        page.evaluate(ADDED, LONG_EVENTS)
        long_views = {
            "rows": "/now?shape=rows",
            "board": "/plan?shape=board",
            "long agent": "/agent/s-long",
            "long task": f"/task/{PROJECT}/{LONG}",
            "lock": f"/locks?on=file:src/{LONG}/{LONG}/שלום/{LONG}.py",
            "lanes": "/activity?shape=lanes",
            "past": "/now?at=9",
        }
        found = {}
        for width, direction in ((360, "ltr"), (768, "rtl"), (1280, "ltr")):
            page.set_viewport_size({"width": width, "height": 740})
            page.evaluate("dir => { document.documentElement.dir = dir; }", direction)
            for name, path in {**views(), **long_views}.items():
                show(page, path)
                key = f"{name} {direction} {width}"
                shoot_if_asked(page, f"long-{key}".replace(" ", "-"))
                wide = page.evaluate("document.documentElement.scrollWidth")
                found[key] = [f"{wide} px wide"] if wide > width else []
                found[key] += page.evaluate(CLIPPED) + page.evaluate(UNTITLED)
                found[key] += re.findall("[٠-٩]+", page.inner_text("main"))
                if (width, direction) == (360, "ltr"):
                    rules = page.evaluate(SMALL_TARGETS)["violations"]
                    found[key] += [each["html"] for rule in rules for each in rule["nodes"]]
        assert {key: each for key, each in found.items() if each} == {}
        assert [each for each in complaints if "404" not in each] == []


def test_a_table_shows_what_every_agent_does(browser: Browser, site: Site) -> None:
    """UI-5, OBS-4: each agent with its state, its task or none, its queue, and its last sign of life."""
    with visit(browser, site, Role.VIEW, "/now?shape=rows") as (page, complaints):
        head = page.locator(".agents .head span").all_inner_texts()
        assert head == ["Agent", "State", "Task", "File", "Queue", "Seen", "Context", "Cost"]
        rows = page.get_by_role("list", name="Agents").get_by_role("listitem")
        for agent, state, task in (
            ("ada", "works", "checkout"),
            ("bob", "asks you", "schema"),
            ("dan", "idle", "(none)"),
        ):
            row = rows.filter(has_text=agent)
            expect(row).to_contain_text(state)
            expect(row).to_contain_text(task)
            expect(row.get_by_title("Tasks that it has besides this one")).to_have_text("0")
            expect(row.locator("time")).to_have_count(1)
        assert complaints == []


def test_an_address_shows_the_same_to_somebody_else(browser: Browser, site: Site) -> None:
    """The shape and what is open are in it; escape closes that, also where it is the first step."""
    host = f"http://{site.address}"
    with visit(browser, site) as (page, complaints):
        page.goto(f"{host}/now?shape=rows")
        expect(page.get_by_role("list", name="Agents")).to_be_visible()
        page.get_by_role("button", name="Cards").click()
        expect(page.get_by_role("list", name="Agents")).to_have_count(0)
        expect(page).to_have_url(f"{host}/now?shape=cards")
        for name in ("now", "locks", "activity", "messages", "merges", "alerts"):
            go(page, f"/{name}?q=nobody")
            expect(page.get_by_role("heading", name=re.compile("(No .* fits|Nothing fits)"))).to_be_visible()
            expect(page.locator("main")).to_contain_text("Press escape")
        page.goto(f"{host}/locks?on=name:deploy&q=cleo")
        expect(page.get_by_role("complementary", name="Details of name:deploy")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page).to_have_url(f"{host}/locks?on=name%3Adeploy")
        page.keyboard.press("Escape")
        expect(page).to_have_url(f"{host}/locks")
        assert complaints == []


def test_no_bar_covers_the_row_that_the_keys_choose(browser: Browser, site: Site) -> None:
    covered = """() => {
      const row = document.activeElement, {x, top, bottom} = row.getBoundingClientRect();
      return [top + 4, bottom - 4].some((y) => !row.contains(document.elementFromPoint(x + 12, y)));
    }"""
    with visit(browser, site, viewport={"width": 360, "height": 500}) as (page, _):
        rows = page.locator("main [data-row]").count()
        found = []
        for key in "j" * rows + "k" * rows:
            page.keyboard.press(key)
            found.append(page.evaluate(covered))
        assert rows > 4
        assert not any(found)


def test_what_somebody_reads_stays_in_its_place(browser: Browser, site: Site) -> None:
    """New events come above it; at the top of the list they are shown."""
    site.write(40)
    top = """() => {
      const {x, y} = document.querySelector("main coord-list").getBoundingClientRect();
      return document.elementFromPoint(x + 200, y + 50).closest(".row")?.innerText;
    }"""
    with visit(browser, site, path="/activity") as (page, _):
        page.get_by_role("listitem").nth(30).wait_for()
        page.locator("main coord-list").evaluate("list => { list.scrollTop = 400; }")
        read = until(page, top)
        loaded = int(page.get_by_text(re.compile(r"^\d+ events loaded")).inner_text().split(" ")[0])
        site.write(3, task="newest")
        expect(page.get_by_text(re.compile(rf"^{loaded + 3} events loaded"))).to_be_visible()
        assert page.evaluate(top) == read
        page.locator("main coord-list").evaluate("list => { list.scrollTop = 0; }")
        until(page, f"() => ({top})()?.includes('newest')")


def hostile(value: Any, attacks: Iterator[str]) -> Any:
    """Return a value with an attack in each of its texts."""
    if isinstance(value, str):
        return f"{value}{next(attacks)}"
    if isinstance(value, list):
        return [hostile(each, attacks) for each in value]
    if isinstance(value, dict):
        return {hostile(key, attacks): hostile(each, attacks) for key, each in value.items()}
    return value


def hostile_events() -> list[dict[str, Any]]:
    """Return every event that the page draws and that ends nothing, with an attack in every text.

    Ids and words that the page looks up are as always in the first half, and attacks too in the second.
    """
    attacks = cycle(ATTACKS)
    return [
        {name: value if name in kept else hostile(value, attacks) for name, value in each.items()}
        for kept in (KEPT, ("event",))
        for each in begun_events()
    ]


def test_stored_text_never_runs(browser: Browser, site: Site) -> None:
    """Every text field of every event that the page draws, in each view and in the list of what is there."""
    with visit(browser, site) as (page, complaints):
        page.evaluate(ADDED, hostile_events())
        shown = ""
        for path in views().values():
            show(page, path)
            shown += page.inner_text("main")
            assert page.locator("main img, main script, main style").count() == 0
        page.keyboard.press(":")
        shown += page.get_by_role("dialog").inner_text()
        assert [attack for attack in ATTACKS if attack not in shown] == []
        assert page.evaluate("window.ran") is None
        assert complaints == []


def acts_of(page: Page) -> list[str]:
    """Return the ids of the acts that have a button; `more` opens a menu."""
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll('{ACTS}')].map(each => each.dataset.act)"
    )
    return [each.removeprefix("many_") for each in found]


def choices_of(page: Page, kind: str = "") -> list[str]:
    """Return the choices of the open menu, those of a kind if it has several, and close it."""
    page.get_by_role("combobox").fill(kind)
    choices = page.get_by_role("option").filter(has=page.get_by_text(kind, exact=True)) if kind else None
    found = (choices or page.get_by_role("option")).locator("bdi").all_inner_texts()
    page.keyboard.press("Escape")
    return found


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_everybody_is_offered_what_the_role_allows(browser: Browser, site: Site) -> None:
    """Viewers nothing, in no view and no list, and operators all but the acts of admins."""
    roles = {each["id"]: each["role"] for each in printed_acts()} | {"more": "operate"}
    with (
        visit(browser, site, Role.VIEW) as (viewer, complaints),
        visit(browser, site, Role.OPERATE) as (operator, others),
        visit(browser, site) as (admin, _),
    ):
        seen: dict[str, set[str]] = {"operate": set(), "admin": set()}
        for name, path in {**views(), "lock": SHAPES["drawer"]}.items():
            for page in (viewer, operator, admin):
                show(page, path)
            assert acts_of(viewer) == [], name
            offered = acts_of(admin)
            assert acts_of(operator) == [each for each in offered if roles[each] == "operate"], name
            for each in offered:
                seen[roles[each]].add(each)
        assert seen["operate"] >= {"answer", "withdraw", "message", "more"}
        assert seen["admin"] >= {
            "release",
            "steal",
            "preempt",
            "pause",
            "end",
            "reset",
            "reassign",
            "set_setting",
        }
        whole = [*HOLDS, "Write a message"]
        for page, wanted in ((viewer, []), (operator, whole[-1:]), (admin, whole)):
            page.keyboard.press(":")
            assert sorted(choices_of(page, "act")) == sorted(wanted)
        for page, wanted in ((operator, ["Message…"]), (admin, ["Message…", "Disable", "End session"])):
            go(page, "/now")
            page.get_by_role("button", name="Act on ada").click()
            assert choices_of(page) == wanted
        assert [each for each in (*complaints, *others) if "403" not in each] == []


def test_the_hub_refuses_every_act_of_a_viewer(browser: Browser, site: Site) -> None:
    """Also one that a page has no button for."""
    refused = """async (routes) => {
      const found = {};
      for (const [method, path] of routes) {
        const headers = {"Content-Type": "application/json"};
        const {status} = await fetch(path, {method, headers, body: method === "DELETE" ? undefined : "{}"});
        found[`${method} ${path}`] = status;
      }
      return found;
    }"""
    acting = [
        (each.method, re.sub(r"{\w+}", "s-ada", each.path))
        for each in every_endpoint()
        if each.method != "GET" and each.role is not Role.VIEW
    ]
    assert len(acting) > 40
    with visit(browser, site, Role.VIEW) as (page, _):
        answers = page.evaluate(refused, acting)
        assert {route: status for route, status in answers.items() if status != 403} == {}
