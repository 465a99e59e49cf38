"""Overlap of patterns beside brute force: every short path, matched by the obvious recursive matcher.

Why short paths suffice. A shortest path that matches two patterns has no character that falls into a run of
both: left out, the rest would still match both. So each of its characters is asked for by a single-character
token of one of the two, and a common name of two segments is no longer than they have such tokens together.
The same holds for segments: a common path has no more of them than the two patterns have besides `**`, and
one more where `**` is the last (it wants one, whichever). The letter c stands for all that no token names.
A segment with a class has one name more, the one that is spelled like it.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations_with_replacement, product
from unicodedata import normalize

from hypothesis import example, given, settings
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.core.locks.paths import covers, fold, literal_path, overlaps, parse_pattern
from coord.core.locks.resources import parse_resource
from tests.conftest import SOAK

quick = settings(max_examples=20_000 if SOAK else 100)

ONE = {"a": "a", "b": "b", "?": "abc", "[ab]": "ab", "[!a]": "bc", "[^ab]": "c", "[a-b]": "ab"}
"""What each token for a single character stands for."""
Tokens = tuple[str, ...]
Path = tuple[Tokens, ...]
ANY_SEGMENTS = ("**",)


def words(letters: str, most: int, least: int = 1) -> list[str]:
    return ["".join(w) for size in range(least, most + 1) for w in product(letters, repeat=size)]


@cache
def name_matches(tokens: Tokens, name: str) -> bool:
    if not tokens:
        return not name
    if tokens[0] == "*":
        return any(name_matches(tokens[1:], name[start:]) for start in range(len(name) + 1))
    first = name[:1] if name[:1] in tuple("abc") else "c" if name else ""
    return first in tuple(ONE[tokens[0]]) and name_matches(tokens[1:], name[1:])


def segment_matches(tokens: Tokens, name: str) -> bool:
    """Whether a segment matches a name; one with a class also matches the name that is spelled like it."""
    return name_matches(tokens, name) or (has_class(tokens) and name == "".join(tokens))


def has_class(tokens: Tokens) -> bool:
    return any(len(token) > 1 for token in tokens) and tokens != ANY_SEGMENTS


def path_matches(pattern: Path, names: Sequence[str]) -> bool:
    if not any({"*", "?", "**"} & {*tokens} for tokens in pattern) and [*names[: len(pattern)]] == [
        "".join(tokens) for tokens in pattern
    ]:
        return True  # it may be a folder, with everything below
    if all(set(tokens) <= {"a", "b"} for tokens in pattern):
        return False
    return segments_match(pattern, names)


def segments_match(pattern: Path, names: Sequence[str]) -> bool:
    if not pattern:
        return not names
    if pattern[0] != ANY_SEGMENTS:
        return (
            bool(names) and segment_matches(pattern[0], names[0]) and segments_match(pattern[1:], names[1:])
        )
    if len(pattern) == 1:
        return bool(names)
    return any(segments_match(pattern[1:], names[start:]) for start in range(len(names) + 1))


def written(pattern: Path) -> str:
    return "/".join("".join(tokens) for tokens in pattern)


def disagreements(patterns: list[Path], paths: Iterable[Sequence[str]]) -> list[tuple[str, str, bool]]:
    """Return the pairs where `overlaps` differs from brute force, with what brute force found."""
    known = list(paths)
    matched = [sum(1 << n for n, path in enumerate(known) if path_matches(p, path)) for p in patterns]
    parsed = [parse_pattern(written(pattern))[0] for pattern in patterns]
    return [
        (parsed[i].spelled, parsed[j].spelled, bool(matched[i] & matched[j]))
        for i, j in combinations_with_replacement(range(len(patterns)), 2)
        if not bool(matched[i] & matched[j])
        == overlaps(parsed[i], parsed[j])
        == overlaps(parsed[j], parsed[i])
    ]


def test_every_pair_of_short_segments() -> None:
    """LCK-76, CFL-19: all segments of up to three tokens, beside all names of up to six characters."""
    tokens = ["a", "b", "*", "?", "[ab]", "[!a]"]
    segments = [t for size in (1, 2, 3) for t in product(tokens, repeat=size) if t != ("*", "*")]
    patterns: list[Path] = [(t,) for t in segments]
    spelled = ["".join(t) for t in segments if has_class(t)]
    assert disagreements(patterns, [(name,) for name in words("abc", 6) + spelled]) == []


def test_every_pair_of_short_paths() -> None:
    """LCK-76, CFL-19: all paths of up to three segments, beside all paths of up to six.

    Three names suffice: any other name is matched by no segment that does not match one of them too.
    """
    segments: list[Tokens] = [("a",), ("a", "*"), ("?",), ("*",), ANY_SEGMENTS]
    patterns = [p for size in (1, 2, 3) for p in product(segments, repeat=size)]
    paths = (path for size in range(1, 7) for path in product(("a", "b", "ab"), repeat=size))
    assert disagreements(patterns, paths) == []


singles = st.sampled_from(sorted(ONE))
stars = st.sampled_from([(), ("*",)])
# Up to two single characters, with stars around them.
some_segments = st.builds(
    lambda first, one, middle, two, last: first + one + middle + two + last,
    stars,
    st.tuples(singles),
    stars,
    st.one_of(st.just(()), st.tuples(singles)),
    stars,
) | st.just(("*",))
many = st.sampled_from([(), (ANY_SEGMENTS,)])
# Up to two segments, with any number of others around them.
some_paths = st.builds(
    lambda first, one, middle, two, last: first + one + middle + two + last,
    many,
    st.tuples(some_segments),
    many,
    st.one_of(st.just(()), st.tuples(some_segments)),
    many,
)
NAMES = words("abc", 4)


def _is_less(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether a name matches some of the segments that another one matches, and no others."""
    return one != other and all(b or not a for a, b in zip(one, other, strict=True))


@settings(quick, max_examples=2_000 if SOAK else 200)
@given(some_paths, some_paths)
@example((ANY_SEGMENTS, ("a",)), (("a", "b"), ("a",)))
@example((("a",), ("[!a]", "*")), (("*",), ("*", "a")))
@example((("[ab]", "b"),), (("[ab]", "b"), ("[!a]", "a")))
@example((("[ab]", "b"),), (ANY_SEGMENTS, ("a",)))
def test_mixed_pairs(one: Path, other: Path) -> None:
    """LCK-76, CFL-19: paths whose segments are of every kind.

    Of names that the same segments match, one stands for all: no pattern can tell them apart. A name that
    matches fewer segments than another one can be replaced by it, so only those with the most are tried.
    """
    segments = [tokens for tokens in one + other if tokens != ANY_SEGMENTS]
    spelled = ["".join(tokens) for tokens in segments if has_class(tokens)]
    kinds: dict[tuple[object, ...], str] = {
        tuple(segment_matches(t, name) for t in segments): name for name in NAMES
    }
    kinds = {
        found: name for found, name in kinds.items() if not any(_is_less(found, other) for other in kinds)
    }
    kinds |= {(*(segment_matches(t, name) for t in segments), name): name for name in spelled}
    paths = (path for size in range(1, 6) for path in product(kinds.values(), repeat=size))
    common = any(path_matches(one, path) and path_matches(other, path) for path in paths)
    [a], [b] = parse_pattern(written(one)), parse_pattern(written(other))
    assert overlaps(a, b) is common
    assert overlaps(b, a) is common


@settings(quick, max_examples=2_000 if SOAK else 200)
@given(some_paths, st.lists(st.sampled_from([*NAMES, "[ab]", "[!a]b"]), min_size=1, max_size=5))
def test_single_file_meets_what_matches_it(glob: Path, path: list[str]) -> None:
    """LCK-76, CFL-19: a glob and a single file meet if and only if the glob matches the file."""
    (pattern,) = parse_resource(f"file:{written(glob)}", "r")
    (file,) = parse_resource(f"file:{literal_path('/'.join(path)).spelled}", "r", exact=True)
    if not pattern.pattern.literal:  # type: ignore[union-attr]
        assert pattern.overlaps(file) is file.overlaps(pattern) is path_matches(glob, path)


characters = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/")
names = st.text(st.sampled_from("abAB.[]{}*?!-^\\,éßǰ") | characters, min_size=1, max_size=6).filter(
    lambda name: name not in (".", "..")
)


@st.composite
def loosened(draw: st.DrawFn, path: Sequence[str]) -> str:
    """A pattern that covers a path: its text with some characters and segments replaced by wildcards."""
    parts: list[str] = []
    for name in path:
        if draw(st.integers(0, 4)) == 0:
            parts.append("**")
        if draw(st.integers(0, 4)) > 0 or parts[-1:] != ["**"]:
            parts.append("".join(draw(loosened_character(c)) for c in fold(name)))
    return "/".join(parts)


@st.composite
def loosened_character(draw: st.DrawFn, character: str) -> str:
    plain = literal_path(character).spelled if character != "." else "."
    choices = [plain, plain, plain, "?", "*", "*" + plain]
    if character not in "\\[]!^-" and len(fold(character)) == 1:
        choices += [f"[{character}]", f"[!{'y' if character == 'x' else 'x'}]", f"[^{chr(0x10FFFF)}]"]
    return draw(st.sampled_from(choices))


@quick
@given(st.data(), st.lists(names, min_size=1, max_size=5))
def test_whatever_covers_one_path_overlaps(data: st.DataObject, path: list[str]) -> None:
    """CFL-19: two patterns made from one path, of any characters, cover it, so they meet."""
    [a], [b] = (parse_pattern(data.draw(loosened(path))) for _ in range(2))
    assert covers(a, literal_path("/".join(path)))
    assert covers(b, literal_path("/".join(path)))
    assert overlaps(a, b)
    assert overlaps(b, a)
    assert overlaps(a, literal_path("/".join(path)))


@quick
@given(st.text(st.sampled_from("abAé\u0301ßİ.*?[]{},!^-\\//") | st.characters(), max_size=20))
@example("[J\u030c]{a,\\]}")
@example("{e,\u0345}\u0301")
@example("a\\[\u0338")
def test_any_text_is_refused_or_has_one_form(text: str) -> None:
    """CFL-4: what is stored is read back as the same pattern, and so is what is shown; it meets itself."""
    try:
        patterns = parse_pattern(text)
    except Invalid:
        return
    assert 1 <= len(patterns) <= 65
    for pattern in patterns:
        [stored], [shown] = parse_pattern(pattern.folded), parse_pattern(pattern.spelled)
        assert stored == pattern._replace(spelled=pattern.folded)
        assert shown == pattern
        assert overlaps(pattern, pattern)
        assert ".." not in pattern.directory


@quick
@given(st.lists(names, min_size=1, max_size=4).map("/".join))
def test_spellings_of_one_path_are_one(path: str) -> None:
    """A path in either case, composed or not, is one resource: it has one stored form."""
    other_case = "".join(c.swapcase() if c.isascii() else c for c in path)
    spellings = [path, normalize("NFC", path), normalize("NFD", path), other_case]
    assert len({literal_path(spelling).folded for spelling in spellings}) == 1
    assert all(covers(literal_path(path), literal_path(spelling)) for spelling in spellings)
