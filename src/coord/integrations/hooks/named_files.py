"""The files that an unknown tool names, by the words of its name and the names of its fields.

This only refuses a call early, while nothing is written yet. What such a tool really changes is found by its
effects, whatever its name and its fields are. What it reads leaves no effect, so the ledger has only this.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

WRITE_WORDS = frozenset(
    (
        *("write", "edit", "create", "delete", "remove", "move", "rename", "replace", "insert", "append"),
        *("patch", "save", "update", "copy", "apply", "modify", "change", "format", "reformat", "fix"),
        *("refactor", "rewrite", "overwrite", "generate", "add", "put", "set", "touch", "truncate", "revert"),
        *("restore", "undo", "rm", "mv", "cp", "cut", "paste", "store", "download", "extract", "optimize"),
    )
)
READ_WORDS = frozenset(
    (
        *("read", "get", "list", "search", "find", "show", "view", "fetch", "describe", "query", "count"),
        *("check", "stat", "exists", "look", "lookup", "browse", "grep", "glob", "tree", "info"),
    )
)
"""A tool whose name starts with one of these is not refused early."""
PATH_ENDINGS = ("path", "paths", "file", "files", "filename", "filenames", "uri", "uris", "pathinproject")
PATH_FIELDS = frozenset(
    ("source", "destination", "target", "targets", "dest", "dst", "src", "from", "to", "document", "resource")
)
"""Fields that may name a file; others end with one of `PATH_ENDINGS`."""
DEPTH_MAX = 6
FILES_MAX = 64
CHARS_MAX = 1024
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def named_files(tool_name: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a tool probably writes.

    >>> named_files("mcp__idea__reformat_file", {"pathInProject": "src/app.py"})
    ('src/app.py',)
    >>> named_files("mcp__files__read_file", {"path": "src/app.py"})
    ()
    """
    words = [word.lower() for word in _WORD.findall(tool_name.rpartition("__")[2])]
    reads = bool(words) and words[0] in READ_WORDS
    if reads or not WRITE_WORDS.intersection(words):
        return ()
    found = dict.fromkeys(_paths(given, "", DEPTH_MAX))
    return tuple(found)[:FILES_MAX]


def named_reads(tool_name: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a tool probably read. A path that is not absolute may be one of another place.

    >>> named_reads("mcp__files__read_file", {"path": "/home/ann/app.py"})
    ('/home/ann/app.py',)
    >>> named_reads("mcp__github__get_file_contents", {"repo": "app", "path": "src/app.py"})
    ()
    """
    words = {word.lower() for word in _WORD.findall(tool_name.rpartition("__")[2])}
    if not READ_WORDS.intersection(words) or WRITE_WORDS.intersection(words):
        return ()
    found = dict.fromkeys(path for path in _paths(given, "", DEPTH_MAX) if path.startswith("/"))
    return tuple(found)[:FILES_MAX]


def _paths(value: Any, field: str, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        path = _path(value, field)
        if path:
            yield path
    elif isinstance(value, list) and depth:
        for each in value[:FILES_MAX]:
            yield from _paths(each, field, depth - 1)
    elif isinstance(value, dict) and depth:
        for name, each in value.items():
            yield from _paths(each, name if isinstance(name, str) else "", depth - 1)


def _path(text: str, field: str) -> str:
    """Return the path in a field, or ""."""
    plain = "".join(char for char in field.lower() if char.isalnum())
    if not text or len(text) > CHARS_MAX or not text.isprintable():
        return ""
    if plain in PATH_FIELDS:
        return _plain_path(text) if "/" in text or "." in text else ""
    return _plain_path(text) if plain.endswith(PATH_ENDINGS) else ""


def _plain_path(text: str) -> str:
    scheme, found, rest = text.partition("://")
    if not found:
        return text
    if scheme != "file":
        return ""
    from urllib.parse import unquote  # slow to import, and hardly ever needed

    return unquote(rest)
