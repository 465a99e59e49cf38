"""A marked block in a text file of others: coord adds it, and finds it again to remove it."""

import re

BEGIN, END = "coord begin (written by coord init, removed by coord uninstall)", "coord end"
MARKDOWN = ("<!-- ", " -->")
HASH = ("# ", "")
Marks = tuple[str, str]


def with_block(text: str, lines: str, marks: Marks) -> str:
    """Return the text with the block: in place of an old block, or else at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    block = f"{_mark(BEGIN, marks)}\n{lines.rstrip()}\n{_mark(END, marks)}".replace("\n", end)
    found = _pattern(marks).search(text)
    if found:
        return f"{text[: found.start('block')]}{block}{end}{text[found.end() :]}"
    if not text:
        return block + end
    return f"{text}{'' if text.endswith(end) else end}{end}{block}{end}"


def without_block(text: str, marks: Marks) -> str:
    """Return the text without the block and the empty line before it."""
    return _pattern(marks).sub("", text, count=1)


def has_block(text: str, marks: Marks) -> bool:
    """Whether a text has the block."""
    return _pattern(marks).search(text) is not None


def _mark(words: str, marks: Marks) -> str:
    return f"{marks[0]}{words}{marks[1]}"


def _pattern(marks: Marks) -> re.Pattern[str]:
    begin, end = (re.escape(_mark(words, marks)) for words in (BEGIN, END))
    return re.compile(
        rf"(?:(?<=\n)\r?\n)?(?P<block>^{begin}\r?\n.*?^{end}(?:\r?\n|\Z))", re.MULTILINE | re.DOTALL
    )
