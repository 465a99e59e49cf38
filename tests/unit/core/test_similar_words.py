"""Words that count, and how much two descriptions have in common."""

from hypothesis import given
from hypothesis import strategies as st

from coord.core.similar_words import STOP_WORDS, overlap, words_of

WORDS = st.frozensets(st.sampled_from("abcdefgh"))


def test_little_words_say_nothing() -> None:
    """DED-1: words of one or two letters and stop words do not count, nor do case and punctuation."""
    assert words_of("Do it: fix THE login-form, and go on with it!") == {"fix", "login", "form"}
    assert words_of("ab abc") == {"abc"}
    assert all(len(word) > 2 for word in STOP_WORDS), "shorter ones are left out anyway"


@given(WORDS, WORDS)
def test_overlap_is_a_share_and_the_same_from_both_sides(one: frozenset[str], other: frozenset[str]) -> None:
    """DED-1: 1 only for the same words, 0 only without a common one, whoever is compared with whom."""
    share = overlap(one, other)
    assert share == overlap(other, one)
    assert (share == 1) == (one == other != set())
    assert (share == 0) == (not one & other)
