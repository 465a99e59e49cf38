"""Put files back as they were before a command, and keep what the command wrote, byte for byte.

What the command wrote goes into one salvage ref. What git cannot or should not keep (folders, sockets, large
files, and ignored files, which may be secrets) is moved into the private folder of the worktree.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from coord.integrations.git.run import Git, nul_terminated
from coord.integrations.git.salvage.salvage import save_blobs
from coord.integrations.git.salvage.swap import open_folder, swap_file
from coord.integrations.shell_effects.call_log import CallFolder
from coord.integrations.shell_effects.saved_content import (
    BYTES_MAX,
    SavedFile,
    ignored_files,
    saved_bytes,
    store_files,
)
from coord.integrations.shell_effects.worktree_state import FileStat, file_stat, read_content

INDEXED_BYTES_MAX = 64 << 20
"""Files of the index up to this size are restored."""
KEPT = "kept-"
GIT_MODES = ("100644", "100755", "120000")


class Former(NamedTuple):
    """A file as it was before a command; without content there was no file."""

    mode: int
    content: bytes | None


class Restored(NamedTuple):
    """What became of a file; `kept` is the command that shows what was written over it."""

    done: bool
    kept: str = ""


NO_FILE = Former(0, None)


def former_files(
    git: Git, folder: CallFolder, index: str, wanted: Mapping[str, SavedFile | None]
) -> dict[str, Former]:
    """Return files as they were saved, or else as they were in the old index."""
    found: dict[str, Former] = {}
    for path, saved in wanted.items():
        content = None if saved is None else saved_bytes(git, folder, saved)
        if saved is not None and content is not None:
            found[path] = Former(saved.file_stat.mode, content)
    found.update(_indexed_files(git, folder, index, [path for path in wanted if wanted[path] is None]))
    return found


def _indexed_files(git: Git, folder: CallFolder, index: str, paths: list[str]) -> dict[str, Former]:
    """Return files as git would check them out from the old index, filters and line ends included."""
    modes = {path: int(mode, 8) for path, (mode, _) in index_entries(git, index, paths).items()}
    if not modes:
        return {}
    work = f"{folder.path}/work-{os.urandom(8).hex()}"
    os.mkdir(work, 0o700)
    try:
        words = ("checkout-index", "-z", "--stdin", f"--prefix={work}/")
        git.run(*words, stdin=nul_terminated(modes), GIT_INDEX_FILE=index)  # what fails is missing below
        contents = {path: read_content(work, path, INDEXED_BYTES_MAX) for path in modes}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {path: Former(modes[path], data) for path, data in contents.items() if data is not None}


def index_entries(git: Git, index: str, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return mode and blob of plain files and links in an index ("": the present one)."""
    if not paths:
        return {}
    words = ("--literal-pathspecs", "ls-files", "--stage", "-z", "--", *paths)
    done = git.must(*words, GIT_INDEX_FILE=index) if index else git.must(*words)
    found: dict[str, tuple[str, str]] = {}
    for entry in done.names:
        about, _, path = entry.partition("\t")
        mode, blob, stage = about.split(" ")
        if stage == "0" and mode in GIT_MODES and path in paths:
            found[path] = (mode, blob)
    return found


class Restorer:
    """Restores files that one session overwrote."""

    def __init__(self, git: Git, folder: CallFolder, session: str) -> None:
        self._git = git
        self._folder = folder
        self._session = session

    def restore(
        self, former: Mapping[str, Former], seen: Mapping[str, FileStat | None], why: str
    ) -> dict[str, Restored]:
        """Salvage what a command wrote, and put the former files back.

        `seen`: the files as the command left them; a file that changed since, or cannot be kept, stays.
        """
        same = {path for path in former if _is_same(seen[path], file_stat(self._git.folder, path))}
        moved: dict[str, str] = {}
        above = {path: self._clear_above(path, moved) for path in same}
        salvaged, kept = self._salvage([path for path in same if not above[path]], seen, why)
        done: dict[str, Restored] = {}
        for path in sorted(former, key=lambda each: former[each].content is not None):  # first remove
            now = None if above.get(path) else seen[path]
            done[path] = Restored(done=False)
            with suppress(OSError):  # no space, or no permission: what is there stays
                if path in moved and former[path].content is None:
                    done[path] = Restored(done=True, kept=moved[path])
                elif path in same and _is_same(now, file_stat(self._git.folder, path)):
                    shown = above[path] or kept.get(path, "")
                    done[path] = self._put_back(path, former[path], salvaged.get(path), shown)
        return done

    def _put_back(self, path: str, former: Former, blamed: bytes | None, kept: str) -> Restored:
        if blamed is None and os.path.lexists(f"{self._git.folder}/{path}"):
            kept = self._move_away(path)
        return Restored(restore_content(self._git, path, *former, blamed), kept)

    def keep(self, session: str, path: str, former: Former, why: str) -> str:
        """Keep a former file that is not put back; return the command that shows it."""
        if former.content is None:
            return ""
        if ignored_files(self._git, [path]):
            return f"cat {self._kept_file(path, former.content)}"
        blob = self._git.must("hash-object", "-w", "--stdin", stdin=former.content).text
        ref = save_blobs(self._git, session, {path: (_mode_word(former.mode), blob)}, why)
        return show_command(ref, path)

    def _salvage(
        self, paths: list[str], seen: Mapping[str, FileStat | None], why: str
    ) -> tuple[dict[str, bytes], dict[str, str]]:
        """Save what is there now in one ref; return the contents, and the commands that show them."""
        ignored = ignored_files(self._git, paths)
        plain = [path for path in paths if path not in ignored]
        saved = store_files(self._git, self._folder, plain)
        entries = {
            path: (_mode_word(each.file_stat.mode), each.blob)
            for path, each in saved.items()
            if _is_same(seen[path], each.file_stat)
        }
        if not entries:
            return {}, {}
        contents = {path: read_content(self._git.folder, path, BYTES_MAX) for path in entries}
        ref = save_blobs(self._git, self._session, entries, why)
        return (
            {path: content for path, content in contents.items() if content is not None},
            {path: show_command(ref, path) for path in entries},
        )

    def _move_away(self, path: str) -> str:
        """Move something that git does not keep out of the worktree; return the command that shows it."""
        there = f"{self._git.folder}/{path}"
        to = f"{self._folder.path}/{KEPT}{os.urandom(8).hex()}"
        try:
            os.rename(there, to)
        except OSError:  # another disk
            to = f"{there}.coord-{os.urandom(4).hex()}"
            os.rename(there, to)
        return f"ls -ld {_quoted(to)}" if os.path.isdir(to) else f"cat {_quoted(to)}"

    def _kept_file(self, path: str, content: bytes) -> str:
        to = f"{self._folder.path}/{KEPT}{os.urandom(8).hex()}"
        with open(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
        return _quoted(to)

    def _clear_above(self, path: str, moved: dict[str, str]) -> str:
        """Move away a file or link that stands where a folder of the path has to be.

        `moved`: the commands that show what was moved already.
        """
        above = ""
        for part in path.split("/")[:-1]:
            above = f"{above}/{part}" if above else part
            full = f"{self._git.folder}/{above}"
            if above in moved:
                return moved[above]
            if os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full)):
                moved[above] = self._move_away(above)
                return moved[above]
        return ""


def restore_index(git: Git, index: str, paths: Iterable[str]) -> list[str]:
    """Put entries of the old index back that are gone, or whose staged content is; return their files."""
    paths = list(paths)
    before, now = index_entries(git, index, paths), index_entries(git, "", paths)
    lost = {path: entry for path, entry in before.items() if now.get(path) != entry}
    if not lost:
        return []
    words = ("ls-tree", "-z", "--full-tree", "HEAD", "--", *lost)
    tree = git.run(*words, GIT_LITERAL_PATHSPECS="1").names
    in_head = {entry.partition("\t")[2]: entry.split("\t")[0].split(" ")[2] for entry in tree}
    staged = {path: each for path, each in lost.items() if path not in now or in_head.get(path) != each[1]}
    if staged:
        lines = b"".join(
            f"{mode} {blob} 0\t".encode() + os.fsencode(path) + b"\0" for path, (mode, blob) in staged.items()
        )
        git.retry_on_race("update-index", "--add", "--replace", "-z", "--index-info", stdin=lines)
    return list(staged)


def restore_content(git: Git, path: str, mode: int, content: bytes | None, blamed: bytes | None) -> bool:
    """Replace the blamed content (None: no file) if it is still there; return whether it was.

    Without content the file is removed.
    """
    full = f"{git.folder}/{path}"
    if read_content(git.folder, path, BYTES_MAX) != blamed or (blamed is None and os.path.lexists(full)):
        return False
    folder = open_folder(git.folder, os.path.dirname(path), make=content is not None)
    if folder is None:
        return content is None
    try:
        return _swap(folder, os.path.basename(path), mode, content, blamed)
    except OSError:  # the folder is not writable
        return False
    finally:
        os.close(folder)


def _swap(folder: int, name: str, mode: int, content: bytes | None, blamed: bytes | None) -> bool:
    """Swap a file; a content that is not the blamed one comes back, and later writes stay."""
    new = _write_beside(folder, mode, content)
    taken = f"{new}-taken"
    try:
        placed = swap_file(folder, name, new, taken)
        if placed and read_content("", taken, BYTES_MAX, folder) == blamed:
            return True
        if placed:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=folder)
            swap_file(folder, name, taken, new)
        else:
            with suppress(FileExistsError, FileNotFoundError):
                os.link(taken, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        return False
    finally:
        _remove_spare(folder, new, name, content)
        _remove_spare(folder, taken, name, blamed)


def _remove_spare(folder: int, spare: str, name: str, known: bytes | None) -> None:
    """Remove a spare file if its content is known or in place; any other stays beside the file."""
    with suppress(FileNotFoundError):
        found = os.stat(spare, dir_fd=folder, follow_symlinks=False)
        same = False
        with suppress(FileNotFoundError):
            same = os.path.samestat(found, os.stat(name, dir_fd=folder, follow_symlinks=False))
        if same or read_content("", spare, BYTES_MAX, folder) == known:
            os.unlink(spare, dir_fd=folder)


def _write_beside(folder: int, mode: int, content: bytes | None) -> str:
    """Write a new file beside the one that it will replace, and return its name."""
    new = f".coord-{os.urandom(8).hex()}"
    if content is None:
        return new
    if stat.S_ISLNK(mode):
        os.symlink(os.fsdecode(content), new, dir_fd=folder)
        return new
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(new, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), stat.S_IMODE(mode) & 0o777)
    except OSError:  # no space
        with suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise
    return new


def show_command(ref: str, path: str) -> str:
    """Return the command that prints a salvaged file, byte for byte."""
    return f"git show {_quoted(f'{ref}:{path}')}"


def _is_same(seen: FileStat | None, now: FileStat | None) -> bool:
    return now is None if seen is None else seen.same_stat(now)


def _mode_word(mode: int) -> str:
    return "120000" if stat.S_ISLNK(mode) else "100755" if mode & 0o100 else "100644"


def _quoted(text: str) -> str:
    from shlex import quote

    return quote(os.fsencode(text).decode("utf-8", "backslashreplace"))
