"""Parse a command line with the grammar of bash (tree-sitter-bash).

The packages are imported with the first line that is parsed, because only shell tools need them. The package
of the grammar imports `importlib.resources`, which takes longer than everything else here together, so only
its binding is loaded.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LINE_BYTES_MAX = 24_000
"""The parser needs quadratic time for hostile lines: one second for this many bytes."""
_HERE_DOCUMENT = re.compile(
    r"(<<-?\s*(['\"\\]?)([A-Za-z_]\w*)\2[^\n]*\n).*?^([ \t]*\3)$", re.DOTALL | re.MULTILINE
)


RESERVED = frozenset(
    (
        *("{", "}", "!", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case"),
        *("esac", "in", "function", "select", "[["),
    )
)
"""Words that name no command; where the grammar takes one for a command, it has lost the structure."""


class Script(NamedTuple):
    """A parsed line: the bytes that its nodes point into, and whether all of it was understood."""

    source: bytes
    root: Node
    whole: bool

    def text(self, start: int, end: int) -> str:
        """Return a part of the line."""
        return self.source[start:end].decode("utf-8", "surrogatepass")


def parse(text: str) -> Script | None:
    """Return a parsed line; None if it is too long, or if there is no parser."""
    try:
        source = text.encode("utf-8", "surrogatepass")
    except UnicodeEncodeError:
        return None
    short = len(source) <= LINE_BYTES_MAX
    if not short:
        source = _HERE_DOCUMENT.sub(r"\1\4", text).encode("utf-8", "surrogatepass")
    if len(source) > LINE_BYTES_MAX or b"\0" in source or load_error():
        return None
    root = _parser().parse(source).root_node
    return Script(source, root, short and not root.has_error)


@cache
def load_error() -> str:
    """Return why the grammar cannot be loaded; "" if it can."""
    try:
        _parser()
    except (ImportError, OSError, ValueError, AttributeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@cache
def _parser() -> Parser:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    from tree_sitter import Language, Parser

    package = PathFinder.find_spec("tree_sitter_bash")
    folders = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec("tree_sitter_bash._binding", folders) if folders else None
    if spec is None or spec.loader is None:
        raise ImportError("tree_sitter_bash is not installed")
    binding = module_from_spec(spec)
    spec.loader.exec_module(binding)
    return Parser(Language(binding.language()))
