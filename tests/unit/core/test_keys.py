"""Keys: no two different things share one, whatever their valid ids look like."""

from collections.abc import Callable

from hypothesis import example, given, settings
from hypothesis import strategies as st

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.ids import TaskIdentifier, check_id
from tests.conftest import SOAK

quick = settings(max_examples=20_000 if SOAK else 100)

FIRST = "abcXYZ019_"
# Few different characters, so that ids collide and contain each other often.
valid_ids = st.one_of(
    st.from_regex(r"[ab_0][ab.:@+=,~#-]{0,6}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.:@+=,~#-]{0,127}", fullmatch=True),
)
moments = st.integers(0, 10**13 - 1)
generations = st.integers(0, 99_999_999)

KINDS: list[tuple[Callable[..., str], tuple[st.SearchStrategy[object], ...]]] = [
    (keys.task, (valid_ids, valid_ids)),
    (keys.by_session, (valid_ids, valid_ids, valid_ids)),
    (keys.expired, (moments, valid_ids, valid_ids)),
    (keys.history, (valid_ids, valid_ids, generations)),
    (keys.result, (valid_ids, valid_ids, generations)),
    (keys.rejected, (valid_ids, valid_ids, generations, valid_ids, valid_ids)),
    (keys.count_session, (valid_ids,)),
    (keys.done, (valid_ids,)),
]
named = st.one_of(*(st.tuples(st.just(make), st.tuples(*parts)) for make, parts in KINDS))
Named = tuple[Callable[..., str], tuple[object, ...]]


@quick
@given(named, named)
def test_two_names_two_keys(one: Named, other: Named) -> None:
    """TEN-4, TEN-5: a key follows from what it names, and nothing else has it."""
    key, other_key = one[0](*one[1]), other[0](*other[1])
    assert (key == other_key) is (one == other)
    assert not {key, other_key} & {keys.LIMITS, keys.COUNT_CLAIMS, keys.COUNT_SESSIONS}


@quick
@given(st.lists(st.tuples(valid_ids, valid_ids), min_size=2, max_size=2))
def test_no_task_is_in_the_range_of_another(pairs: list[tuple[str, str]]) -> None:
    """TEN-6: a scan of one task's history or rejections, or one session's claims, meets no other's."""
    (project, task), (other_project, other_task) = pairs
    same = (project, task) == (other_project, other_task)
    theirs = keys.history(other_project, other_task, 1)
    assert theirs.startswith(keys.history_prefix(project, task)) is same
    turned_away = keys.rejected(other_project, other_task, 1, "s", "renew:NO_CLAIM")
    assert turned_away.startswith(keys.rejected_prefix(project, task)) is same
    claim = keys.by_session(other_task, "p", "t")
    assert claim.startswith(keys.by_session_prefix(task)) is (task == other_task)


@quick
@given(named)
def test_a_key_gives_its_parts_back(one: Named) -> None:
    """DESIGN §3: sweep and listings read names out of keys; they come back as they went in."""
    make, names = one
    parts = keys.parts(make(*names))
    read = parts[-len(names) :]
    assert [type(name)(part) for name, part in zip(names, read, strict=True)] == list(names)  # type: ignore[call-arg]
    assert len(make(*names)) <= 700


@quick
@given(moments, moments)
def test_lines_are_in_the_order_of_time(one: int, other: int) -> None:
    """DESIGN §3: as text, an earlier deadline stands before a later one."""
    assert (keys.due(one) < keys.due(other)) is (one < other)
    assert keys.due_ms(keys.due(one)) == one


@quick
@given(st.text(max_size=140))
@example("a" * 128)
@example("a" * 129)
@example("a\n")
def test_an_id_is_valid_or_refused(text: str) -> None:
    """DESIGN §7: what passes is short plain ASCII without a slash; everything else is Invalid."""
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
    fits = 1 <= len(text) <= 128 and text[0] in allowed and set(text) <= allowed | set(".:@+=,~#-")
    try:
        accepted = check_id("id", text) == text
    except Invalid:
        accepted = False
    assert accepted is fits


@quick
@given(
    st.from_regex(r"[A-Z]{1,3}", fullmatch=True),
    st.integers(1, 999),
    st.from_regex(r"[a-zA-Z0-9_-]{1,50}", fullmatch=True),
    st.none() | st.integers(1, 999_999_999),
)
def test_task_identifiers_round_trip(track: str, sequence: int, description: str, index: int | None) -> None:
    """An identifier written out parses back into itself, and can be an id.

    TID-1, TID-2, TID-3, TID-4, TID-5, TID-10, TID-11.
    """
    identifier = TaskIdentifier(track, sequence, description, index)
    assert TaskIdentifier.parse(identifier.compound_id) == identifier
    assert check_id("task id", identifier.compound_id)
