"""The type of a mutant: one deliberate defect of the source, and the tests that must notice it."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A defect that makes at least one of `tests` fail.

    `anchor` is `module:function`, `module:Class.method` or `module:NAME`; `old` occurs exactly once in it.
    """

    name: str
    anchor: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Arguments of pytest."""
    also: tuple[str, str, str] | None = None
    """A second change that the defect needs: anchor, old and new."""

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Return every change of the source: anchor, old and new."""
        first = (self.anchor, self.old, self.new)
        return [first] if self.also is None else [first, self.also]


def seeds(*numbers: int) -> tuple[str, ...]:
    """Return tests of the simulation by seed."""
    return tuple(f"tests/simulation/test_simulation.py::test_seed[{number}]" for number in numbers)


SOON = "--timeout=4"
"""For tests that need a moment, and wait for ever if the mutant does its worst."""

STORM = seeds(*range(1, 13))


class PageMutant(NamedTuple):
    """A defect of a module of the page; `old` occurs once in it."""

    name: str
    module: str
    old: str
    new: str
    test: str
