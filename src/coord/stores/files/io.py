"""All file operations of the files store. Tests pass a layer that records, counts or fails.

Folders are passed as open descriptors, and symbolic links are never followed, so nothing below the root of a
store can lead out of it.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from types import TracebackType

from coord.core.errors import CoordError, Corrupt, Unavailable

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: its fsync does not reach the disk
_WRONG_KIND = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)
_DAMAGED = (errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EBADMSG))
_FULL = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class FileLayer:
    """File operations of the operating system."""

    def open(self, name: str, flags: int, folder: int | None = None) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE, dir_fd=folder)

    def close(self, file: int) -> None:
        os.close(file)

    def status(self, file: int) -> os.stat_result:
        return os.fstat(file)

    def read(self, file: int, limit: int) -> bytes:
        return os.read(file, limit)

    def read_at(self, file: int, limit: int, position: int) -> bytes:
        return os.pread(file, limit, position)

    def write(self, file: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]

    def write_at(self, file: int, data: bytes, position: int) -> None:
        os.pwrite(file, data, position)

    def sync_file(self, file: int) -> None:
        """Make the data of a file, and the length needed to read it, durable."""
        if _FULL_SYNC is not None:
            fcntl.fcntl(file, _FULL_SYNC)
        else:
            os.fdatasync(file)

    def sync_folder(self, folder: int) -> None:
        """Make the names in a folder durable."""
        if _FULL_SYNC is not None:
            fcntl.fcntl(folder, _FULL_SYNC)
        else:
            os.fsync(folder)

    def link(self, name: str, folder: int, new_name: str, new_folder: int) -> None:
        os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)

    def replace(self, name: str, new_name: str, folder: int) -> None:
        os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=folder)

    def unlink(self, name: str, folder: int) -> None:
        os.unlink(name, dir_fd=folder)

    def make_folder(self, name: str, folder: int | None = None) -> None:
        os.mkdir(name, FOLDER_MODE, dir_fd=folder)

    def remove_folder(self, name: str, folder: int) -> None:
        os.rmdir(name, dir_fd=folder)

    def names(self, folder: int) -> list[str]:
        return os.listdir(folder)

    # Combinations of the above.

    def open_folder(self, name: str, folder: int | None = None) -> int:
        return self.open(name, os.O_RDONLY | os.O_DIRECTORY, folder)

    def read_file(self, name: str, folder: int, size_max: int) -> bytes:
        """Return the content of a regular file; one larger than `size_max` is refused without reading it."""
        file = self.open(name, os.O_RDONLY | os.O_NONBLOCK, folder)  # opening a pipe must not block
        try:
            size = self.regular(file, name)
            if size > size_max:
                raise OSError(errno.EBADMSG, f"it has {size} bytes; the limit is {size_max}", name)
            return self.read(file, size)
        finally:
            self.close(file)

    def regular(self, file: int, name: str) -> int:
        """Return the size of a regular file; refuse a pipe, folder or device."""
        status = self.status(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ENXIO, "not a regular file", name)
        return status.st_size

    def write_file(self, name: str, folder: int, parts: Iterable[bytes]) -> int:
        """Write a new file, make its data durable, and return its size."""
        file = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder)
        try:
            size = 0
            for part in parts:
                self.write(file, part)
                size += len(part)
            self.sync_file(file)
            return size
        finally:
            self.close(file)


class FileErrors:
    """A context that turns errors of the operating system into errors of a store."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Unavailable is an OSError too, and is translated already.
        if isinstance(error, OSError) and not isinstance(error, CoordError):
            raise self._translated(error) from error

    def _translated(self, error: OSError) -> CoordError:
        name = error.filename2 or error.filename
        inside = isinstance(name, str) and not os.path.isabs(name)
        where = f"{name} in {self._path}" if inside else self._path
        if error.errno in _WRONG_KIND:
            return Corrupt(
                f"{where} is a symbolic link or not a regular file or folder",
                hint="another program created it; check it",
            )
        if error.errno in _DAMAGED:
            return Corrupt(f"{where} is damaged: {error.strerror}", hint="restore the folder from a copy")
        if error.errno == errno.ENOENT:
            return Corrupt(f"{where} is missing", hint="restore the folder from a copy; nothing was changed")
        if error.errno in _FULL:
            return Unavailable(f"{where} cannot be written: the disk is full", hint="free some space")
        if error.errno in _READ_ONLY:
            return Unavailable(
                f"{where} cannot be used: {error.strerror}",
                hint="check its owner and whether it is read-only",
            )
        return Unavailable(f"{where}: {error.strerror}")
