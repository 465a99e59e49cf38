"""A marked block in a text file of others: coord adds it, and finds it again to remove it."""

import re

BEGIN, END = "coord begin (written by coord init, removed by coord uninstall)", "coord end"
MARKDOWN = ("<!-- ", " -->")
HASH = ("# ", "")
Marks = tuple[str, str]


def with_block(text: str, lines: str, marks: Marks) -> str:
    """Return the text with the block: in place of an old block, or else at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    block = block_of(lines, marks, end)
    found = _pattern(marks).search(text)
    if found:
        return f"{text[: found.start('block')]}{block}{text[found.end() :]}"
    if not text:
        return block
    return f"{text}{'' if text.endswith(end) else end}{end}{block}"


def block_of(lines: str, marks: Marks, end: str = "\n") -> str:
    """Return the block itself, with the end of its last line."""
    return f"{_mark(BEGIN, marks)}\n{lines.rstrip()}\n{_mark(END, marks)}\n".replace("\n", end)


def without_block(text: str, marks: Marks) -> str:
    """Return the text without the block and the empty line, or the break of a list, before it."""
    return _pattern(marks).sub("", text, count=1)


def has_block(text: str, marks: Marks) -> bool:
    """Whether a text has the block."""
    return _pattern(marks).search(text) is not None


def _mark(words: str, marks: Marks) -> str:
    return f"{marks[0]}{words}{marks[1]}"


def _pattern(marks: Marks) -> re.Pattern[str]:
    begin, end = (re.escape(_mark(words, marks)) for words in (BEGIN, END))
    return re.compile(
        rf"(?:(?<=[\n\[])\r?\n)?(?P<block>^{begin}\r?\n.*?^{end}(?:\r?\n|\Z))", re.MULTILINE | re.DOTALL
    )
