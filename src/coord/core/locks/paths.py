r"""Paths and globs of a repository, and whether two of them overlap.

A path without wildcards covers itself and everything below it, because it may be or become a directory. A
pattern with wildcards covers exactly the paths that it matches. Brackets and braces are also common in file
names, as in `app/[id]/page.tsx`, so a segment with a class also matches the name that is spelled exactly so:

| written             | matches                                                                        |
|---------------------|--------------------------------------------------------------------------------|
| `*`                 | any run of characters within a segment, an empty one and a leading dot too     |
| `?`                 | one character                                                                  |
| `[abc] [a-z] [!x]`  | one character of the class, or with `!` or `^` one outside of it; never `/`    |
| `**` as a segment   | any number of segments; as the last segment at least one                       |
| `{a,b}`             | one pattern for each alternative, and one for the name with these braces       |
| `\*`                | the character itself: one of `\ * ? [ ] { } , ! ^ -`                           |

If classes are its only wildcards, the path that is spelled so may be a directory: it covers what is below.

Names that differ only in case or in Unicode composition are the same name, as on some file systems. They are
compared in a case-folded form, in which `?` and classes count characters. Both ends of a range are folded.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple
from unicodedata import normalize

from coord.core.errors import Invalid
from coord.core.ids import short_repr

ALTERNATIVES_MAX = 64
WILDCARDS_MAX = 64
PATTERN_BYTES_MAX = 512
TEXT_CHARS_MAX = 4096
"""The length of a text with braces; each of its alternatives has its own limit."""

Ranges = tuple[tuple[int, int], ...]
"""The first and last code points of what one character may be."""
Character = str | Ranges
Characters = tuple[Character | None, ...]
"""The characters of a name; None is any run of them."""


class Spelled(NamedTuple):
    """A segment with a class: all names that match it, and the name that is spelled like it."""

    characters: Characters
    name: str


Segment = str | Characters | Spelled
Segments = tuple[Segment | None, ...]
"""None is any number of segments."""

_UNPRINTABLE = r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]"
_SPECIAL = re.compile(r"[\\*?\[{}]")
_ESCAPE = re.compile(r"\\([\\*?\[\]{},!^-])")
_MEMBER = r"(?:\\[\\*?\[\]{},!^-]|\[(?![.:=])|[^\\\[\]/])"
_TOKEN = (
    r"\\(?P<escaped>[\\*?\[\]{},!^-])"
    r"|(?P<run>\*+)"
    r"|(?P<one>\?)"
    rf"|\[(?P<negated>[!^]?+)(?P<members>(?:{_MEMBER}|\]){_MEMBER}*)\]"
    r"|(?P<brace>[{},])"
    r"|(?P<plain>[^\\*?\[{},]+)"
)
_WILDCARDS = ("run", "one", "members")
_RANGE = r"\\?(?P<first>.)(?:-\\?(?P<last>.))?"


class Pattern(NamedTuple):
    """A path, or a glob without braces; both texts can be parsed again and give the same pattern."""

    spelled: str
    """As it was written, but normalised; for people."""
    folded: str
    """Equal for all spellings of one name: the form that is compared and stored."""
    literal: bool
    """Without wildcards: itself and everything below it."""
    directory: tuple[str, ...]
    """The folded names before the first segment with a wildcard; all names of a literal path."""
    segments: Segments
    spelling: tuple[str, ...] = ()
    """The folded names of the path that is spelled like this, if no wildcard but classes is in it."""


def parse_pattern(text: str) -> list[Pattern]:
    """Return the patterns of a text: one for each alternative of its braces, and one for their spelling."""
    plain = _plain(text)
    if plain is not None:
        return [plain]
    if len(text) > TEXT_CHARS_MAX:
        raise _invalid(text, "is too long", f"use at most {TEXT_CHARS_MAX} characters")
    if is_unprintable(text):
        raise _invalid(text, "contains a control character or half a character", "name the file without it")
    alternatives = _expand(text)
    if len(alternatives) > 1:
        alternatives.append(
            "".join(rf"\{token[0]}" if token["brace"] else token[0] for token in _tokens(text))
        )
    patterns = map(_pattern, alternatives)
    return list({pattern.folded: pattern for pattern in patterns}.values())


def _plain(text: str) -> Pattern | None:
    """Return the pattern of an ordinary path; None if its characters need a closer look.

    A broad request parses the path of every lock, so this is ten times as fast as reading tokens.
    """
    if len(text) > PATTERN_BYTES_MAX or not (text.isascii() and text.isprintable()) or _SPECIAL.search(text):
        return None
    folded = text.lower()
    names = tuple(folded.split("/"))
    if "" in names or "." in names or ".." in names:
        return None
    return Pattern(text, folded, True, names, (*names, None))


def is_unprintable(text: str) -> bool:
    """Whether a text has control characters or halves of a character."""
    return not text.isprintable() and re.search(_UNPRINTABLE, text) is not None


def literal_path(text: str) -> Pattern:
    """Return the pattern of a path in which no character has a meaning but `/`."""
    return parse_pattern(_SPECIAL.sub(r"\\\g<0>", text))[0]


def is_literal(text: str) -> bool:
    """Return whether a text stands for one path, and not for all that match it."""
    return all(pattern.literal for pattern in parse_pattern(text))


def overlaps(a: Pattern, b: Pattern) -> bool:
    """Return whether some path belongs to both.

    >>> [one], [other], [below] = map(parse_pattern, ("src/*/x.py", "src/a/*.py", "src/a/b/x.py"))
    >>> overlaps(one, other), overlaps(one, below)
    (True, False)
    """
    if any(x != y for x, y in zip(a.directory, b.directory, strict=False)):
        return False
    return (
        (a.literal and b.literal)
        or _intersect(a.segments, b.segments, _segments_overlap)
        or (a.spelling != () and _spelling_overlaps(a, b))
        or (b.spelling != () and _spelling_overlaps(b, a))
    )


def _spelling_overlaps(glob: Pattern, other: Pattern) -> bool:
    """Return whether something below the path that a glob spells belongs to another pattern."""
    names = glob.spelling
    theirs = other.spelling or other.directory
    if other.literal or other.spelling:
        shorter = min(len(names), len(theirs))
        if names[:shorter] == theirs[:shorter]:
            return True
    return _intersect((*names, None), other.segments, _segments_overlap)


def covers(pattern: Pattern, path: Pattern) -> bool:
    """Return whether a literal path, without what is below it, belongs to the pattern."""
    names = pattern.spelling
    if names and path.directory[: len(names)] == names:
        return True
    return _intersect(pattern.segments, path.segments[:-1], _segments_overlap)


def parts_below(pattern: Pattern, path: Pattern) -> list[str]:
    """Return what a pattern covers below a literal path, as texts relative to it.

    An empty text is the path itself and everything below it. If nothing is covered, the list is empty.

    >>> [glob], [link] = parse_pattern("src/**/*.py"), parse_pattern("src/link")
    >>> parts_below(glob, link)
    ['**/*.py']
    """
    names, spelled = path.directory, pattern.spelling or pattern.directory
    if (pattern.literal or pattern.spelling) and names[: len(spelled)] == spelled:
        return [""]
    texts = pattern.spelled.split("/") if pattern.spelled != "." else []
    segments = [None if text == "**" else _pattern(text).segments[0] for text in texts]
    positions = _past_runs({0}, segments)
    for name in names:
        matched = {at for at in positions if at < len(texts)}
        stay = {at for at in matched if segments[at] is None}
        step = {at + 1 for at in matched - stay if _segments_overlap(segments[at] or "", name)}
        positions = _past_runs(stay | step, segments)
    if len(texts) in positions:
        return [""]
    # What a run begins also covers what follows the run.
    return ["/".join(texts[at:]) for at in sorted(positions) if at - 1 not in positions or segments[at - 1]]


def _past_runs(positions: set[int], segments: Sequence[Segment | None]) -> set[int]:
    """Return positions in segments, and those behind the runs that begin there."""
    found = set(positions)
    for at, segment in enumerate(segments):
        found |= {at + 1} if segment is None and at in found else set()
    return found


def fold(text: str) -> str:
    """Return the form in which two spellings that differ in case or composition are equal."""
    return normalize("NFC", normalize("NFD", text).casefold())


def _intersect(a: Sequence[Any], b: Sequence[Any], items_overlap: Callable[[Any, Any], bool]) -> bool:
    """Return whether some sequence matches both, where None matches any run and no two runs are adjacent.

    Walks through `a` with the set of all positions in `b` that a matching sequence can have reached: bit n is
    set when it has matched `b[:n]`. So the work is bounded by the product of the lengths, whatever the runs.
    """
    runs = sum(1 << position for position, item in enumerate(b) if item is None)
    end = 1 << len(b)
    asked: dict[Any, tuple[int, int]] = {}  # where an item was compared, and where it matched
    positions = 1 | (runs & 1) << 1
    for item in a:
        if item is None:
            positions = -(positions & -positions) & (end * 2 - 1)  # all from the first position on
            continue
        compared, matched = asked.get(item, (runs | end, 0))
        for position in _bits(positions & ~compared):
            if items_overlap(item, b[position]):
                matched |= 1 << position
        asked[item] = compared | positions, matched
        positions = positions & runs | (positions & matched) << 1
        positions |= (positions & runs) << 1  # a run may also match nothing
        if not positions:
            return False
    return bool(positions & end)


def _bits(positions: int) -> Iterator[int]:
    while positions:
        lowest = positions & -positions
        yield lowest.bit_length() - 1
        positions ^= lowest


def _segments_overlap(a: Segment, b: Segment) -> bool:
    if isinstance(a, str):
        a, b = b, a
    if isinstance(b, str):
        if isinstance(a, str):
            return a == b
        ends = _ends_around_run(a)
        if ends is not None:
            return len(b) >= len(ends[0]) + len(ends[1]) and b.startswith(ends[0]) and b.endswith(ends[1])
    if isinstance(a, Spelled):
        return _segments_overlap(a.name, b) or _segments_overlap(a.characters, b)
    if isinstance(b, Spelled):
        return _segments_overlap(a, b.name) or _segments_overlap(a, b.characters)
    # Two runs also match the empty name, which is not a name, but they share every other name too.
    return a == b or _intersect(a, b, _characters_overlap)


@lru_cache(maxsize=256)
def _ends_around_run(segment: Characters | Spelled) -> tuple[str, str] | None:
    """Return the characters before and after the only wildcard of a segment like `test_*.py`, or None."""
    plain = [character for character in segment if isinstance(character, str)]
    if segment.count(None) != 1 or len(plain) != len(segment) - 1:
        return None
    at = segment.index(None)
    return "".join(plain[:at]), "".join(plain[at:])


def _characters_overlap(a: Character, b: Character) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a == b
    return a == b or bool(_shared(_ranges(a), _ranges(b)))


def _ranges(character: Character) -> Ranges:
    return ((ord(character), ord(character)),) if isinstance(character, str) else character


def _shared(a: Iterable[tuple[int, int]], b: Ranges) -> Ranges:
    """Return the ranges of the code points that are in both."""
    return tuple((max(x[0], y[0]), min(x[1], y[1])) for x in a for y in b if x[0] <= y[1] and y[0] <= x[1])


def _gaps(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of code points between the given ones."""
    free = 0
    for first, last in sorted(ranges):
        if free < first:
            yield free, first - 1
        free = max(free, last + 1)
    if free <= 0x10FFFF:
        yield free, 0x10FFFF


# Whatever a name can contain: no control characters, no "/", no surrogates.
_ANY: Ranges = tuple(_gaps([(0, 0x1F), (0x2F, 0x2F), (0x7F, 0x9F), (0xD800, 0xDFFF)]))


def _expand(text: str) -> list[str]:
    """Return the alternatives of a text with braces.

    Each open brace has a frame: the alternatives already complete, and those that are being written.
    """
    frames: list[tuple[list[str], list[str]]] = [([], [""])]
    for token in _tokens(text):
        done, writing = frames[-1]
        match token["brace"]:
            case "{":
                frames.append(([], [""]))
            case "}" if done:
                frames.pop()
                inner, (before, outer) = done + writing, frames[-1]
                frames[-1] = before, [start + end for start in outer for end in inner]
            case "}":
                raise _invalid(text, "has a } without alternatives", r"write {a,b}, or \{ and \} in a name")
            case "," if len(frames) > 1:
                frames[-1] = done + writing, [""]
            case _:
                frames[-1] = done, [start + token[0] for start in writing]
        if sum(map(len, frames[-1])) > ALTERNATIVES_MAX:
            hint = f"at most {ALTERNATIVES_MAX}; use a wildcard, or several patterns"
            raise _invalid(text, "has too many alternatives", hint)
    if len(frames) > 1:
        raise _invalid(text, "has a { that nothing closes", r"write {a,b}, or \{ in a name")
    return frames[0][1]


def _pattern(text: str) -> Pattern:
    """Return the pattern of a text without braces."""
    if not text:
        raise _invalid(text, "is not a path", "name a file or a directory; the whole repository is .")
    if text.startswith("/"):
        raise _invalid(text, "is absolute", "write the path from the root of the repository")
    written = [part for part in normalize("NFC", text).split("/") if part not in ("", ".")]
    if ".." in written:
        raise _invalid(text, "contains ..", "write the path from the root of the repository")
    spelled = "/".join(map(_without_needless_escapes, written)) or "."
    folded = fold(spelled)
    if len(folded.encode()) > PATTERN_BYTES_MAX:
        raise _invalid(text, "is too long", f"use at most {PATTERN_BYTES_MAX} bytes")
    parts = [list(_tokens(part)) for part in folded.split("/")] if written else []
    wildcards = sum(token.lastgroup in _WILDCARDS for part in parts for token in part)
    if wildcards > WILDCARDS_MAX:
        hint = f"use at most {WILDCARDS_MAX}; ** is any number of segments"
        raise _invalid(text, "has too many wildcards", hint)
    segments = list(map(_segment, parts))
    directory = tuple(_names(segments))
    if not wildcards:
        segments.append(None)
    elif segments[-1] is None:
        segments[-1:] = [(None,), None]
    single = (s for before, s in pairwise(["", *segments]) if s is not None or before is not None)
    spelling = tuple(map(_spelling, parts)) if wildcards and not _has_run(parts) else ()
    return Pattern(spelled, folded, not wildcards, directory, tuple(single), spelling)


def _has_run(parts: list[list[re.Match[str]]]) -> bool:
    """Whether a pattern has wildcards that no name of a directory contains: `*` or `?`."""
    return any(token.lastgroup in ("run", "one") for part in parts for token in part)


def _spelling(tokens: list[re.Match[str]]) -> str:
    """Return the name that a segment spells."""
    return "".join(token["escaped"] or _ESCAPE.sub(r"\1", token[0]) for token in tokens)


def _names(segments: Iterable[Segment | None]) -> Iterator[str]:
    """Yield the names in front of the first segment with a wildcard."""
    for segment in segments:
        if not isinstance(segment, str):
            return
        yield segment


def _segment(tokens: list[re.Match[str]]) -> Segment | None:
    kinds = {token.lastgroup for token in tokens}
    if kinds.isdisjoint(_WILDCARDS):
        return _spelling(tokens)
    if len(tokens) == 1 and tokens[0][0] == "**":
        return None
    characters = tuple(chain.from_iterable(map(_characters, tokens)))
    return Spelled(characters, _spelling(tokens)) if "members" in kinds else characters


def _characters(token: re.Match[str]) -> Iterable[Character | None]:
    match token.lastgroup:
        case "run":
            return (None,)
        case "one":
            return (_ANY,)
        case "members":
            return (_class(token),)
        case _:
            return token["escaped"] or token[0]


def _class(token: re.Match[str]) -> Ranges:
    ranges = [(ord(m["first"]), ord(m["last"] or m["first"])) for m in re.finditer(_RANGE, token["members"])]
    if any(first > last for first, last in ranges):
        raise _invalid(token[0], "has a range that runs backwards in lower case", "write [a-z] or [_a-z]")
    possible = _shared(_gaps(ranges) if token["negated"] else ranges, _ANY)
    if not possible:
        raise _invalid(token[0], "matches no character", "name at least one that a file name can have")
    return possible


def _without_needless_escapes(part: str) -> str:
    """Return one spelling for all that differ in backslashes alone, after a look into the classes."""
    tokens = list(_tokens(part))
    for member in "".join(token["members"] or "" for token in tokens):
        if len(fold(member)) > 1:
            hint = f"it is compared as {fold(member)}: write {{{member},…}} instead"
            raise _invalid(part, f"has {member} in a class", hint)
    return "".join(
        token["escaped"] if token["escaped"] and not _SPECIAL.match(token["escaped"]) else token[0]
        for token in tokens
    )


@cache
def _token() -> re.Pattern[str]:
    """Return the compiled pattern; compiling takes long, and most paths have no special characters."""
    return re.compile(_TOKEN)


def _tokens(text: str) -> Iterator[re.Match[str]]:
    position, token_at = 0, _token().match
    while position < len(text):
        token = token_at(text, position)
        if token is None and text[position] == "[":
            raise _invalid(
                text, "has a [ that does not begin a class", r"write [abc] or [!a-z], or \[ in a name"
            )
        if token is None:
            hint = r"between segments write /; a backslash goes before one of \ * ? [ ] { } , ! ^ -"
            raise _invalid(text, "has a backslash that escapes nothing", hint)
        yield token
        position = token.end()


def _invalid(text: str, problem: str, hint: str) -> Invalid:
    return Invalid(f"{short_repr(text)} {problem}", hint=hint)
