"""What the usual tracks are for; any other name is as good."""

from typing import NamedTuple


class Purpose(NamedTuple):
    """What a track is called, and what work usually stands in it."""

    title: str
    work: str


PURPOSES = {
    "A": Purpose("Core Architecture", "the foundation: framework and core modules"),
    "B": Purpose("Data Layer", "databases, storage, caches"),
    "C": Purpose("API Layer", "endpoints, contracts, validation"),
    "D": Purpose("Frontend", "what users see, and its logic"),
    "E": Purpose("Infrastructure", "deployment, CI/CD, monitoring"),
    "F": Purpose("Testing", "test suites, coverage, quality"),
    "G": Purpose("Documentation", "specifications, guides, API pages"),
    "X": Purpose("Experimental", "spikes and prototypes"),
    "Z": Purpose("Maintenance", "repairs, old debts, refactoring"),
}


def title_of(track: str) -> str:
    """Return what a track is called; empty where only its name is known.

    >>> title_of("B")
    'Data Layer'
    """
    return PURPOSES[track].title if track in PURPOSES else ""
