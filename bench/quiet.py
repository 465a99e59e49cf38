"""Measuring while the machine is itself: on shared hardware its neighbours take half of it for moments.

What a fixed loop takes right before and right after a repetition tells whether it fell into such a moment.
Those that did are made again, up to a measure. So a figure says what the code needs, not who lives next door.
"""

import gc
import statistics
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TypeVar

from bench.calibrate import TURNS, time_loops

NOISE = 0.25
"""A loop that takes longer than the fastest one by more than this share is disturbed."""
PATIENCE = 3
"""How many repetitions are made for each one that is wanted, at most."""
LOOK_S = 0.06

Value = TypeVar("Value")
_met: set[float] = set()
"""What a turn of the loop took whenever this process looked: one that is faster shows what came before."""


def turn_s() -> float:
    """Return how long a turn of the loop takes now."""
    now = statistics.median(time_loops(LOOK_S)) / TURNS
    _met.add(now)
    return now


def freeze_heap() -> None:
    """Collect, and keep the collector from what is there: the bench has imported every driver there is.

    Going through these 60,000 objects takes 40 ms, and whoever waits meanwhile would be counted.
    """
    gc.collect()
    gc.freeze()


class Rounds:
    """Repetitions of one measurement, until so many of them were undisturbed."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._turns: list[float] = []

    def __iter__(self) -> Iterator[None]:
        before = turn_s()
        while sum(self.undisturbed) < self._wanted and len(self._turns) < self._wanted * PATIENCE:
            yield
            after = turn_s()
            self._turns.append(max(before, after))
            before = after

    @property
    def undisturbed(self) -> list[bool]:
        """Of each round, whether the machine was itself."""
        return [each <= min(_met) * (1 + NOISE) for each in self._turns]

    def chosen(self, values: Sequence[Value]) -> Sequence[Value]:
        """Return what the undisturbed rounds gave, or all if there was none."""
        return list(compress(values, self.undisturbed)) or values

    @property
    def share(self) -> float:
        """The share of all rounds that counts: 0 means that none was undisturbed, and so all do."""
        return sum(self.undisturbed) / len(self._turns)
