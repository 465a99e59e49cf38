"""Compare two descriptions by their words (DED-1).

Two descriptions are similar if they share more than half of the words of the longer one. Only distinct words
of three or more letters count, without common words such as "the".
"""

import re

SIMILAR_ABOVE = 0.5
WORD_CHARS_MIN = 3
_FILLER_WORDS = """
    about after all also and any are because been before being but can could did does each for from get
    had has have here her him his how into its itself just let like may might more most must new not now
    off one only other our out over own per please shall she should some such than that the their them
    then there these they this those through too under until upon use used uses using very via was well
    were what when where which while who why will with within without would yet you your
"""
STOP_WORDS = frozenset(_FILLER_WORDS.split())

_WORD = re.compile(r"\w+")


def words_of(description: str) -> frozenset[str]:
    """Return the distinctive words of a description."""
    found = {word for word in _WORD.findall(description.casefold()) if len(word) >= WORD_CHARS_MIN}
    return frozenset(found - STOP_WORDS)


def overlap(mine: frozenset[str], theirs: frozenset[str]) -> float:
    """Return the share of common words in the larger set, from 0 to 1."""
    longer = max(len(mine), len(theirs))
    return len(mine & theirs) / longer if longer else 0.0
