"""Evidence that a call wrote a file although its holder may have written it too.

Reading or running a file names it as well, so the name alone proves nothing. But a person does not type the
lines that the call contains, and does not delete the file that the call names, while the call runs.
"""

import os
import re
from collections.abc import Iterator

FILES_MAX = 8
FILE_BYTES_MAX = 64 << 10
PROOF_CHARS = 12
"""Added lines of this length prove the author even if the call does not name the file."""
RECIPES = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", ".justfile"),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun"), ("package.json",)),
}
"""Programs that run what a file says."""
_SEPARATORS = re.compile(r"[\s'\"`()<>|;&=,]+")


def wrote_it(text: str, cwd: str, root: str, path: str, before: bytes | None, now: bytes | None) -> bool:
    """Whether the text of a call, or of a script that it names, has what was written to a file."""
    request = "\n".join((text, *_scripts(text, cwd, f"{root}/{path}")))
    if now is None:
        return any(_names(request, part) for part in path.split("/"))
    named = _names(request, os.path.basename(path))
    if not now:
        return named
    old = set((before or b"").splitlines())
    added = [line.strip() for line in now.splitlines() if line not in old and line.strip()]
    texts = [line.decode("utf-8", "replace") for line in added]
    known = bool(texts) and all(line in request or _escaped(line) in request for line in texts)
    return known and (named or sum(map(len, texts)) >= PROOF_CHARS)


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def _escaped(line: str) -> str:
    """Return a line as it stands in quotes inside of another text."""
    return line.replace("\\", "\\\\").replace('"', '\\"')


def _scripts(text: str, cwd: str, but: str) -> Iterator[str]:
    """Yield the texts of small files that a call names, and of the recipes that it runs."""
    words = dict.fromkeys(_SEPARATORS.split(text))
    names = [*(name for word in words for name in RECIPES.get(word, ())), *words]
    left = FILES_MAX
    for name in names:
        path = os.path.join(cwd, name)
        if not name or not left or os.path.realpath(path) == os.path.realpath(but):
            continue
        try:
            if os.path.isfile(path) and os.path.getsize(path) <= FILE_BYTES_MAX:
                with open(path, encoding="utf-8", errors="replace") as file:
                    left -= 1
                    yield file.read()
        except (OSError, ValueError):
            continue
