"""Reading the project's own documents: their code blocks, tables, links and the paths they name."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
TOP_PAGES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"\.?[\w.-]+(/[\w.-]+)*/?")


class Example(NamedTuple):
    """A Python example and what it prints, if the page says so."""

    page: str
    line: int
    code: str
    output: str | None


def page_names() -> list[str]:
    """Every document, by its path from the root."""
    below = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    return [*TOP_PAGES, *below]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page: str) -> str:
    """The page without its code blocks."""
    return _FENCE.sub("", text_of(page))


def examples_in(page: str) -> Iterator[Example]:
    """Yield the Python blocks; an `output` block that follows at once says what one prints."""
    text = text_of(page)
    for block, following in pairwise([*_FENCE.finditer(text), None]):
        if block is None or block[1] != "python":
            continue
        adjoins = following is not None and not text[block.end() : following.start()].strip()
        output = following[2] if following is not None and adjoins and following[1] == "output" else None
        yield Example(page, text.count("\n", 0, block.start()) + 1, block[2], output)


def blocks_in(page: str, language: str) -> list[str]:
    return [block[2] for block in _FENCE.finditer(text_of(page)) if block[1] == language]


def links_in(page: str) -> list[str]:
    """Links to places within the project."""
    found = _LINK.findall(prose_of(page))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors_of(page: str) -> set[str]:
    """The anchors that a page's headings have where such pages are usually shown."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def paths_in(page: str) -> set[str]:
    """What a page names in code spans that looks like a file or folder of the project."""
    spans = _CODE_SPAN.findall(prose_of(page))
    return {
        span
        for span in spans
        if _PATH.fullmatch(span) and "/" in span and (span.endswith("/") or "." in span.rpartition("/")[2])
    }


def rows_of(page: str, heading: str = "") -> list[list[str]]:
    """The cells of a page's table rows, or of those below one heading, without the head of each table."""
    text = text_of(page)
    if heading:
        _, found, text = text.partition(f"\n{heading}\n")
        assert found, f"{page} has no heading {heading!r}"
        text = re.split(r"^#", text, maxsplit=1, flags=re.MULTILINE)[0]
    rows: list[list[str]] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            continue
        if all(set(cell) <= set("-: ") for cell in cells):
            rows.pop()
        else:
            rows.append(cells)
    return rows


def codes_of(page: str, heading: str = "") -> list[str]:
    """The first column of tables whose first column is code."""
    return [row[0].strip("`") for row in rows_of(page, heading) if row[0].startswith("`")]
