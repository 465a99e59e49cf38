"""The lines of the mirrors in git's exclude file: what coord writes must not make a worktree dirty."""

import os
import re
from collections.abc import Iterable

from coord.integrations.setup.files import Content, read_file, write_file

BEGIN = "# begin of the mirrors (written by coord mirror on, removed by coord mirror off)"
END = "# end of the mirrors"
_BLOCK = re.compile(
    rf"(?:(?<=\n)\n)?^{re.escape(BEGIN)}\n.*?^{re.escape(END)}(?:\n|\Z)", re.MULTILINE | re.DOTALL
)


def exclude_from_git(commondir: str, paths: Iterable[str]) -> None:
    """Let git ignore exactly these paths on behalf of the mirrors; no path removes the lines."""
    file = f"{commondir}/info/exclude"
    found = read_file(file)
    before = found or Content(b"")
    text = _BLOCK.sub("", before.text, count=1)
    lines = "".join(f"{path}\n" for path in paths)
    if lines:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        text = f"{text}{gap}{BEGIN}\n{lines}{END}\n"
    if text == before.text:
        return
    os.makedirs(os.path.dirname(file), exist_ok=True)
    write_file(file, before.with_text(text))
