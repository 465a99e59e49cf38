"""Paths and globs: how they are read, what is refused, and which of them meet."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.core.locks.paths import (
    Character,
    Pattern,
    Segment,
    Spelled,
    _characters_overlap,
    _expand,
    _intersect,
    _pattern,
    _plain,
    covers,
    literal_path,
    overlaps,
    parse_pattern,
)

MEET = {
    "a path meets itself": ("src/a.py", "src/a.py"),
    "a directory and what is below": ("src", "src/a/b"),
    "a directory and a pattern below": ("src", "src/*.py"),
    "a pattern and what may become a directory": ("src/*/b", "src/a"),
    "the root and a path": (".", "src/a.py"),
    "the root and a pattern": (".", "**/*.py"),
    "LCK-76, SCN-46": ("src/auth/*", "src/auth/login.ts"),
    "stars at different places": ("src/*/x.py", "src/a/*.py"),
    "stars of two ends": ("a*", "*b"),
    "a star is also nothing": ("a*b", "ab"),
    "a star is also a leading dot": ("*", ".gitignore"),
    "a path and what two stars match below": ("src/**", "src/a/b"),
    "a directory and two stars below": ("src/**", "src"),
    "two stars in front, no segment": ("**/a.py", "a.py"),
    "two stars in front, some segments": ("**/a.py", "x/y/a.py"),
    "two stars in the middle, no segment": ("a/**/b", "a/b"),
    "two stars in the middle, some segments": ("a/**/b", "a/x/y/b"),
    "two stars twice": ("a/**/**/b", "a/b"),
    "two stars at both ends": ("**/a/**", "x/**/b"),
    "two stars within a segment are one": ("a**b", "axb"),
    "three stars are one": ("***", "a"),
    "a question mark": ("a?c", "abc"),
    "a question mark and a class": ("?", "[!a]"),
    "a class": ("[abc]x", "bx"),
    "classes with a common character": ("[a-m]x", "[m-z]x"),
    "two negated classes": ("[!a]", "[^b]"),
    "a class and a negated one": ("[ab]", "[!b]"),
    "a bracket as first member": ("[]a]", "\\]"),
    "not a bracket": ("[!]a]", "b"),
    "a bracket in a class": ("[[]1]", "\\[1]"),
    "a dash as last member": ("[a-]", "-"),
    "an escaped dash": ("[a\\-z]", "-"),
    "an escaped bracket in a class": ("[\\]]", "]"),
    "a needless escape": ("a\\]", "a]"),
    "case": ("SRC/Main.py", "src/main.PY"),
    "case in a class": ("[A-C]x", "bX"),
    "sharp s": ("STRASSE", "straße"),
    "final sigma": ("ΛΟΓΟΣ", "λογος"),
    "composition": ("caf\u00e9", "cafe\u0301"),
    "composition beside a wildcard": ("CAF\u00c9*", "cafe\u0301.txt"),
    "composition in a class": ("caf[e\u0301]", "caf\u00e9"),
    "the Kelvin sign": ("\u212a", "k"),
    "beyond the first plane": ("?", "😀"),
}

APART = {
    "two files": ("src/a.py", "src/b.py"),
    "a name that begins the same": ("src", "srcs/a"),
    "a star stays in its segment": ("src/*", "src/a/b.py"),
    "a star is not a slash": ("src*b", "src/b"),
    "two stars as a segment are whole segments": ("**/b", "*ab"),
    "two stars within a segment stay there": ("a**b", "a/b"),
    "two stars at the end are at least one segment": ("src/**", "src*"),
    "different ends": ("*.py", "*.ts"),
    "different ends below": ("src/**/*.py", "src/**/*.ts"),
    "different depth": ("*/*", "*"),
    "longer than all": ("a?", "a"),
    "an end that would be used twice": ("*ab", "a*b?"),
    "classes apart": ("[a-c]x", "[d-f]x"),
    "a class and its opposite": ("[a-c]", "[!a-c]"),
    "a class covered by an opposite in pieces": ("[a-d]", "[!abcd]"),
    "a class is never a slash": ("a[+-9]b", "a/b"),
    "a negated class in any order": ("[!za]", "a"),
    "a negated class with a range in a range": ("[!a-zb]", "y"),
    "three stars stay in their segment": ("***", "*/a"),
    "a dash between is a range": ("[a-c]", "-"),
    "an escaped star is a star": ("\\*", "a"),
    "an escaped dash is no range": ("[a\\-c]", "b"),
    "letters that only look alike": ("a", "\u0430"),
}

REFUSED = {
    "empty": "",
    "empty alternative": "{a,}",
    "absolute": "/etc/passwd",
    "absolute alternative": "{a,/b}",
    "only a slash": "/",
    "parent": "../a",
    "parent inside": "a/../b",
    "parent at the end": "a/..",
    "parent by braces": "a/{.,b}./c",
    "NUL": "a\0b",
    "newline": "a\nb",
    "newline at the end": "a\n",
    "escape": "a\x1b[0m",
    "delete": "a\x7f",
    "C1 control": "a\x85",
    "lone surrogate": "a\ud800",
    "too long": "x" * 513,
    "too long when folded": "ß" * 200 + "İ" * 100,
    "a long text": "{" + "a," * 4096 + "}",
    "class without end": "a[bc",
    "empty class": "[]",
    "empty negated class": "[!]",
    "class over a slash": "[a/b]",
    "POSIX class": "[[:alpha:]]",
    "range backwards": "[z-a]",
    "range backwards when folded": "[Z-_]",
    "class of nothing": "[! -\U0010ffff]",
    "class of a slash alone": "[! -.0-\U0010ffff]",
    "class with a character that folds into two": "[ß]",
    "brace without end": "{a,b",
    "brace without begin": "a,b}",
    "brace without alternatives": "{{name}}",
    "too many alternatives": "{a,b}" * 7,
    "too many alternatives at once": "{" + ",".join("a" * n for n in range(1, 66)) + "}",
    "deep braces": "{" * 4000,
    "too many wildcards": "?" * 65,
    "too many stars": "*a" * 65,
    "backslash at the end": "a\\",
    "backslash as a separator": "src\\app.py",
}


def one(text: str) -> Pattern:
    [pattern] = parse_pattern(text)
    return pattern


@pytest.mark.parametrize("pair", MEET.values(), ids=MEET)
def test_they_meet(pair: tuple[str, str]) -> None:
    """LCK-76, CFL-19: what has a path in common overlaps, from both sides."""
    a, b = map(one, pair)
    assert overlaps(a, b)
    assert overlaps(b, a)


@pytest.mark.parametrize("pair", APART.values(), ids=APART)
def test_they_stay_apart(pair: tuple[str, str]) -> None:
    """CFL-19: what has no path in common never overlaps, so nobody waits for nothing."""
    a, b = map(one, pair)
    assert not overlaps(a, b)
    assert not overlaps(b, a)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_refused(text: str) -> None:
    """CFL-4: a path that leaves the repository or cannot be a name is refused, with the next step."""
    with pytest.raises(Invalid) as caught:
        parse_pattern(text)
    assert caught.value.hint
    assert len(str(caught.value)) < 250


def test_spelling_is_kept_and_form_is_folded() -> None:
    """Dots and slashes that mean nothing go; case and composition stay in the spelling alone."""
    pattern = one("./Src//./Cafe\u0301/[A-C]*/x/")
    assert pattern.spelled == "Src/Caf\u00e9/[A-C]*/x"
    assert pattern.folded == "src/caf\u00e9/[a-c]*/x"
    assert pattern.directory == ("src", "caf\u00e9")
    assert not pattern.literal


@pytest.mark.parametrize("text", [".", "./", "./.", ".//"])
def test_the_root_is_everything(text: str) -> None:
    """The root is written as a dot, and has no directory."""
    root = one(text)
    assert (root.spelled, root.folded, root.literal, root.directory) == (".", ".", True, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a,b}/c", ["a/c", "b/c", r"\{a,b\}/c"]),
        ("x{,y}", ["x", "xy", r"x\{,y\}"]),
        ("{a,{b,c}d}e", ["ae", "bde", "cde", r"\{a,\{b,c\}d\}e"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd", r"\{a,b\}\{c,d\}"]),
        ("src/{*,**}/x", ["src/*/x", "src/**/x", r"src/\{*,**\}/x"]),
        ("{a,A}", ["a", r"\{a,a\}"]),
        ("a,b", ["a,b"]),
        ("{a\\,b,c}", ["a,b", "c", r"\{a,b,c\}"]),
        ("[{,}]", ["[{,}]"]),
        ("{e,a}\u0301", ["\u00e9", "\u00e1", "\\{e,a\\}\u0301"]),
    ],
)
def test_braces(text: str, expected: list[str]) -> None:
    """`{a,b}` is one pattern for each alternative and one for the name; escaped, it means itself."""
    assert [pattern.folded for pattern in parse_pattern(text)] == expected


def test_as_many_as_allowed() -> None:
    """The limits are limits, not one less: alternatives, wildcards, bytes."""
    assert len(parse_pattern("{a,b}" * 6)) == 64 + 1
    assert not one("?" * 64).literal
    assert one("é" * 256).literal


@pytest.mark.parametrize("name", ["a[1].py", "[id]", "{{name}}", "a*", "what?", "a\\b", "a,b}", "-!^"])
def test_a_literal_path_means_its_characters(name: str) -> None:
    """A file whose name looks like a glob can be named, and its stored form means the same file."""
    path = literal_path("dir/" + name)
    assert path.literal
    assert path.directory == ("dir", name)
    assert one(path.folded) == path
    assert covers(path, literal_path("dir/" + name))
    assert not covers(path, literal_path("dir/i"))


def test_escapes_that_change_nothing_leave_no_trace() -> None:
    """One file has one stored form, however many backslashes it was written with."""
    assert one("a\\]\\,\\-.py") == one("a],-.py")
    assert one("a\\[1\\].py") == literal_path("a[1].py")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("src", "src", True),
        ("src", "SRC/a/b", True),
        ("src/a", "src", False),
        ("src/**", "src", False),
        ("src/**", "src/a/b", True),
        ("src/*", "src/a/b", False),
        ("src/*", "./src//A", True),
        ("*.py", "[x].py", True),
        (".", ".", True),
        ("**", ".", False),
    ],
)
def test_covers(pattern: str, path: str, expected: bool) -> None:
    """A concrete path belongs to a pattern without what is below the path."""
    assert covers(one(pattern), literal_path(path)) is expected


@pytest.mark.parametrize("path", ["", "../a", "/a", "a\0"])
def test_literal_path_refuses_what_is_no_path(path: str) -> None:
    """CFL-4: the root covers everything in the repository, and nothing outside."""
    with pytest.raises(Invalid):
        literal_path(path)


HARD = [
    "*a" * 64 + "b",
    "*a" * 64 + "c",
    "*aaaaaaa" * 63 + "b",
    "**/a/" * 64 + "b",
    "**/a/" * 64 + "c",
    "*a/**/" * 32 + "b",
    "a*/**/" * 32 + "c",
    "**/" + "/".join(f"{n:x}" for n in range(150)),
    "**/" + "/".join(f"{n:x}*" for n in range(63)),
    "[!ab]*" * 32 + "a",
    "?*" * 32 + "b",
]


def _characters(segment: Segment | None) -> Any:
    return segment.characters if isinstance(segment, Spelled) else segment


@pytest.mark.parametrize(("a", "b"), list(product(HARD, repeat=2)))
def test_a_pattern_made_to_be_slow_is_not(a: str, b: str) -> None:
    """What stands in one pattern often is compared with each place of the other only once."""
    compared = 0

    def characters_overlap(x: Character, y: Character) -> bool:
        nonlocal compared
        compared += 1
        return _characters_overlap(x, y)

    first, second = one(a), one(b)
    intersects = _intersect(
        first.segments,
        second.segments,
        lambda x, y: _intersect(_characters(x), _characters(y), characters_overlap),
    )
    assert intersects is overlaps(first, second)
    assert compared <= len(set(a)) * len(set(a.split("/"))) * len(b)


def test_stars_that_almost_meet() -> None:
    """Sixty-four stars with different ends stay apart; a search through every split would not end."""
    assert not overlaps(one("*a" * 64 + "b"), one("*a" * 64 + "c"))
    assert not overlaps(one("**/a/" * 63 + "b*"), one("**/a/" * 63 + "c*"))


@given(st.text(st.sampled_from("aB.é/ ,-!]^*[{}\\\x7f"), max_size=12))
def test_an_ordinary_path_is_read_as_its_tokens_say(text: str) -> None:
    """The short way to read a path gives what the long way gives, or leaves the path to it."""
    plain = _plain(text)
    assert plain is None or [plain] == [_pattern(each) for each in _expand(text)]


def test_the_paths_of_most_repositories_are_ordinary() -> None:
    assert _plain("src/Part-1/form_2.test.py") == Pattern(
        "src/Part-1/form_2.test.py",
        "src/part-1/form_2.test.py",
        True,
        ("src", "part-1", "form_2.test.py"),
        ("src", "part-1", "form_2.test.py", None),
    )
    for text in ("", ".", "a//b", "a/../b", "/a", "a*", "\u00e9", "a\tb", "a/", "x" * 600):
        assert _plain(text) is None
