"""Every `coord …` command that a text of the source names exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import coord
from coord.transports.cli.commands.registry import all_commands, find, first_words, is_noun

SOURCE = Path(coord.__file__).parent
NAMED = re.compile(r"(^|`|[Rr]un |: |\(|; )?\bcoord ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
PROSE = frozenset(("does", "has", "inside", "made", "may", "records", "there", "tried", "uses"))
"""Words after "coord" in hints that speak about the program; none of them is a command."""


def texts(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a module, and whether each is a hint; a value that is filled in becomes `…`."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    hints = {id(node.value) for node in nodes if isinstance(node, ast.keyword) and node.arg == "hint"}
    parts: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))  # a docstring
        elif isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            filled = (each.value if isinstance(each, ast.Constant) else "…" for each in node.values)
            yield "".join(map(str, filled)), id(node) in hints
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value, id(node) in hints


def named_commands() -> Iterator[tuple[str, str, str]]:
    """Yield the file and the words of each command: in hints, after `run`, in backquotes, and of nouns."""
    for path in sorted(SOURCE.rglob("*.py")):
        for text, is_hint in texts(path):
            for before, first, second in NAMED.findall(text):
                leads = before in ("`", "run ", "Run ") or (is_hint and (before or text.startswith("coord ")))
                if leads or is_noun(first):
                    yield str(path.relative_to(SOURCE)), first, second


def test_every_command_that_a_text_names_exists() -> None:
    """A hint that leads to an unknown command is worse than none."""
    known = {*first_words(), *(each.alias for each in all_commands() if each.alias)}
    named = [each for each in named_commands() if each[1] not in PROSE]
    assert len(named) > 50, "the search finds hints at all"
    wrong = [
        (where, first, second)
        for where, first, second in named
        if first not in known or (is_noun(first) and find(f"{first} {second}") is None)
    ]
    assert wrong == []


def test_no_command_hides_among_the_prose() -> None:
    """A command with such a name would never be checked."""
    assert not PROSE & {*first_words(), *(each.alias for each in all_commands() if each.alias)}
