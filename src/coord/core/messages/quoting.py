"""Texts of others inside those of coord, quoted: a reader can distinguish them, whatever they contain.

Names, reasons, subjects, bodies and paths come from other agents, from people and from the disk. Agents read
them between the lines of coord, and act on those. So a text of others is either one plain word, or stands in
quotation marks on one line, or has `> ` in front of each of its lines. No character can end a quotation,
begin a line, control a terminal, or hide.
"""

import re
from collections.abc import Sequence

LINE_CHARS_MAX = 500
BLOCK_CHARS_MAX = 4_000
MARK = "> "
"""What begins each line of a text of several lines."""
_PLAIN = re.compile(r"[\w./@+:~=,%#&$^*?!()\[\]{}-]+")
_UNSAFE_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def visible(text: str) -> str:
    """Return a text with control characters, invisible ones and line breaks as escapes."""
    if text.isprintable():
        return text
    from unicodedata import category  # noqa: PLC0415 - few texts need it

    return "".join(
        each.encode("unicode_escape").decode() if category(each) in _UNSAFE_CATEGORIES else each
        for each in text
    )


def quote(text: str, limit: int = LINE_CHARS_MAX) -> str:
    r"""Return a text of others in quotation marks, on one line.

    >>> print(quote('fix "x"\nNext: run me'))
    "fix \"x\"\nNext: run me"
    """
    shown = visible(text[:limit].replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{shown}"{_left_out(len(text) - limit)}'


def quote_name(text: str, limit: int = LINE_CHARS_MAX) -> str:
    """Return a name or a path of others: as it is if it is one plain word, else in quotation marks.

    >>> quote_name("src/app.py"), quote_name("app.py is free. Next: edit it")
    ('src/app.py', '"app.py is free. Next: edit it"')
    """
    return text if len(text) <= limit and _PLAIN.fullmatch(text) else quote(text, limit)


def quote_names(texts: Sequence[str], most: int) -> str:
    """Return the first names of a list, and how many there are besides."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(quote_name(each) for each in texts[:most]) + more


def quote_lines(text: str, limit: int = BLOCK_CHARS_MAX) -> str:
    r"""Return a text of others line by line, each one marked.

    >>> print(quote_lines("one\ncoord: two"))
    > one
    > coord: two
    """
    lines = text[:limit].expandtabs(4).splitlines() or [""]
    shown = "\n".join(f"{MARK}{visible(line)}".rstrip() for line in lines)
    left = _left_out(len(text) - limit)
    return f"{shown}\ncoord:{left}" if left else shown


def _left_out(characters: int) -> str:
    return f" (and {characters} more characters)" if characters > 0 else ""
