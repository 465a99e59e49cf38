"""Work that is much like other work: what counts as alike, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.similar import STOP_WORDS, overlap, similar_tasks, words_of

LOGIN = "Fix the validation of the login form"


def test_little_words_say_nothing() -> None:
    """DED-1: words of one or two letters and stop words do not count, nor do case and punctuation."""
    assert words_of("Do it: fix THE login-form, and go on with it!") == {"fix", "login", "form"}
    assert words_of("ab abc") == {"abc"}
    assert all(len(word) > 2 for word in STOP_WORDS), "shorter ones are left out anyway"


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ("Fix validation in the login form", True),
        ("fix login validation", True),  # 3 of 4
        ("repair login validation", False),  # 2 of 4: half is not more than half
        ("Fix login", False),  # 2 of 4
        ("Write the changelog", False),
        ("the of and", False),
        ("", False),
    ],
)
def test_more_than_half_of_the_words(other: str, *, alike: bool) -> None:
    """DED-1: alike means more than 50 % of the words of the longer description, not exactly 50 %."""
    found = similar_tasks(LOGIN, {"A-1": other})
    assert [each.task_id for each in found] == (["A-1"] if alike else [])


def test_one_word_is_not_like_all_that_contains_it() -> None:
    """A very short description does not warn about every longer one with the same word."""
    assert similar_tasks("tests", {"A-1": "Write tests that cover payment refunds"}) == []


def test_nothing_is_like_nothing() -> None:
    """Two descriptions without a word that counts are not alike: there is nothing to warn about."""
    assert similar_tasks("", {"A-1": ""}) == []
    assert similar_tasks("the", {"A-1": "the"}) == []


def test_the_warning_names_the_most_alike_first_and_not_too_many() -> None:
    """DED-2: the lead reads which tasks, how alike and in which words; it is a list, not an error."""
    active = {f"A-{number}": "Fix validation of login" for number in range(9)} | {"B-1": LOGIN}
    found = similar_tasks(LOGIN, active)
    assert [each.task_id for each in found] == ["B-1", "A-0", "A-1", "A-2", "A-3"]
    assert str(found[1]) == "A-0 is 75% alike (fix, login, validation)"


@given(st.sets(st.sampled_from("abcdefgh")), st.sets(st.sampled_from("abcdefgh")))
def test_overlap_is_a_share_and_the_same_from_both_sides(one: set[str], other: set[str]) -> None:
    """DED-1: 1 only for the same words, 0 only without a common one, whoever is compared with whom."""
    share = overlap(one, other)
    assert share == overlap(other, one)
    assert (share == 1) == (one == other != set())
    assert (share == 0) == (not one & other)
