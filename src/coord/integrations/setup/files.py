"""Files as set-up sees them: bytes and mode, read and put as a whole."""

import os
import stat

import msgspec

from coord.core.errors import Invalid, Unavailable

PLAIN, PROGRAM = 0o644, 0o755
BYTES_MAX = 16 * 1024 * 1024


class Content(msgspec.Struct, frozen=True):
    """What is at a path: a file, or a symbolic link with what it points to."""

    data: bytes
    mode: int = PLAIN
    link: bool = False

    @property
    def text(self) -> str:
        """The bytes as text; none are lost on the way."""
        return self.data.decode("utf-8", "surrogateescape")

    def with_text(self, text: str) -> "Content":
        """Return the same file with another text."""
        return Content(text.encode("utf-8", "surrogateescape"), self.mode)


def read(path: str) -> Content | None:
    """Return what is at a path; None: nothing."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return Content(os.fsencode(os.readlink(path)), 0, link=True)
        if not stat.S_ISREG(found.st_mode) or found.st_size > BYTES_MAX:
            raise Invalid(f"{path} is no file that can be edited", hint="look at it, and move it away")
        with open(path, "rb") as file:
            return Content(file.read(), stat.S_IMODE(found.st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be read: {error.strerror}", hint="look at its permissions"
        ) from error


def put(path: str, content: Content | None, *, durable: bool = False) -> None:
    """Make a path hold this, whole or not at all; `durable` survives a loss of power, too."""
    try:
        if content is None:
            os.unlink(path)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        beside = f"{path}.coord-{os.getpid()}"
        try:
            if content.link:
                os.symlink(os.fsdecode(content.data), beside)
            else:
                _write(beside, content, durable=durable)
            os.replace(beside, path)
        except BaseException:
            if os.path.lexists(beside):
                os.unlink(beside)
            raise
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error.strerror}", hint="look at its permissions"
        ) from error


def _write(path: str, content: Content, *, durable: bool) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content.data)
        os.fchmod(file.fileno(), content.mode)
        if durable:
            file.flush()
            os.fsync(file.fileno())
