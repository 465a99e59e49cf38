"""The state of a worktree, from git's index and `stat`; file contents are hardly ever read.

Only changed, untracked and watched files are recorded. A second link keeps the index, because git never
writes an index in place. With that old index git finds the other files that were touched later, even if they
were staged, committed or checked out since.
"""

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from coord.core.errors import CoordError, Unavailable
from coord.host.repository import repository_at
from coord.integrations.deadline import deadline_s
from coord.integrations.git.run import Git, RunningGit

GIT_SHARE = 3 / 7
"""The part of a hook's deadline that git may use; a slower repository is not observed."""
FILES_MAX = 20_000
RACY_NS = 2_000_000_000
"""Within this time a file may change without getting another time stamp, because clocks are coarse."""
RACY_BYTES_MAX, RACY_BYTES_IN_ALL = 1 << 20, 8 << 20


class FileStat(msgspec.Struct, frozen=True, array_like=True):
    """A file as `lstat` shows it; `content` is a digest if the times alone prove nothing."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    content: bytes = b""

    def same_stat(self, other: "FileStat | None") -> bool:
        """Whether everything but the content is the same."""
        return other is not None and _stat_of(self) == _stat_of(other)


class WorktreeState(msgspec.Struct, frozen=True):
    """The files that differed from the index at some time; None for a missing file."""

    at_ns: int
    files: dict[bytes, FileStat | None]
    others: bool = True
    """Whether untracked files were recorded; there may be too many of them."""
    ignore_files: tuple[FileStat | None, ...] = ()
    """The files outside the worktree that say what git ignores."""


class Change(NamedTuple):
    """A changed file."""

    path: str
    was: FileStat | None
    now: FileStat | None
    was_clean: bool
    """Whether its content was the one in the old index."""


def save_index(git_dir: str, saved: str) -> None:
    """Save the present index under a second name."""
    with suppress(FileNotFoundError):
        os.unlink(saved)
    try:
        os.link(f"{git_dir}/index", saved)
    except FileNotFoundError:  # no file was ever staged
        return
    except OSError:  # a file system without links
        from shutil import copy2

        copy2(f"{git_dir}/index", saved)


def read_state(git: Git, index: str, watched: Sequence[str]) -> WorktreeState:
    """Return the files that differ from an index now."""
    at_ns = time.time_ns()
    touched, others = _differing(git, index, watched)
    many = len(others) > FILES_MAX
    names = [*touched, *([] if many else others), *_literal(watched)]
    if len(touched) > FILES_MAX:
        raise Unavailable(f"{len(touched)} files are changed", hint="commit or stash some of them")
    room = RACY_BYTES_IN_ALL
    files: dict[bytes, FileStat | None] = {}
    for name in dict.fromkeys(names):
        found = file_stat(git.folder, name)
        if found is not None and _is_racy(found, at_ns) and found.size <= min(room, RACY_BYTES_MAX):
            room -= found.size
            found = msgspec.structs.replace(found, content=_digest(git.folder, name))
        files[os.fsencode(name)] = found
    return WorktreeState(at_ns, files, not many, _ignore_files(git))


def changes(git: Git, index: str, before: WorktreeState, watched: Sequence[str]) -> list[Change]:
    """Return the files that changed since a state was recorded."""
    touched, others = _differing(git, index, watched)
    known = {os.fsdecode(name): found for name, found in before.files.items()}
    found = [_changed(git.folder, name, was) for name, was in known.items()]
    found += [
        Change(name, None, file_stat(git.folder, name), was_clean=True)
        for name in touched
        if name not in known
    ]
    if before.others and len(others) <= FILES_MAX:
        new = [name for name in others if name not in known]
        # Only if git ignores other files now than before can an untracked file be new to us and yet be old.
        names = [*(each.path for each in found if each is not None), *new]
        if _ignores_other_files(git, before, names):
            new = [name for name in new if _is_younger(git.folder, name, before.at_ns)]
        found += [Change(name, None, file_stat(git.folder, name), was_clean=False) for name in new]
    return [each for each in found if each is not None]


def file_stat(root: str, name: str) -> FileStat | None:
    """Return the stat of a file; None if it is missing or a folder."""
    try:
        found = os.lstat(f"{root}/{name}")
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    return FileStat(found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def read_content(root: str, name: str, most: int, folder: int | None = None) -> bytes | None:
    """Return the content of a file or the target of a symlink; None for anything else or more than `most`.

    `folder`: an open folder that contains the name, instead of the root.
    """
    path = name if folder is not None else f"{root}/{name}"
    try:
        found = os.stat(path, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return os.fsencode(os.readlink(path, dir_fd=folder))
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:
            data = file.read(most + 1)
    except OSError:
        return None
    return data if len(data) <= most else None


def _differing(git: Git, index: str, watched: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the tracked files whose stat differs from the index, and the untracked files."""
    asks = [
        ("diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=all"),
        ("ls-files", "--others", "--exclude-standard", "-z"),
    ]
    patterns = [text for text in watched if _has_wildcard(text)]
    if patterns:
        ignored = ("ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--")
        asks.append((*ignored, *(f":(glob){text}" for text in patterns)))
    touched, *others = _answers(git, index, asks)
    # A folder among the untracked files is a nested repository, which has its own locks.
    plain = (name for names in others for name in names if not name.endswith("/"))
    return list(dict.fromkeys(touched)), list(dict.fromkeys(plain))


def _answers(git: Git, index: str, asks: list[tuple[str, ...]]) -> list[list[str]]:
    """Return the names that git prints for each question; all are asked at the same time."""
    deadline = time.monotonic() + deadline_s() * GIT_SHARE
    running: list[RunningGit] = []
    answers: list[list[str]] = []
    errors: list[CoordError] = []
    try:
        running.extend(git.start(*words, GIT_INDEX_FILE=index) for words in asks)
    except CoordError as error:
        errors.append(error)
    for each in running:  # each needs its end, also after an error
        try:
            answers.append(each.result(max(0.0, deadline - time.monotonic())).names)
        except CoordError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return answers


def _changed(root: str, name: str, was: FileStat | None) -> Change | None:
    now = file_stat(root, name)
    if was is None and now is None:
        return None
    if was is not None and was.same_stat(now) and (not was.content or was.content == _digest(root, name)):
        return None
    return Change(name, was, now, was_clean=False)


def _ignores_other_files(git: Git, before: WorktreeState, changed: Iterable[str]) -> bool:
    """Whether a rule about ignored files may have changed; `changed`: paths that have."""
    if any(os.path.basename(name) == ".gitignore" for name in changed):
        return True
    now = _ignore_files(git)
    return len(now) != len(before.ignore_files) or any(
        (was is None) != (is_now is None) or (was is not None and not was.same_stat(is_now))
        for was, is_now in zip(before.ignore_files, now, strict=True)
    )


def _ignore_files(git: Git) -> tuple[FileStat | None, ...]:
    """Return the files outside a worktree that say what git ignores, or where to read that."""
    repository = repository_at(git.folder)
    home = git.environ.get("HOME", "")
    user = git.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    commondir = "" if repository is None else repository.commondir
    return (
        file_stat(commondir, "info/exclude"),
        file_stat(commondir, "config"),
        file_stat(home, ".gitconfig"),
        file_stat(user, "git/config"),
        file_stat(user, "git/ignore"),
    )


def _is_younger(root: str, name: str, than_ns: int) -> bool:
    """Whether a file or a folder above it was created or moved since; otherwise it was ignored before."""
    while name:
        try:
            if os.lstat(f"{root}/{name}").st_ctime_ns >= than_ns - RACY_NS:
                return True
        except OSError:
            return True
        name = os.path.dirname(name)
    return False


def _is_racy(found: FileStat, at_ns: int) -> bool:
    return max(found.mtime_ns, found.ctime_ns) >= at_ns - RACY_NS


def _digest(root: str, name: str) -> bytes:
    from hashlib import sha256

    return sha256(read_content(root, name, RACY_BYTES_MAX) or b"").digest()


def _stat_of(found: FileStat) -> tuple[int, ...]:
    return found.mode, found.size, found.mtime_ns, found.ctime_ns, found.inode


def _literal(watched: Iterable[str]) -> list[str]:
    return [text for text in watched if not _has_wildcard(text)]


def _has_wildcard(text: str) -> bool:
    return any(char in text for char in "*?[")
