"""Ids from outside, the grammar of task ids, references of work products, and keys made of ids."""

import pytest

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.ids import TaskIdentifier, check_id, short_repr, work_product_ref

GOOD = [
    "a",
    "_",
    "7",
    "x" * 128,
    "task-101",
    "101::1",
    "A-001-setup-authentication-module",
    "B-003-implement-user-dashboard::1",
    "sess-alice-20260104-001",
    "alice@acme.com",
    "user@host:1234+567",
    "id~2",
    "8.2",
    "a#b=c,d",
]

HOSTILE = {
    "empty": "",
    "too long": "x" * 129,
    "slash": "a/b",
    "only a slash": "/",
    "parent": "../a",
    "dot": ".",
    "dots": "..",
    "hidden": ".a",
    "option": "-rf",
    "colon first": ":a",
    "NUL": "a\0b",
    "newline at the end": "a\n",
    "newline": "a\nb",
    "tab": "a\tb",
    "space": "a b",
    "backslash": "a\\b",
    "quote": "a'b",
    "double quote": 'a"b',
    "percent": "a%2Fb",
    "star": "a*",
    "bracket": "a[0]",
    "umlaut": "ä",
    "Cyrillic a": "\u0430gent",
    "full width": "\uff41gent",
    "Arabic digit": "task-\u0661",
    "right-to-left": "a\u202eb",
    "zero width": "a\u200bb",
    "combining": "e\u0301",
    "lone surrogate": "a\ud800",
    "fraction slash": "a\u2044b",
    "none": None,
    "bytes": b"a",
    "int": 5,
    "huge int": 10**9_999,
    "bool": True,
    "list": ["a"],
    "object": object(),
}


@pytest.mark.parametrize("value", GOOD)
def test_good_ids(value: str) -> None:
    """AMB-14: opaque ids are welcome; the documents' own ids all pass."""
    assert check_id("task id", value) is value


@pytest.mark.parametrize("value", [pytest.param(value, id=name) for name, value in HOSTILE.items()])
def test_hostile_ids(value: object) -> None:
    """DESIGN §7: ids are validated before they become keys; the error names the kind and says what fits."""
    with pytest.raises(Invalid, match="is not a task id") as raised:
        check_id("task id", value)
    assert "letters" in raised.value.hint
    assert len(str(raised.value)) < 300
    assert "\n" not in str(raised.value)


def test_values_are_shown_short() -> None:
    """An error message stays one short line, whatever was passed."""
    assert short_repr("a\nb") == "'a\\nb'"
    assert len(short_repr("x" * 1_000_000)) <= 61
    assert short_repr(10**9_999) == "a int"


DOCUMENTED = [
    ("A-001-setup-authentication-module", "A", 1, "setup-authentication-module"),
    ("A-002-implement-oauth-providers", "A", 2, "implement-oauth-providers"),
    ("A-003-add-session-management", "A", 3, "add-session-management"),
    ("B-001-design-database-schema", "B", 1, "design-database-schema"),
    ("B-002-create-user-tables", "B", 2, "create-user-tables"),
    ("B-003-implement-migrations", "B", 3, "implement-migrations"),
    ("C-001-build-api-endpoints", "C", 1, "build-api-endpoints"),
    ("C-002-add-rate-limiting", "C", 2, "add-rate-limiting"),
]


@pytest.mark.parametrize(("task_id", "track", "sequence", "description"), DOCUMENTED)
def test_documented_task_ids(task_id: str, track: str, sequence: int, description: str) -> None:
    """TID-1, TID-6, TID-11: the documented ids parse into track, sequence and description, and back."""
    parsed = TaskIdentifier.parse(task_id)
    assert parsed == TaskIdentifier(track, sequence, description)
    assert (parsed.task_id, parsed.compound_id) == (task_id, task_id)
    assert parsed.kebab_case


@pytest.mark.parametrize("index", [1, 2, 3, 10, 999_999_999])
def test_subtasks(index: int) -> None:
    """TID-10: a subtask has the id of its task, two colons and its index."""
    parsed = TaskIdentifier.parse(f"B-003-implement-user-dashboard::{index}")
    assert parsed.subtask_index == index
    assert parsed.task_id == "B-003-implement-user-dashboard"
    assert parsed.compound_id == f"B-003-implement-user-dashboard::{index}"


FITS = ["AB-999-x", "Z-010-a_b-C9", "X-100--", "A-001-" + "d" * 50, "ABCDEFGH-001-x"]
FITS_NOT = {
    "small track": "a-001-x",
    "no track": "-001-x",
    "digit in track": "A1-001-x",
    "other alphabet": "\u0410-001-x",
    "sequence 000": "A-000-x",
    "two digits": "A-01-x",
    "four digits": "A-0001-x",
    "other digits": "A-\u0660\u0660\u0661-x",
    "no description": "A-001-",
    "description of 51": "A-001-" + "d" * 51,
    "dot in it": "A-001-a.b",
    "space": "A-001-a b",
    "newline": "A-001-x\n",
    "subtask 0": "A-001-x::0",
    "subtask 01": "A-001-x::01",
    "subtask nothing": "A-001-x::",
    "subtask word": "A-001-x::one",
    "subtask -1": "A-001-x::-1",
    "two subtasks": "A-001-x::1::2",
    "one colon": "A-001-x:1",
    "opaque": "task-101",
    "opaque subtask": "101::1",
    "empty": "",
}


@pytest.mark.parametrize("task_id", FITS)
def test_grammar_accepts(task_id: str) -> None:
    """Many letters, 001 to 999, letters, digits, _ and -, at most 50 of them.

    TID-2, TID-3, TID-4, TID-5, AMB-21.
    """
    assert TaskIdentifier.parse(task_id).compound_id == task_id


@pytest.mark.parametrize("task_id", [pytest.param(value, id=name) for name, value in FITS_NOT.items()])
def test_grammar_refuses(task_id: str) -> None:
    """What does not fit is refused by parse and an opaque id for find.

    TID-2, TID-3, TID-4, TID-5, TID-10.
    """
    assert TaskIdentifier.find(task_id) is None
    with pytest.raises(Invalid, match="TRACK-SEQUENCE-DESCRIPTION") as raised:
        TaskIdentifier.parse(task_id)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("description", "kebab"),
    [
        ("add-rate-limiting", True),
        ("x2", True),
        ("Add", False),
        ("a_b", False),
        ("a--b", False),
        ("a-", False),
    ],
)
def test_kebab_case_is_style(description: str, kebab: bool) -> None:
    """AMB-21: the grammar is accepted, kebab-case only recommended."""
    assert TaskIdentifier.parse(f"A-001-{description}").kebab_case is kebab


@pytest.mark.parametrize(
    ("task_id", "generation", "unique", "reference"),
    [
        ("A-001-core-framework", 1, "7f3a2b", "wp-A-001-core-framework-gen1-7f3a2b"),
        (
            "B-003-repositories",
            2,
            "9c4e1d00-1111-4222-8333-444444444444",
            "wp-B-003-repositories-gen2-9c4e1d",
        ),
        ("C-002-graphql-schema", 1, "2b8f5a", "wp-C-002-graphql-schema-gen1-2b8f5a"),
        ("101::3", 12, "abcdef12", "wp-101::3-gen12-abcdef"),
    ],
)
def test_work_product_references(task_id: str, generation: int, unique: str, reference: str) -> None:
    """TID-18, TID-19, TID-20, AMB-15: the full task id, the generation, and six characters of a UUID."""
    assert work_product_ref(task_id, generation, unique) == reference


def test_keys_of_hostile_but_valid_ids_stay_apart() -> None:
    """TEN-5: a key's parts are its ids, whatever dots and colons they hold."""
    longest, reason = "x" * 128, "claim:DENIED_LIMIT_CONCURRENT_CLAIMS"
    assert keys.parts(keys.task("a.b", "c::1")) == ["task", "a.b", "c::1"]
    assert keys.parts(keys.rejected(longest, longest, 2**53, longest, reason))[1:3] == [longest, longest]
    assert len(keys.rejected(longest, longest, 2**53, longest, reason)) < 700


def test_deadlines_sort_as_time() -> None:
    """DESIGN §3: lines are compared as text, so their order must be that of the deadlines."""
    moments = [0, 1, 999, 10**12, 1_700_000_000_000, 10**13 - 1]
    assert sorted(map(keys.due, moments)) == [keys.due(moment) for moment in moments]
    assert [keys.due_ms(keys.due(moment)) for moment in moments] == moments
    assert keys.due(10**15) == keys.due(10**13 - 1), "what is later than can be written is last"
