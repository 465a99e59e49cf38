r"""Turn a file name as a person or a tool writes it into a path in the repository.

The path is the same from every worktree. It is a text for `coord.core.locks.paths.parse_pattern`, so
wildcards have a meaning and `\` escapes them. A segment with `[` or `{` that exists by exactly this name
means that name, as in `app/[slug]/page.tsx`.
"""

import os
import re

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.locks.paths import TEXT_CHARS_MAX, is_unprintable, parse_pattern
from coord.host.repository import Repository, repository_at

_MEANT = re.compile(r"[\\*?\[{}]")
_ANY_ESCAPED = re.compile(r"\\(.)")
_ESCAPED = re.compile(r"\\([\\*?\[\]{},!^-])")


def repository_path(
    repository: Repository | None, text: str, cwd: str, *, literal: bool = False
) -> list[str]:
    """Return the path as written and, if it runs through a symlink, also the path it leads to.

    With `literal`, no character but `/` has a special meaning; use it for paths from tools.
    """
    _check(text)
    if repository is None or repository.root is None:
        raise Invalid(
            f"{short_repr(text)} is a file, but {cwd} is in no worktree of a git repository",
            hint="run coord inside the repository, or lock a name: instead",
        )
    path, rest = _split(text, os.path.realpath(cwd), literal)
    root, names = _in_worktree(repository, path, text)
    found = [names]
    prefixes = ("/".join((root, *names[:end])) for end in range(1, len(names) + 1))
    links = [prefix for prefix in prefixes if os.path.islink(prefix)]
    for link in links:  # check each one: a path may leave the repository and come back
        _check_link(repository, link, text)
    if links:
        found.append(_in_worktree(repository, os.path.realpath("/".join((root, *names))), text)[1])
    texts = dict.fromkeys("/".join([*map(_escaped, each), *rest]) or "." for each in found)
    for each in texts:
        parse_pattern(each)
    return list(texts)


def path_in_resource(resource: str) -> str:
    """Return the path that a lock on one file names."""
    return _ANY_ESCAPED.sub(r"\1", resource.removeprefix("file:"))


def _check(text: str) -> None:
    if not text:
        raise Invalid("the path is empty", hint="name a file or directory; . is the whole repository")
    if is_unprintable(text):
        raise Invalid(
            f"{short_repr(text)} contains a control character or half a character",
            hint="name the file without it",
        )
    if len(text) > TEXT_CHARS_MAX:
        raise Invalid(f"{short_repr(text)} is too long", hint=f"use at most {TEXT_CHARS_MAX} characters")


def _split(text: str, start: str, literal: bool) -> tuple[str, list[str]]:
    """Return the absolute path up to the first segment with a wildcard, and the segments from there on."""
    path = "/" if text.startswith("/") else start
    segments = text.split("/")
    for number, segment in enumerate(segments):
        if segment == "..":  # the parent of the real path, as the operating system resolves it
            path = os.path.dirname(os.path.realpath(path))
        elif segment not in ("", "."):
            name = segment if literal else _name(path, segment)
            if name is None:
                return path, segments[number:]
            path = os.path.join(path, name)
    return path, []


def _name(folder: str, segment: str) -> str | None:
    """Return the plain name of a segment, or None if it has wildcards or is malformed."""
    if not _MEANT.search(segment):
        return segment
    if "*" not in segment and "?" not in segment and os.path.lexists(os.path.join(folder, segment)):
        return segment
    return None if _MEANT.search(_ESCAPED.sub("", segment)) else _ESCAPED.sub(r"\1", segment)


def _in_worktree(repository: Repository, path: str, text: str) -> tuple[str, list[str]]:
    """Return the root of the worktree that an absolute path is in, and the names from there on.

    Symlinks are followed up to the root, and kept from there on. A worktree may lie inside another one.
    """
    root = repository.root if f"{path}/".startswith(f"{repository.root}/") else None
    real, names = root or "", list[str]()
    parts = [part for part in path.removeprefix(real).split("/") if part]
    for number, part in enumerate(parts):
        real, names = f"{real}/{part}", [*names, part]
        if os.path.islink(real):
            if root is not None:
                names += parts[number + 1 :]
                break
            _check_loop(real, text)
            return _in_worktree(repository, "/".join((os.path.realpath(real), *parts[number + 1 :])), text)
        found = repository_at(real)
        if found is not None and found.commondir == repository.commondir:
            root, names = real, []
        elif found is not None and root is not None and number + 1 < len(parts):
            what = "a submodule" if found.is_submodule else "another repository"
            raise Invalid(f"{short_repr(text)} is inside {what}, {real}", hint=f"run coord there: cd {real}")
    if root is None:
        raise Invalid(
            f"{short_repr(text)} is outside the repository {repository.root}",
            hint="name a file of this repository, or lock a name: instead",
        )
    if any(name.casefold() == ".git" for name in names):
        raise Invalid(f"{short_repr(text)} is inside the git directory", hint="lock files of the worktree")
    return root, names


def _check_link(repository: Repository, link: str, text: str) -> None:
    _check_loop(link, text)
    try:
        _in_worktree(repository, os.path.realpath(link), text)
    except Invalid as error:
        raise Invalid(f"{error.message} (the symlink {link} leads there)", hint=error.hint) from error


def _check_loop(link: str, text: str) -> None:
    if os.path.islink(os.path.realpath(link)):
        raise Invalid(
            f"{short_repr(text)} runs through a symlink that leads to itself", hint=f"repair {link}"
        )


def _escaped(name: str) -> str:
    return _MEANT.sub(r"\\\g<0>", name)
