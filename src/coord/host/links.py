"""Find the symlinks and hard links that give the files of a request further names.

A lock on a folder or a glob has to cover what is written through the links in it. So the request also locks
their targets. Links are looked up when a lock is requested, and again when something is written, because
a link may be made later.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from coord.core.errors import Invalid
from coord.core.locks.paths import Pattern, covers, fold, literal_path, overlaps, parse_pattern, parts_below
from coord.host.paths import escaped, path_in_worktree
from coord.host.repository import Repository

ENTRIES_MAX = 20_000
"""How many files and folders one request looks at: about 75 ms."""
LINKS_MAX = 32
"""How many targets of links one request adds."""
NAMES_MAX = 64
"""How many names of one file a gate checks."""
SHOWN_MAX = 3
"""How many links of one kind a warning names."""

Inode = tuple[int, int]


def find_links(
    repository: Repository, root: str, patterns: Iterable[Pattern]
) -> tuple[dict[str, str], list[str]]:
    """Return further paths that belong to patterns, each with the link that leads there.

    The second value says in sentences which links could not be followed.
    """
    search = _Search(repository, root, list(patterns))
    search.follow_symlinks()
    search.follow_hard_links()
    return search.found, search.warnings()


def other_names(repository: Repository, root: str, paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the further names of files in a worktree, through symlinks and as hard links."""
    search = _Search(repository, root, [])
    targets, inodes = search.all_links({path: _several_names(f"{root}/{path}") for path in paths})
    return {
        path: names
        for path, others in inodes.items()
        if (names := [each for each in _through_links([path, *others], targets) if each != path])
    }


def _several_names(path: str) -> Inode | None:
    """Return the inode of a file that has several hard links; None for any other."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return _inode(status) if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 else None


def _through_links(paths: list[str], targets: dict[str, str]) -> list[str]:
    """Return paths, and the paths that lead to them through symlinks, at most `NAMES_MAX`."""
    found = dict.fromkeys(paths)
    queue = deque(paths)
    while queue and len(found) < NAMES_MAX:
        path = queue.popleft()
        for link, target in targets.items():
            name = f"{link}/{path}" if not target else f"{link}{path[len(target) :]}"
            leads_here = not target or path == target or path.startswith(f"{target}/")
            if leads_here and name not in found:
                found[name] = None
                queue.append(name)
    return list(found)


class _Search:
    """A search through one worktree; it stops after `ENTRIES_MAX` entries."""

    def __init__(self, repository: Repository, root: str, patterns: list[Pattern]) -> None:
        self.found: dict[str, str] = {}
        self._repository = repository
        self._root = root
        self._covered = patterns
        self._names: dict[Inode, list[str]] = {}
        """The known paths of each file that has several."""
        self._counts: dict[Inode, int] = {}
        self._entries = 0
        self._outside: dict[str, str] = {}
        self._unread: list[str] = []
        self._left_out: list[str] = []

    def follow_symlinks(self) -> None:
        """Add the targets of all symlinks in the patterns, and of those in their targets."""
        for pattern in self._covered:  # the loop appends to it
            for entry, path in self._walk(pattern):
                if entry.is_symlink():
                    self._follow(pattern, path)
                elif entry.is_file(follow_symlinks=False):
                    self._note_names(pattern, entry, path)

    def follow_hard_links(self) -> None:
        """Add the other names of files that have several; the whole worktree is searched for them."""
        if all(len(self._names[inode]) >= count for inode, count in self._counts.items()):
            return
        numbers = {inode for _, inode in self._counts}
        for entry, path in self._walk(parse_pattern(".")[0]):
            if entry.inode() not in numbers or not entry.is_file(follow_symlinks=False):
                continue
            known = self._names.get(_inode(entry.stat(follow_symlinks=False)), [path])
            if path not in known:
                self._add([escaped(path)], known[0], is_file=True)
                known.append(path)

    def all_links(self, inodes: dict[str, Inode | None]) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Return the target of each symlink in the worktree, and the other hard links of some files."""
        targets: dict[str, str] = {}
        names: dict[Inode, list[str]] = {inode: [] for inode in inodes.values() if inode is not None}
        numbers = {number for _, number in names}
        for entry, path in self._walk(parse_pattern(".")[0]):
            if entry.is_symlink():
                with suppress(Invalid):
                    target = path_in_worktree(self._repository, os.path.realpath(f"{self._root}/{path}"))
                    targets[path] = "/".join(target)
            elif entry.inode() in numbers:
                names.get(_inode(entry.stat(follow_symlinks=False)), []).append(path)
        return targets, {path: names.get(inode, []) if inode else [] for path, inode in inodes.items()}

    def warnings(self) -> list[str]:
        """Return a sentence for each kind of link that is not covered."""
        said = []
        if self._outside:
            links = [f"{link} ({why})" for link, why in self._outside.items()]
            said.append(f"not covered, because it cannot be locked here: {_some(links)}")
        missing = [
            self._names[inode][0]
            for inode, count in self._counts.items()
            if len(self._names[inode]) < count and not self._left_out
        ]
        if missing:
            said.append(f"not covered: hard links outside of this worktree to {_some(missing)}")
        if self._unread:
            said.append(f"links were not looked for in {_some(self._unread)}: it cannot be read")
        if self._left_out:
            said.append(f"links were not looked for in {_some(self._left_out)}: there are too many files")
        return said

    def _follow(self, pattern: Pattern, path: str) -> None:
        link = f"{self._root}/{path}"
        target = os.path.realpath(link)
        if os.path.islink(target):
            self._outside[path] = "it leads to itself"
            return
        try:
            names = path_in_worktree(self._repository, target)
            base = "/".join(map(escaped, names))
            is_file = os.path.isfile(target)
            parts = _parts(pattern, path, is_file)
            self._add([f"{base}/{part}".strip("/") or "." for part in parts], path, is_file=is_file)
        except Invalid:
            self._outside[path] = f"it leads to {target!r}"

    def _add(self, texts: Iterable[str], link: str, *, is_file: bool) -> None:
        for pattern in [each for text in texts for each in parse_pattern(text)]:
            if any(_contains(known, pattern, is_file) for known in self._covered):
                continue
            if len(self.found) >= LINKS_MAX:
                self._outside[link] = f"more than {LINKS_MAX} links"
                return
            for known in self._covered:  # the order in which a disk lists a folder changes no answer
                if known.spelled in self.found and _contains(pattern, known, is_file=False):
                    del self.found[known.spelled]
            self.found[pattern.spelled] = link
            self._covered.append(pattern)

    def _note_names(self, pattern: Pattern, entry: os.DirEntry[str], path: str) -> None:
        """Remember a file that has several names."""
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return  # it is gone
        if status.st_nlink < 2 or ((at := _literal(path)) is not None and not covers(pattern, at)):
            return
        names = self._names.setdefault(_inode(status), [])
        self._counts[_inode(status)] = status.st_nlink
        if path not in names:
            names.append(path)

    def _walk(self, pattern: Pattern) -> Iterator[tuple[os.DirEntry[str], str]]:
        """Yield the files and links that may belong to a pattern, the nearest to the root first."""
        folders = deque([""])
        while folders:
            folder = folders.popleft()
            depth = folder.count("/")
            wanted = pattern.directory[depth] if depth < len(pattern.directory) else None
            if wanted is None and self._entries >= ENTRIES_MAX:
                self._left_out.append(folder or ".")
                continue
            for entry in self._entries_of(folder):
                path = folder + entry.name
                if wanted is not None:
                    if (entry.name.lower() if entry.name.isascii() else fold(entry.name)) != wanted:
                        continue
                elif self._entries >= ENTRIES_MAX:
                    self._left_out.append(folder or ".")
                    break
                self._entries += wanted is None
                is_folder = entry.is_dir(follow_symlinks=False)
                named = is_folder or entry.is_symlink()
                if named and not pattern.literal and not _may_overlap(pattern, path):
                    continue
                if not is_folder:
                    yield entry, path
                elif entry.name != ".git" and not os.path.lexists(f"{entry.path}/.git"):
                    folders.append(f"{path}/")

    def _entries_of(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self._root}/{folder}") as entries:
                return list(entries)
        except FileNotFoundError:
            return []
        except OSError:
            self._unread.append(folder or ".")
            return []


def _parts(pattern: Pattern, path: str, is_file: bool) -> list[str]:
    """Return what a pattern covers below a link, relative to it; nothing is below a file."""
    at = _literal(path)
    if at is None:
        return [""]
    if is_file:
        return [""] if covers(pattern, at) else []
    return parts_below(pattern, at)


def _contains(known: Pattern, pattern: Pattern, is_file: bool) -> bool:
    """Whether a pattern is part of a known one, as far as that is easy to see."""
    if known.folded == pattern.folded or (is_file and pattern.literal and covers(known, pattern)):
        return True
    above, run, rest = known.folded.partition("**/")
    if run and pattern.folded.startswith(above) and f"/{pattern.folded[len(above) :]}".endswith(f"/{rest}"):
        return True
    return known.literal and pattern.directory[: len(known.directory)] == known.directory


def _may_overlap(pattern: Pattern, path: str) -> bool:
    at = _literal(path)
    return at is None or overlaps(pattern, at)


def _literal(path: str) -> Pattern | None:
    """Return the pattern of a path on the disk; None if no lock can name it, so that it counts as covered."""
    try:
        return literal_path(path)
    except Invalid:
        return None


def _inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino


def _some(names: Sequence[str]) -> str:
    """Return the first of some names, and how many are left."""
    shown = ", ".join(name if name.isprintable() else repr(name) for name in names[:SHOWN_MAX])
    left = len(names) - SHOWN_MAX
    return f"{shown} and {left} more" if left > 0 else shown
