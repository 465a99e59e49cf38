"""Every `coord …` command that a text of the source names exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import coord
from coord.transports.cli.commands.registry import all_commands, find, first_words, is_noun

SOURCE = Path(coord.__file__).parent
NAMED = re.compile(r"\bcoord ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
PROSE = frozenset(
    [
        "allowed",
        "asks",
        "begin",
        "can",
        "cannot",
        "could",
        "decides",
        "did",
        "does",
        "end",
        "frees",
        "has",
        "hooks",
        "in",
        "inside",
        "is",
        "keeps",
        "knows",
        "leaves",
        "made",
        "may",
        "never",
        "on",
        "reads",
        "records",
        "removes",
        "restored",
        "store",
        "there",
        "to",
        "tried",
        "uses",
        "was",
        "would",
        "writes",
        "wrote",
        "revoke",
        "and",
    ]
)
"""Words after "coord" where a text speaks about the program; none of them is a command."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module with their lines; a value that is filled in later becomes `…`."""
    parts: set[int] = set()
    nodes = list(ast.walk(ast.parse(path.read_text())))
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))  # a docstring
        elif isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            filled = (each.value if isinstance(each, ast.Constant) else "…" for each in node.values)
            yield node.lineno, "".join(map(str, filled))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def named_commands() -> Iterator[tuple[str, str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for line, text in texts(path):
            for first, second in NAMED.findall(text):
                yield f"{path.relative_to(SOURCE)}:{line}", first, second


def test_every_command_that_a_text_names_exists() -> None:
    """A hint that leads to an unknown command is worse than none."""
    known = {*first_words(), *(each.alias for each in all_commands() if each.alias)}
    named = [each for each in named_commands() if each[1] not in PROSE]
    assert len(named) > 100, "the search finds hints at all"
    wrong = [
        (where, first, second)
        for where, first, second in named
        if first not in known or (is_noun(first) and find(f"{first} {second}") is None)
    ]
    assert wrong == []


def test_no_command_hides_among_the_prose() -> None:
    """A command with such a name would never be checked."""
    assert not PROSE & {*first_words(), *(each.alias for each in all_commands() if each.alias)}
