"""What a mutant is."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """What is broken, where, and who must notice. `old` stands exactly once in its file."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    also: tuple[str, str, str] | None = None
    """A second check of the same thing elsewhere (file, old, new), which goes too."""
