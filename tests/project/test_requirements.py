"""docs/requirements.md lists every requirement once, and its statuses agree with what tests cite."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "requirements.md"
PROVEN = {"met", "partly"}
UNPROVEN = {"not yet", "decided", "measured"}
SUFFIXES = {".py", ".txt", ".sh"}

_HEADING = re.compile(r"^## ([A-Z]+): ", re.MULTILINE)
_ROW = re.compile(r"^\| ([A-Z]+)-(\d+) \| ([a-z ]+) \| (.+) \|$")


class Requirement(NamedTuple):
    """A row of the page; `section` is the group that its heading names."""

    section: str
    group: str
    number: int
    status: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.group}-{self.number}"


def requirements() -> list[Requirement]:
    """Return the rows of the page, in order."""
    section, found = "", []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            section = heading[1]
        elif row := _ROW.match(line):
            found.append(Requirement(section, row[1], int(row[2]), row[3], row[4]))
    return found


GROUPS = tuple(dict.fromkeys(requirement.group for requirement in requirements()))
_GROUP = f"(?:{'|'.join(GROUPS)})"
_ID = rf"(?<![\w-]){_GROUP}-[1-9]\d*\b"
_RANGE = re.compile(rf"{_ID} *(?:…|\.\.+|–|-|to|through) *(?:{_GROUP}-)?\d")
_SHORTHAND = re.compile(rf"{_ID}(?:,|/| and| or) *\d+\b(?!-)")


def ids_in(text: str) -> list[str]:
    """Return the ids of requirements in a text."""
    return re.findall(_ID, text)


def vague_citations(text: str) -> list[str]:
    """Return the places that cite several requirements without naming each."""
    return [match[0] for pattern in (_RANGE, _SHORTHAND) for match in pattern.finditer(text)]


def texts_in(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every source file and script below these folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def places_by_id(texts: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return which files cite each id."""
    places = defaultdict(set)
    for name, text in texts:
        for cited in ids_in(text):
            places[cited].add(name)
    return places


def test_every_group_counts_without_gaps() -> None:
    """A group starts at 1 and misses no number; each row stands under the heading of its group."""
    rows = requirements()
    assert [row.name for row in rows if row.group != row.section] == []
    for group in GROUPS:
        numbers = [row.number for row in rows if row.group == group]
        assert numbers == list(range(1, len(numbers) + 1)), group


def test_every_row_has_a_known_status() -> None:
    """The page uses the statuses that its head explains, and no line of a table is misread."""
    rows = requirements()
    assert {row.status for row in rows} == PROVEN | UNPROVEN
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| [A-Z]+-", line)]
    assert len(lines) == len(rows)
    assert [name for name, count in Counter(row.name for row in rows).items() if count > 1] == []


def test_every_cited_id_exists() -> None:
    """A reader can look up every id that tests and source cite."""
    known = {row.name for row in requirements()}
    cited = places_by_id(texts_in("tests", "src"))
    assert {name: places for name, places in cited.items() if name not in known} == {}


def test_statuses_agree_with_citations() -> None:
    """Tests cite what is met or partly met, and nothing else."""
    cited = places_by_id(texts_in("tests"))
    rows = requirements()
    assert [row.name for row in rows if row.status in PROVEN and row.name not in cited] == []
    assert {row.name: cited[row.name] for row in rows if row.status in UNPROVEN and row.name in cited} == {}


def test_partly_says_what_is_missing() -> None:
    """The line of a requirement that is partly met has a second half."""
    rows = requirements()
    assert [row.name for row in rows if row.status == "partly" and not re.search("[;,:]", row.text)] == []


@pytest.mark.parametrize("folder", ["tests", "src"])
def test_no_citation_is_a_range(folder: str) -> None:
    """Each requirement is cited by its own id, so that a citation means that it is tested."""
    found = {name: vague_citations(text) for name, text in texts_in(folder)}
    assert {name: vague for name, vague in found.items() if vague} == {}


VAGUE = ["@-1 … @-9", "@-1 … 9", "@-1..9", "@-1...@-9", "@-1–9", "@-1, 2", "@-1 to @-3", "@-1 and 2", "@-1/2"]
EXACT = ["@-1, @-2: two", "@-1: 9 tasks", "(@-12).", "@-1, issue 6", "@-1 and @-2"]


@pytest.mark.parametrize("text", VAGUE)
def test_ranges_are_recognised(text: str) -> None:
    """The check would notice each usual way to write a range or a list of bare numbers."""
    assert vague_citations(text.replace("@", GROUPS[0])) != []


@pytest.mark.parametrize("text", EXACT)
def test_single_ids_are_no_ranges(text: str) -> None:
    """Ids that are spelled out pass, and all of them are read."""
    cited = text.replace("@", GROUPS[0])
    assert vague_citations(cited) == []
    assert len(ids_in(cited)) == text.count("@")


def test_what_is_no_id_is_no_citation() -> None:
    """Ids of tasks and longer words are not taken for requirements."""
    group = GROUPS[0]
    assert ids_in(f"{group}-001-setup X{group}-1 wp-{group}-1 {group}-1_2 {group}-12x") == []
