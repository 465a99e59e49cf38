"""A folder that coord writes into: no link in it leads a write, a read or a removal out of it.

Each part of a path is opened by itself and without following links, so a folder that somebody replaces by a
link in the meantime is refused, too.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from coord.core.errors import Refused, Unavailable

FILE_MODE, FOLDER_MODE = 0o600, 0o700
DRAFT = ".coord-mirror-draft"
"""The name of a file that is not complete; processes that write at the same time need different ones."""
READ_BYTES_MAX = 4 * 1024 * 1024
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Signature(NamedTuple):
    """What a stat shows of a file; the kernel sets the last field whenever the file changes."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Blocked(Refused):
    """A path cannot be written: a link, a folder or another kind of file is there."""


class Folder:
    """A folder with its files by their paths relative to it."""

    def __init__(self, path: str, opened: int | None = None) -> None:
        """`opened`: its descriptor, if it is open already."""
        self.path = path
        try:
            self._fd = os.open(path, _OPEN_FOLDER) if opened is None else opened
        except OSError as error:
            raise _not_usable(path, error) from error

    def close(self) -> None:
        """Close the folder."""
        os.close(self._fd)

    def signature(self, name: str) -> Signature | None:
        """Return the stat of a regular file; None if nothing is there."""
        with self._parent(name) as parent:
            return None if parent is None else _signature(self.path, name, parent)

    def exists(self, name: str) -> bool:
        """Whether anything has this path, or blocks it."""
        try:
            return self.signature(name) is not None
        except Blocked:
            return True

    def private(self, name: str, *, make: bool = False) -> "Folder":
        """Open a folder in it that only this user can use, as are those above it."""
        path = f"{self.path}/{name}"
        try:
            with self._parent(f"{name}/", make=make, private=True) as opened:
                if opened is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                return Folder(path, os.dup(opened))
        except OSError as error:
            raise _not_usable(path, error) from error

    def names(self, *, folders: bool = False) -> list[str]:
        """Return the names of the regular files in it, or of the folders."""
        try:
            with os.scandir(self._fd) as entries:
                return [
                    each.name
                    for each in entries
                    if (each.is_dir if folders else each.is_file)(follow_symlinks=False)
                ]
        except OSError as error:
            raise _not_usable(self.path, error) from error

    def read(self, name: str, bytes_max: int = READ_BYTES_MAX) -> bytes | None:
        """Return the content of a file, at most its first bytes; None if it does not exist."""
        with self._parent(name) as parent:
            if parent is None or _signature(self.path, name, parent) is None:
                return None
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                with open(os.open(os.path.basename(name), flags, dir_fd=parent), "rb") as file:
                    return file.read(bytes_max)
            except OSError as error:
                raise _not_usable(f"{self.path}/{name}", error) from error

    def write(self, name: str, data: bytes, draft: str = DRAFT) -> Signature:
        """Replace a file in one step; a link there is replaced, too, and not what it leads to."""
        last = os.path.basename(name)
        try:
            with self._made_parent(name) as parent:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=parent)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                try:
                    with open(os.open(draft, flags, FILE_MODE, dir_fd=parent), "wb") as file:
                        file.write(data)
                    os.replace(draft, last, src_dir_fd=parent, dst_dir_fd=parent)
                except OSError:
                    with suppress(OSError):
                        os.unlink(draft, dir_fd=parent)
                    raise
                return _stat(last, parent)
        except OSError as error:
            raise _not_usable(f"{self.path}/{name}", error) from error

    def append(self, name: str, data: bytes) -> Signature:
        """Add to the end of a file that exists."""
        last = os.path.basename(name)
        try:
            with self._made_parent(name) as parent:
                flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                with open(os.open(last, flags, dir_fd=parent), "ab") as file:
                    file.write(data)
                return _stat(last, parent)
        except OSError as error:
            raise _not_usable(f"{self.path}/{name}", error) from error

    def remove(self, name: str) -> None:
        """Remove a file or a link; one that is gone already is fine."""
        with self._parent(name) as parent:
            if parent is None:
                return
            try:
                os.unlink(os.path.basename(name), dir_fd=parent)
            except FileNotFoundError:
                return
            except OSError as error:
                raise _not_usable(f"{self.path}/{name}", error) from error

    def remove_draft(self, name: str) -> None:
        """Remove what a killed process left beside a file."""
        above = name.rpartition("/")[0]
        with suppress(Blocked):
            self.remove(f"{above}/{DRAFT}" if above else DRAFT)

    def make_folder(self, name: str) -> None:
        """Make a folder, and those above it."""
        try:
            with self._made_parent(f"{name}/{DRAFT}"):
                return
        except OSError as error:
            raise _not_usable(f"{self.path}/{name}", error) from error

    def missing_folders(self, name: str) -> list[str]:
        """Return a folder and those above it as far as they do not exist, the outermost first."""
        parts = name.split("/") if name else []
        above = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        return [each for each in above if not os.path.lexists(f"{self.path}/{each}")]

    def remove_folder(self, name: str) -> bool:
        """Remove a folder if it is empty; return whether it is gone."""
        with self._parent(name) as parent:
            if parent is None:
                return True
            try:
                os.rmdir(os.path.basename(name), dir_fd=parent)
            except FileNotFoundError:
                return True
            except OSError:  # it has files of others, or is no folder
                return False
            return True

    @contextmanager
    def _parent(self, name: str, *, make: bool = False, private: bool = False) -> Iterator[int | None]:
        """Open the folder of a path; None if it does not exist. `private`: refuse what others can use."""
        opened = os.dup(self._fd)
        try:
            for part in name.split("/")[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, FOLDER_MODE, dir_fd=opened)
                try:
                    inner = os.open(part, _OPEN_FOLDER, dir_fd=opened)
                except FileNotFoundError:
                    yield None
                    return
                except OSError as error:
                    raise _not_usable(f"{self.path}/{name}", error) from error
                os.close(opened)
                opened = inner
                if private and (problem := _problem_of(os.fstat(opened))):
                    raise Blocked(f"{self.path}/{name} {problem}", hint="remove it, or give it mode 700")
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _made_parent(self, name: str) -> Iterator[int]:
        with self._parent(name, make=True) as parent:
            assert parent is not None, "it was made"
            yield parent


def make_private_folder(path: str) -> str:
    """Make a folder that only this user can use, and return it without links above it.

    A folder that exists has to be that already: in a folder like /tmp somebody else may have made it.
    """
    above, last = os.path.split(os.path.abspath(path))
    real = f"{os.path.realpath(above).rstrip('/')}/{last}"
    try:
        with suppress(FileExistsError):
            os.mkdir(real, FOLDER_MODE)
        found = os.lstat(real)
    except OSError as error:
        raise _not_usable(real, error) from error
    if problem := _problem_of(found):
        raise Refused(f"{real} {problem}", hint="remove it, make it yours with mode 700, or pass --folder")
    return real


def _problem_of(found: os.stat_result) -> str:
    """Return why a folder is not private; empty if it is."""
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    return "is open to other users" if stat.S_IMODE(found.st_mode) & 0o077 else ""


def _signature(root: str, name: str, parent: int) -> Signature | None:
    try:
        found = os.stat(os.path.basename(name), dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Blocked(f"{root}/{name} is not a regular file", hint="move it away")
    return Signature(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _stat(last: str, parent: int) -> Signature:
    found = os.stat(last, dir_fd=parent, follow_symlinks=False)
    return Signature(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _not_usable(path: str, error: OSError) -> Unavailable | Blocked:
    if isinstance(error, NotADirectoryError | IsADirectoryError) or error.errno == errno.ELOOP:
        return Blocked(f"{path} is behind a link or blocked by another file", hint="move that away")
    return Unavailable(f"{path} cannot be used: {error.strerror}", hint="free the disk or its permissions")
