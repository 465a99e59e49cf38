r"""Turn a file name as a person or a tool writes it into a path in the repository.

The path is the same from every worktree. It is a text for `coord.core.locks.paths.parse_pattern`, so
wildcards have a meaning and `\` escapes them. What a text means never depends on which files exist. Only
symlinks and hard links are looked up on the disk, because they give one file several names.
"""

import os
import re
import stat
from typing import NamedTuple

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.locks.paths import TEXT_CHARS_MAX, is_unprintable, parse_pattern
from coord.host.repository import Repository, find_repository, repository_at
from coord.host.runtime.seen_files import real_path

_MEANT = re.compile(r"[\\*?\[{}]")
_NAME_ONLY = re.compile(r"[{}]|\[\[(?![:=])|\[\]")
_ANY_ESCAPED = re.compile(r"\\(.)")
_ESCAPED = re.compile(r"\\([\\*?\[\]{},!^-])")


class ResolvedPath(NamedTuple):
    """The paths that a text means in the repository, as texts for `parse_pattern`.

    `links` are further names of the same files, each with the link that leads there. `unfollowed` says which
    links could not be followed.
    """

    texts: list[str]
    links: dict[str, str]
    unfollowed: list[str]


def repository_path(
    repository: Repository | None, text: str, cwd: str, *, literal: bool = False
) -> list[str]:
    """Return the path as written, the path it leads to, and what the links in it lead to.

    With `literal`, no character but `/` has a special meaning; use it for paths from tools.
    """
    found = resolve_path(repository, text, cwd, literal=literal)
    return [*found.texts, *found.links]


def resolve_path(
    repository: Repository | None, text: str, cwd: str, *, literal: bool = False
) -> ResolvedPath:
    """Return the path as written and, if it runs through a symlink, the path it leads to; and its links."""
    _check(text)
    if repository is None or repository.root is None:
        raise Invalid(
            f"{short_repr(text)} is a file, but {cwd} is in no worktree of a git repository",
            hint="run coord inside the repository, or lock a name: instead",
        )
    path, rest = _split(repository, text, real_path(cwd), literal)
    root, names = _in_worktree(repository, path, text)
    found = [names]
    prefixes = ("/".join((root, *names[:end])) for end in range(1, len(names) + 1))
    links = [prefix for prefix in prefixes if os.path.islink(prefix)]
    for link in links:  # check each one: a path may leave the repository and come back
        _check_link(repository, link, text)
    if links:
        found.append(_in_worktree(repository, real_path("/".join((root, *names))), text)[1])
    texts = dict.fromkeys("/".join([*map(escaped, each), *rest]) or "." for each in found)
    patterns = [pattern for each in texts for pattern in parse_pattern(each)]
    if not rest and not _may_contain_links("/".join((root, *names)), literal):
        return ResolvedPath(list(texts), {}, [])
    from coord.host.links import find_links  # noqa: PLC0415 - most paths are files with one name

    return ResolvedPath(list(texts), *find_links(repository, root, patterns))


def _may_contain_links(path: str, literal: bool) -> bool:
    """Whether a path is a folder, or a file with several names; or has another case than on the disk."""
    try:
        found = os.stat(path)
    except OSError:
        return not literal and not os.path.lexists(path)
    return stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink > 1)


def path_in_resource(resource: str) -> str:
    """Return the path that a lock on one file names."""
    return _ANY_ESCAPED.sub(r"\1", resource.removeprefix("file:"))


def _with_names(segments: list[str]) -> list[str]:
    """Return segments of which one like `[[...slug]]` or `{id}` stands for that name.

    Such segments are no valid patterns. Their brackets and braces are balanced, so nobody forgot one.
    """
    try:
        parse_pattern("/".join(segments))
    except Invalid:
        return list(map(_name_if_malformed, segments))
    return segments


def _name_if_malformed(segment: str) -> str:
    if not _NAME_ONLY.search(segment) or not {*"*?\\,"}.isdisjoint(segment):
        return segment
    try:
        parse_pattern(segment)
    except Invalid:
        balanced = all(segment.count(a) == segment.count(b) for a, b in ("[]", "{}"))
        return escaped(segment) if balanced else segment
    return segment


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


def _split(repository: Repository, text: str, start: str, literal: bool) -> tuple[str, list[str]]:
    """Return the absolute path up to the first segment with a wildcard, and the segments from there on.

    Folders outside of the repository are never patterns.
    """
    path = "/" if text.startswith("/") else start
    root = f"{repository.root}/"
    if text.startswith(root):  # so that a folder above it may have any name
        path, text = root[:-1], text.removeprefix(root)
    inside = f"{path}/".startswith(root)
    segments = text.split("/")
    while segments:
        if segments[0] == "..":  # the parent of the real path, as the operating system resolves it
            path = os.path.dirname(real_path(path))
            inside = f"{path}/".startswith(root) or _is_inside(repository, path)
        elif segments[0] not in ("", "."):
            if not literal and inside and _MEANT.search(segments[0]):
                segments = _with_names(segments)
                name = _name(segments[0])
                if name is None:
                    return path, segments
                segments[0] = name
            path = os.path.join(path, segments[0])
            inside = inside or _is_inside(repository, path)
        del segments[0]
    return path, []


def _is_inside(repository: Repository, path: str) -> bool:
    """Whether a path outside of the worktree leads into a worktree of the same repository."""
    found = find_repository(path) if os.path.islink(path) else repository_at(path)
    return found is not None and found.commondir == repository.commondir


def _name(segment: str) -> str | None:
    """Return the plain name of a segment, or None if it has wildcards or is malformed."""
    return None if _MEANT.search(_ESCAPED.sub("", segment)) else _ESCAPED.sub(r"\1", segment)


def path_in_worktree(repository: Repository, path: str) -> list[str]:
    """Return the names of an absolute path from the root of its worktree; refuse one outside."""
    return _in_worktree(repository, path, path)[1]


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
            return _in_worktree(repository, "/".join((real_path(real), *parts[number + 1 :])), text)
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
        _in_worktree(repository, real_path(link), text)
    except Invalid as error:
        raise Invalid(f"{error.message} (the symlink {link} leads there)", hint=error.hint) from error


def _check_loop(link: str, text: str) -> None:
    if os.path.islink(real_path(link)):
        raise Invalid(
            f"{short_repr(text)} runs through a symlink that leads to itself", hint=f"repair {link}"
        )


def escaped(name: str) -> str:
    """Return a name as a text in which no character is a wildcard."""
    return _MEANT.sub(r"\\\g<0>", name)
