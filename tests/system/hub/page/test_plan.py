"""Plan, the page of a task, and Why, of a real hub in a real browser."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.hub.browsing import PATIENCE_MS, Place, hub_with_page, logged_in

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
TASKS: list[dict[str, Any]] = [
    {"id": "A-1", "description": "Tables of the shop", "track": "A", "estimate": "30m"},
    {
        "id": "A-2",
        "description": "Login form",
        "track": "A",
        "depends_on": ["A-1"],
        "files": ["src/login.py"],
    },
    {"id": "A-3", "description": "Session <script>x</script>", "track": "A", "depends_on": ["A-2"]},
    {"id": "B-1", "description": "Search index", "track": "B", "depends_on": ["A-1"]},
    {"id": "B-2", "description": "Search page", "track": "B", "depends_on": ["B-1", "A-2"]},
    {"id": "C-1", "description": "Write the manual"},
]


EDGES = [(one, task["id"]) for task in TASKS for one in task.get("depends_on", ())]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with hub_with_page(tmp_path_factory.mktemp("plan")) as found:
        plan = Path(found.repository, "plan.json")
        plan.write_text(json.dumps({"project": "shop", "tasks": TASKS}))
        found.coord("plan", "load", "plan.json")
        yield found


def test_plan_task_and_why_follow_the_log(browser: Browser, place: Place) -> None:
    """Lanes with dependencies, then live: a claim, a question, what it holds up, and what frees it."""
    with logged_in(browser, place) as (page, complaints):
        page.keyboard.press("g")
        page.keyboard.press("p")
        nodes = page.locator("coord-plan .node")
        expect(nodes).to_have_count(len(TASKS))
        paths = page.locator("coord-plan .edges path").all()
        assert sum((path.get_attribute("d") or "").count("M") for path in paths) == len(EDGES)
        expect(page.get_by_role("region", name="Track A")).to_contain_text("0 of 3 tasks")
        expect(page.get_by_role("button", name="Critical path: 3 tasks")).to_be_visible()
        place.coord("task", "claim", "A-1", agent="ada")
        expect(page.get_by_role("link", name=re.compile(r"^A-1 .*: in progress"))).to_be_visible()
        place.coord("task", "add", "C-2", "--depends-on", "C-1", agent="ada")
        expect(nodes).to_have_count(len(TASKS) + 1)
        page.keyboard.press("v")
        expect(page.get_by_role("region", name="In progress")).to_contain_text("ada")
        page.get_by_role("link", name="A-3").click()
        expect(page.get_by_role("heading", name="A-3")).to_be_visible()
        expect(page.get_by_role("region", name="Specification")).to_contain_text("<script>x</script>")
        asked = place.coord("ask", "Which database?", agent="ada")["question"]["id"]
        page.get_by_role("link", name="Why?").click()
        chain = page.get_by_role("region", name="The chain of reasons")
        expect(chain).to_contain_text("A-3 waits for other tasks")
        expect(chain).to_contain_text("ada works on A-1, generation 1")
        expect(chain).to_contain_text('ada asks a person: "Which database?"')
        expect(page.get_by_role("region", name="What frees it")).to_contain_text(
            f"coord decide {asked} ANSWER"
        )
        place.coord("withdraw", asked, agent="ada")
        expect(chain).not_to_contain_text("Which database?")
        expect(page.get_by_text("Nobody has to do anything")).to_be_visible()
        place.coord("task", "done", "A-1", agent="ada")
        expect(chain).to_contain_text("A-2, which is ready")
        page.set_viewport_size({"width": 360, "height": 400})
        page.goto(f"{place.hub.url}/plan?shape=lanes")
        far = page.get_by_role("link", name=re.compile("^A-3 "))
        expect(nodes.first).to_be_visible()
        expect(far).not_to_be_in_viewport()
        page.get_by_label("Filter tasks").fill("A-3")
        expect(far).to_be_in_viewport()
        assert page.evaluate("document.querySelector('main script')") is None
        assert complaints == []


def test_locks_agents_and_claims_are_explained(browser: Browser, place: Place) -> None:
    """A lock and a session have their chains, and a task its generations with the zombie that was refused."""
    place.coord("task", "claim", "C-1", "--lease", "1h", agent="bob")
    place.coord("task", "reset", "C-1", "--reason", "wrong", agent="eve")
    late = {"COORD_SESSION_ID": "s-bob", "COORD_AGENT": "bob"}
    assert place.run("task", "submit", "C-1", "1", "--result", "{}", **late).returncode == 1
    place.coord("lock", "src/app.py", "--no-wait", "--reason", "rework", agent="bob")
    with logged_in(browser, place, "view", viewport={"width": 360, "height": 760}) as (page, complaints):
        page.goto(f"{place.hub.url}/task/shop/C-1")
        claims = page.get_by_role("region", name="Claims")
        expect(claims).to_contain_text("bob")
        expect(claims.locator(".lines")).to_contain_text("result of generation 1")
        expect(page.get_by_role("button", name="Skip")).to_have_count(0)
        page.goto(f"{place.hub.url}/why/lock/file%3Asrc%2Fapp.py")
        expect(page.get_by_role("region", name="The chain of reasons")).to_contain_text(
            "bob holds src/app.py (write, fence"
        )
        expect(page.get_by_role("region", name="What frees it")).to_contain_text(
            "coord preempt file:src/app.py"
        )
        page.goto(f"{place.hub.url}/why/agent/s-bob")
        expect(page.get_by_text("bob is idle")).to_be_visible()
        page.goto(f"{place.hub.url}/why/task/shop/nothing")
        expect(page.get_by_role("alert")).to_contain_text("no task nothing")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert [each for each in complaints if "404" not in each] == []
