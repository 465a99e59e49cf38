"""Work that is much like other work: a warning, never a refusal.

Two descriptions are alike when they share more than half of their words. Counted are the different words of
three letters and more that say something; the share is of the words of the longer one.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

ALIKE_OVER = 0.5
WORD_CHARS_MIN = 3
WARNINGS_MAX = 5
_LITTLE_WORDS = """
    about after all also and any are because been before being but can could did does each for from get
    had has have here her him his how into its itself just let like may might more most must new not now
    off one only other our out over own per please shall she should some such than that the their them
    then there these they this those through too under until upon use used uses using very via was well
    were what when where which while who why will with within without would yet you your
"""
STOP_WORDS = frozenset(_LITTLE_WORDS.split())

_WORD = re.compile(r"\w+")


class Alike(NamedTuple):
    """A task that is much like another, with the share of words they have in common."""

    task_id: str
    share: float
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.task_id} is {self.share:.0%} alike ({', '.join(self.words)})"


def words_of(description: str) -> frozenset[str]:
    """Return the words that say what a task is about."""
    found = {word for word in _WORD.findall(description.casefold()) if len(word) >= WORD_CHARS_MIN}
    return frozenset(found - STOP_WORDS)


def overlap(one: Iterable[str], other: Iterable[str]) -> float:
    """Return the share of words that two sets have in common, from 0 to 1."""
    mine, theirs = frozenset(one), frozenset(other)
    longer = max(len(mine), len(theirs))
    return len(mine & theirs) / longer if longer else 0.0


def similar_tasks(description: str, active: Mapping[str, str], most: int = WARNINGS_MAX) -> list[Alike]:
    """Return the active tasks (id → description) that are much like this description, most alike first."""
    mine = words_of(description)
    found = []
    for task_id, text in active.items() if mine else ():
        theirs = words_of(text)
        share = overlap(mine, theirs)
        if share > ALIKE_OVER:
            found.append(Alike(task_id, share, tuple(sorted(mine & theirs))))
    return sorted(found, key=lambda alike: (-alike.share, alike.task_id))[:most]
