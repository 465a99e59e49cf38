"""The specialisation matrix: task types, the words that indicate them, and the agents that do them best.

The core ships six types with their words. The agents come from data: `matrix_with` adds the rows of the
host's presets and of a repository's configuration.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import msgspec

from coord.core.errors import Invalid
from coord.core.tasks.schema import Spec

MANY_FILES = 6

_WORD = re.compile(r"\w+")
T = TypeVar("T")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A type of task: the words that indicate it, the agents that do it best, and why.

    Weak words count only if no other word matches: “create” in “create tests” says less than “tests”.
    """

    title: str = ""
    agents: tuple[str, ...] = ()
    because: str = ""
    words: tuple[str, ...] = ()
    weak_words: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


Matrix = Mapping[str, Row]

TASK_TYPES: Matrix = {
    "code_gen": Row(
        title="Code generation",
        words=("scaffold", "prototype"),
        weak_words=("build", "create", "generate", "implement", "add", "develop", "write", "new"),
        also=("code_generation", "feature"),
    ),
    "review": Row(
        title="Code review, refactoring",
        words=("refactor", "optimize", "optimise", "review", "simplify", "rename", "restructure"),
        weak_words=("improve", "clean", "fix", "analyze", "analyse"),
        also=("refactor", "code_review"),
    ),
    "api": Row(
        title="API integration",
        words=("integrate", "webhook", "oauth", "scrape"),
        weak_words=("api", "integration", "fetch", "endpoint", "retrieve"),
        also=("api_integration", "integration"),
    ),
    "doc": Row(
        title="Documentation and comments",
        words=(
            "document",
            "documentation",
            "docs",
            "readme",
            "comment",
            "docstring",
            "tutorial",
            "changelog",
        ),
        weak_words=("explain", "describe"),
        also=("docs", "documentation"),
    ),
    "testing": Row(
        title="Testing",
        words=("test", "pytest", "coverage", "fixture"),
        weak_words=("verify", "check"),
        also=("test", "tests"),
    ),
    "script": Row(
        title="Shell scripts and automation",
        words=("bash", "shell", "script", "automate", "automation", "cron", "makefile", "ci"),
        weak_words=("deploy", "pipeline"),
        also=("bash", "automation"),
    ),
}


class Size(StrEnum):
    """How demanding a task is."""

    SMALL = "small"
    NORMAL = "normal"
    LARGE = "large"


SIZE_WORDS = {
    Size.LARGE: (
        "architecture",
        "redesign",
        "rewrite",
        "migrate",
        "migration",
        "entire",
        "overhaul",
        "complex",
    ),
    Size.SMALL: ("typo", "minor", "tiny", "trivial", "simple", "tweak", "small"),
}


class Kind(NamedTuple):
    """The type and size of a task, and the word that decided."""

    type: str
    size: Size
    because: str


def matrix_with(tables: Any, file: str = "", matrix: Matrix = TASK_TYPES) -> Matrix:
    """Return the matrix with rows from the configuration; in an existing row, the given fields change."""
    rows = dict(matrix)
    for name, table in tables.items():
        given = convert_table(table, Row, f"{file}: [routing.types.{name}]")
        named = {field: getattr(given, field) for field in Row.__struct_fields__ if field in table}
        rows[name] = msgspec.structs.replace(rows.get(name, Row(title=name)), **named)
    return rows


def convert_table(table: Any, kind: type[T], what: str) -> T:
    """Return a table of the configuration as a struct of this type."""
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"{what}: {error}", hint="docs/reference/routing.md lists the fields") from error


def classify(task: Spec, matrix: Matrix = TASK_TYPES) -> Kind:
    """Return the type and size of a task, and the word that decided; a given type wins."""
    stems = _stems(task.description)
    size, size_because = _size(task, stems)
    if task.type:
        return Kind(type_name(task.type, matrix), size, f"the type was given, {size_because}")
    for strength in ("words", "weak_words"):
        types = {stem(word): name for name, row in matrix.items() for word in getattr(row, strength)}
        for word, root in stems.items():
            if root in types:
                return Kind(types[root], size, f"the word “{word}” decided, {size_because}")
    return Kind("", size, f"no word of it names a type, {size_because}")


def type_name(name: str, matrix: Matrix = TASK_TYPES) -> str:
    """Return the name that the matrix uses for a type."""
    if name in matrix:
        return name
    return next((own for own, row in matrix.items() if name in row.also), name)


def names_of(name: str, matrix: Matrix = TASK_TYPES) -> set[str]:
    """Return all names of a type."""
    own = type_name(name, matrix)
    return {name, own, *matrix.get(own, Row()).also}


def stem(word: str) -> str:
    """Return a word without its ending, so that “creates” and “creating” are “create”."""
    word = word.casefold()
    for ending, instead in (
        ("ies", "y"),
        ("ied", "y"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
        ("e", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + instead
    return word


def _stems(description: str) -> dict[str, str]:
    """Return the words in order, each with its stem, without file names."""
    plain = " ".join(part for part in description.split() if not ("/" in part and "." in part))
    return {word: stem(word) for word in _WORD.findall(plain)}


def _size(task: Spec, stems: Mapping[str, str]) -> tuple[Size, str]:
    given = task.requirements.get("complexity")
    if given in list(Size):
        return Size(given), f"{given} as given"
    for size, size_words in SIZE_WORDS.items():
        roots = {stem(word) for word in size_words}
        for word, root in stems.items():
            if root in roots:
                return size, f"{size.value} by the word “{word}”"
    if len(task.files) >= MANY_FILES:
        return Size.LARGE, f"large by {len(task.files)} files"
    return Size.NORMAL, "normal in size"
