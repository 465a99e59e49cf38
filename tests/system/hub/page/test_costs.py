"""Numbers lists what agents, tasks, models and days used; a card of Now has what its agent used."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from coord.core.tokens.schema import Role
from coord.core.usage.commands import RecordUsage, Source, UsageItem
from coord.core.usage.schema import Amounts
from tests.support.hub.page_site import PROJECT, fill, go, visit
from tests.support.hub.site import Site, open_site

pytestmark = pytest.mark.timeout(300)
REPORTED = Amounts(requests=12, input=12_000, output=3_000, cost=1_240_000)
ESTIMATED = Amounts(requests=3, input=52_000, output=9_000, estimated=740_000)
CACHED = Amounts(requests=1, cache_read=9_000, cost=10_000)
UNPRICED = Amounts(requests=1, input=500, unpriced=500)


def report(site: Site, agent: str, model: str, amounts: Amounts) -> None:
    """Let an agent report what it used."""
    item = UsageItem(id=f"{agent}-{model}", source=Source.LOG, model=model, amounts=amounts)
    site.run(RecordUsage(session=f"s-{agent}", tool="claude", items=(item,)))


@pytest.fixture
def site() -> Iterator[Site]:
    """A hub with two agents that reported what they used, one of them without a price."""
    with open_site() as found:
        fill(found)
        report(found, "ada", "opus", REPORTED)
        report(found, "cleo", "own-model", UNPRICED)
        yield found


def test_costs_are_listed_and_follow_the_reports(browser: Browser, site: Site) -> None:
    with visit(browser, site, Role.VIEW, "/now") as (page, complaints):
        report(site, "bob", "gpt", ESTIMATED)
        expect(page.locator(".agent").filter(has_text="bob").get_by_title("Cost")).to_have_text("~$0.74")
        expect(page.locator(".agent").filter(has_text="ada").get_by_title("Cost")).to_have_text("$1.24")
        go(page, "/numbers")
        costs = page.get_by_role("region", name="Costs")
        expect(costs.locator("tbody tr")).to_have_text(
            [
                f"ada {PROJECT}1215K$1.24",
                f"bob {PROJECT}361K~$0.74",
                f"cleo {PROJECT}1500?",
            ]
        )
        expect(costs).to_contain_text("~$1.98+?, 76.5K tokens in all")
        report(site, "ada", "opus-2", REPORTED)
        expect(costs.locator("tbody tr").first).to_contain_text("$2.48")
        report(site, "ada", "opus-3", CACHED)
        expect(costs.locator("tbody tr").first).to_contain_text("$2.49")
        costs.get_by_role("button", name="Task").click()
        expect(costs.get_by_role("link", name="checkout")).to_be_visible()
        page.keyboard.press("/")
        page.keyboard.type("nothing like it")
        expect(costs).to_contain_text("Nothing fits")
        assert complaints == []
