"""Documents that describe the code say what the code says."""

import re
import tomllib
from enum import StrEnum

import pytest

import coord
from coord.core import errors, ids, keys, limits
from coord.core.tasks import types
from coord.engine import engine
from coord.sdk import coordinator
from coord.sdk.validation import arguments as checks
from coord.sdk.validation import results as result_data
from tests.support.docs.pages import ROOT, codes_of, page_names, paths_in, rows_of, text_of
from tests.support.docs.tables import INDEX_KEYS, TABLES, keys_in_code, page_of, with_table

KEYSPACE = "docs/reference/keyspace.md"
REASON_KINDS: list[type[StrEnum]] = [
    types.ClaimReason,
    types.RenewalReason,
    types.ReleaseOutcome,
    types.SubmissionReason,
    types.ResetReason,
    types.ReleaseReason,
    types.ClaimState,
    types.TaskStatus,
]


@pytest.mark.parametrize("name", TABLES)
def test_a_made_table_is_as_the_code_makes_it(name: str) -> None:
    """TEN-14 and more: limits, events and methods are documented as they are, with their rationale."""
    text = text_of(page_of(name))
    assert with_table(text, name) == text, "run: .venv/bin/python -m tests.support.docs.tables"


def test_the_limits_of_everybody_are_as_in_the_code() -> None:
    """The numbers that no tenant can change are those that the code checks."""
    rows = {row[0]: row[1] for row in rows_of("docs/reference/limits.md", "## Of everybody")}
    assert f"{ids.ID_CHARS_MAX} characters" in rows["an id (tenant, project, task, agent, session, command)"]
    assert rows["a lease"].startswith(f"{limits.LEASE_MS_MAX // limits.DAY_MS} days")
    assert rows["a result"].startswith(f"{limits.RESULT_BYTES_MAX // 1024**2} MiB")
    assert f"{result_data.VALUES_MAX:,} values, {result_data.DEPTH_MAX} levels deep" in rows["a result"]
    assert rows["metadata of a claim"].startswith(f"{coordinator.METADATA_BYTES_MAX} bytes")
    assert f"{checks.LINE_CHARS_MAX} printable" in rows["a reason or remark"]
    assert rows["commands waiting in an engine"] == f"{engine.QUEUE_MAX:,}"
    assert rows["waiting for an answer"].startswith(f"{engine.TIMEOUT_S:.0f} seconds")


@pytest.mark.parametrize("kind", REASON_KINDS, ids=lambda kind: kind.__name__)
def test_every_reason_is_explained(kind: type[StrEnum]) -> None:
    """Each code of an answer has its row in reasons.md, and no row is left over."""
    assert sorted(codes_of("docs/reference/reasons.md", f"## {kind.__name__}")) == sorted(kind)


def test_every_kind_of_reason_is_on_the_page() -> None:
    """A new enumeration in core/tasks/types.py cannot be forgotten."""
    enums = [kind for kind in vars(types).values() if isinstance(kind, type) and issubclass(kind, StrEnum)]
    assert {kind for kind in enums if kind not in (StrEnum, types.Operation)} == set(REASON_KINDS)


def test_every_error_is_listed_with_its_code() -> None:
    """errors.md has exactly the classes of core/errors.py, each with its code."""
    classes = {
        name: kind.code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.CoordError)
    }
    listed = {row[0].strip("`"): row[1].strip("`") for row in rows_of("docs/reference/errors.md")}
    assert listed == classes


def test_the_record_table_lists_every_key() -> None:
    """keyspace.md says of each key what it holds and which commands write it, and names the index keys."""
    listed = {row[1].strip("`").removeprefix("keys."): row for row in rows_of(KEYSPACE)}
    in_code = keys_in_code()
    for name in INDEX_KEYS:
        assert f"`{in_code.pop(name)}` (`keys.{name}`)" in text_of(KEYSPACE)
    assert listed.keys() == in_code.keys()
    assert [name for name, row in listed.items() if not all(row)] == []
    assert {"task", "LIMITS", "done"} <= listed.keys() <= vars(keys).keys()


@pytest.mark.parametrize(
    "page",
    [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/guarantees.md",
        "docs/testing.md",
        "docs/reference/keyspace.md",
        "docs/reference/store-contract.md",
    ],
)
def test_every_path_that_is_named_exists(page: str) -> None:
    """A path in a document leads somewhere, from the root or from the package."""
    places = (ROOT, ROOT / "src/coord")
    missing = [path for path in paths_in(page) if not any((place / path).exists() for place in places)]
    assert missing == []


def test_every_public_name_is_documented() -> None:
    """Whatever `import coord` offers stands in api.md or errors.md."""
    pages = text_of("docs/reference/api.md") + text_of("docs/reference/errors.md")
    unknown = [name for name in coord.__all__ if not re.search(rf"`(coord\.)?{name}\b", pages)]
    assert unknown == ["__version__"]


def test_the_changelog_knows_this_version() -> None:
    """What users get is described: the version of the package has an entry, with something in it."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        assert tomllib.load(file)["project"]["version"] == coord.__version__
    _, found, entry = text_of("CHANGELOG.md").partition(f"\n## [{coord.__version__}]")
    assert found
    assert entry.partition("\n## ")[0].count("\n- ") >= 1


def test_the_glossary_is_in_order() -> None:
    """One word for each thing, each once, in the order of the alphabet, in one sentence."""
    rows = [row for row in rows_of("docs/reference/glossary.md") if row[0].startswith("**")]
    words = [word.strip("*") for word, _ in rows]
    assert words == sorted(set(words))
    for word, meaning in rows:
        sentence = meaning.removeprefix("*Later.* ")
        assert sentence.count(". ") <= 1, word
        assert sentence.endswith("."), word
    assert {"session", "lease", "fence", "task", "claim", "generation", "store", "wait queue"} <= set(words)


def test_every_decision_is_in_the_index() -> None:
    """docs/decisions/README.md lists all pages, which say context, options, decision, consequences."""
    index = text_of("docs/decisions/README.md")
    pages = [page for page in page_names() if re.match(r"docs/decisions/\d", page)]
    assert len(pages) >= 13
    for page in pages:
        assert f"]({page.rpartition('/')[2]})" in index
        text = text_of(page)
        assert re.findall(r"^## (\w+)", text, re.MULTILINE)[0] == "Context", page
        assert "\n## Consequences\n" in text, page
        assert "ecision" in "".join(re.findall(r"^## .*$", text, re.MULTILINE)), page
