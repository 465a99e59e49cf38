"""Read and write whole files with their bytes and mode."""

import os
import stat
from contextlib import suppress

import msgspec

from coord.core.errors import Invalid, Unavailable
from coord.stores.local.folders import make_readable_folder

FILE_MODE, PROGRAM_MODE = 0o644, 0o755
BYTES_MAX = 16 * 1024 * 1024
DRAFT_SUFFIX = ".coord-draft"


class Content(msgspec.Struct, frozen=True):
    """A file, or a symbolic link with its target."""

    data: bytes
    mode: int = FILE_MODE
    link: bool = False

    @property
    def text(self) -> str:
        """The bytes as text; invalid UTF-8 survives the round trip."""
        return self.data.decode("utf-8", "surrogateescape")

    def with_text(self, text: str) -> "Content":
        """Return the same file with another text."""
        return Content(text.encode("utf-8", "surrogateescape"), self.mode)


def read_file(path: str) -> Content | None:
    """Return the file or link at a path; None: neither exists."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return Content(os.fsencode(os.readlink(path)), 0, link=True)
        if not stat.S_ISREG(found.st_mode) or found.st_size > BYTES_MAX:
            raise Invalid(f"{path} is not a regular file below 16 MiB", hint="move it away")
        with open(path, "rb") as file:
            return Content(file.read(), stat.S_IMODE(found.st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror}", hint="check its permissions") from error


def write_file(path: str, content: Content | None, *, durable: bool = False) -> None:
    """Replace a file atomically; None removes it. `durable` survives a power failure."""
    try:
        if content is None:
            os.unlink(path)
            return
        make_readable_folder(os.path.dirname(path))
        remove_draft(path)
        draft = path + DRAFT_SUFFIX
        try:
            if content.link:
                os.symlink(os.fsdecode(content.data), draft)
            else:
                _write(draft, content, durable=durable)
            os.replace(draft, path)
        except BaseException:
            remove_draft(path)
            raise
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: str, error: OSError) -> Unavailable:
    return Unavailable(
        f"cannot write {path}: {error.strerror}",
        hint="in a sandbox: a person runs it outside of it; elsewhere: check its permissions",
    )


def remove_draft(path: str) -> None:
    """Remove the draft of a file that a killed command left; only one command at a time writes a file."""
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path + DRAFT_SUFFIX)
    except OSError as error:
        raise _not_written(path, error) from error


def require_writable(path: str) -> None:
    """Raise Unavailable if a file cannot be created or replaced."""
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise Unavailable(f"cannot write {path}: {folder} is not a folder", hint="move it away")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unavailable(
            f"cannot write {path}: {folder} is read-only", hint="make it writable, and run coord init again"
        )


def _write(path: str, content: Content, *, durable: bool) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content.data)
        os.fchmod(file.fileno(), content.mode)
        if durable:
            file.flush()
            os.fsync(file.fileno())
