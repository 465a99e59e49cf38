"""Resources as a client names them over the network: texts, read without a look at any disk.

`file:src/app.py`, `name:main-push` and `project:shop` are as the core has them. Anything else is the path of
a file from the top of the repository. `.` and empty segments are dropped; `..` may not leave the repository.
"""

from collections.abc import Iterable

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.locks.resources import parse_resource
from coord.host.words import is_bare

SCHEMES = ("file", "name", "project")


def read_resources(texts: Iterable[str], repository: str) -> tuple[str, ...]:
    """Return resources in the form of the core, each once."""
    found = dict.fromkeys(_read(text) for text in texts)
    for text in found:
        parse_resource(text, repository)
    return tuple(found)


def both_readings(text: str) -> tuple[str, ...]:
    """Return the resources of a word: a bare one is a file and a name, as on the command line."""
    kind, colon, _ = text.partition(":")
    if (colon and kind in SCHEMES) or not is_bare(text):
        return (text,)
    return f"file:{text}", f"name:{text}"


def _read(text: str) -> str:
    kind, colon, rest = text.partition(":")
    if colon and kind in SCHEMES:
        return text if kind != "file" else f"file:{_path(rest)}"
    return f"file:{_path(text)}"


def _path(text: str) -> str:
    if text.startswith("/"):
        raise Invalid(
            f"{short_repr(text)} begins with /",
            hint="name the file from the top of the repository: src/app.py",
        )
    names: list[str] = []
    for name in text.split("/"):
        if name == "..":
            if not names:
                raise Invalid(f"{short_repr(text)} leaves the repository", hint="name a file inside of it")
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    if any(name.casefold() == ".git" for name in names):
        raise Invalid(f"{short_repr(text)} is inside the git directory", hint="lock files of the worktree")
    return "/".join(names) or "."
