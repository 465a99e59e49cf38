"""What a word means: the resources that a person or a program names with it.

src/app.py, ./LICENSE     a file, because of its `/` or `.`; so are words with wildcards
LICENSE, main-push        both the file and the name of that spelling, whether or not the file exists
file:X, name:X            one of them
claude-config             only the name, if the machine shares it (`host`), or without a repository
"""

from collections.abc import Iterable
from typing import NamedTuple

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.locks.paths import fold
from coord.core.locks.resources import parse_resource
from coord.host.paths import escaped, resolve_path
from coord.host.store_location import StoreLocation

SCHEMES = ("file", "name", "project")
SHOWN_MAX = 3
"""How many targets of links a note names."""
_OF_A_PATH = frozenset("/.*?[]{}\\")


class Words(NamedTuple):
    """The resources that words mean.

    `readings` has the resources of each word that means several. `notes` says what a person cannot see in
    the words: which links are covered, and which are not.
    """

    texts: tuple[str, ...]
    readings: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def paths_of(words: Iterable[str], location: StoreLocation, cwd: str) -> tuple[str, ...]:
    """Return the resources of paths as they are written, without what links in them lead to."""
    found = [resolve_path(location.repository, word, cwd).texts for word in words]
    return tuple(dict.fromkeys(f"file:{text}" for texts in found for text in texts))


def is_bare(word: str) -> bool:
    """Whether a word may be the name of a lock and the name of a file."""
    return _OF_A_PATH.isdisjoint(word)


def read_words(words: Iterable[str], location: StoreLocation, cwd: str, *, names: bool = True) -> Words:
    """Return the resources that words mean; without `names`, a bare word is only a file."""
    texts: dict[str, None] = {}
    readings: list[tuple[str, ...]] = []
    notes: list[str] = []
    for word in words:
        found, said = _read_word(word, location, cwd, names)
        texts.update(dict.fromkeys(found))
        notes += said
        if len(found) > 1 or "{" in found[0]:
            readings.append(tuple(found))
    return Words(tuple(texts), tuple(readings), tuple(dict.fromkeys(notes)))


def _read_word(word: str, location: StoreLocation, cwd: str, names: bool) -> tuple[list[str], list[str]]:
    if not isinstance(word, str):
        raise no_resource(word)
    kind, colon, rest = word.partition(":")
    if colon and kind in SCHEMES:
        return ([word], []) if kind != "file" else _read_path(rest, location, cwd)
    if not names or not is_bare(word):
        return _read_path(word, location, cwd)
    name = f"name:{word}"
    if fold(name) in location.host_locks:
        return [name], []
    if location.repository is None or location.repository.root is None:
        return [name], [f"{word} is only a name here: there is no worktree whose files it could mean"]
    found, notes = _read_path(escaped(word), location, cwd)
    try:
        parse_resource(name, location.repository_id)
    except Invalid:  # too long for a name, for example: nobody can have that name
        return found, notes
    return [*found, name], notes


def _read_path(path: str, location: StoreLocation, cwd: str) -> tuple[list[str], list[str]]:
    found = resolve_path(location.repository, path, cwd)
    notes = [f"{path}: {said}" for said in found.unfollowed]
    if found.links:
        shown = [f"{text} ({link})" for text, link in list(found.links.items())[:SHOWN_MAX]]
        left = len(found.links) - SHOWN_MAX
        more = f" and {left} more" if left > 0 else ""
        notes.append(f"{path}: links lead to {', '.join(shown)}{more}, which it covers, too")
    return [f"file:{text}" for text in (*found.texts, *found.links)], notes


def no_resource(word: object) -> Invalid:
    """Return the error for something that is no resource."""
    return Invalid(
        f"{short_repr(word)} is not a resource", hint="for example 'src/app.py' or 'name:main-push'"
    )
