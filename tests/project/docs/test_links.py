"""Documents lead to each other: no link is dead."""

import re

import pytest

from tests.support.docs.pages import ROOT, anchors_of, links_in, page_names


@pytest.mark.parametrize("page", page_names())
def test_links_resolve(page: str) -> None:
    """Each link within the project leads to a file, and to a heading where it names one."""
    dead = []
    for link in links_in(page):
        target, _, anchor = link.partition("#")
        path = (ROOT / page).parent / target if target else ROOT / page
        if not path.exists() or (anchor and anchor not in anchors_of(str(path.resolve().relative_to(ROOT)))):
            dead.append(link)
    assert dead == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    """A page that nobody links to is a page that nobody finds."""
    reached, waiting = {"README.md"}, ["README.md"]
    while waiting:
        page = waiting.pop()
        for link in links_in(page):
            path = ((ROOT / page).parent / link.partition("#")[0]).resolve()
            name = str(path.relative_to(ROOT))
            if name.endswith(".md") and name not in reached and path.exists():
                reached.add(name)
                waiting.append(name)
    assert set(page_names()) - reached == set()


def test_no_page_quotes_figures_of_speed() -> None:
    """Figures live in docs/performance.md, with what they were measured against; the README links there."""
    assert "docs/performance.md" in links_in("README.md")
    assert not re.search(r"\d[\d,.]* *(claims|submissions|operations)/s", (ROOT / "README.md").read_text())
