"""Read and write the pin of a repository: the file `coord.id`, which names its store for good."""

import contextlib
import os
import stat
from collections.abc import Iterator

import msgspec

from coord.core.errors import CoordError, Corrupt, Invalid, Unavailable, Unsupported

FORMAT = 1
NAME = "coord.id"
PIN_BYTES_MAX = 65536

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Pin(msgspec.Struct, frozen=True):
    """The content of a pin file, as JSON."""

    format: int
    url: str
    store_id: str
    epoch: int
    repository_id: str = ""
    machine: str = ""
    """The id of the only machine that a local store serves."""
    project: str = ""
    """The project of this repository, if a plan has named one; else its folder names it."""


class _Format(msgspec.Struct, frozen=True):
    format: int


def read_pin(folder: str) -> Pin | None:
    """Return the pin in a folder, or None if there is none; raise `Corrupt` if it is damaged."""
    with _errors(folder):
        try:
            data = _read(folder)
        except FileNotFoundError:
            return None
    where = f"{folder}/{NAME}"
    try:
        format_ = msgspec.json.decode(data, type=_Format).format
        if format_ > FORMAT:
            raise Unsupported(
                f"{where} has format {format_}; this coord knows {FORMAT}", hint="upgrade coord"
            )
        pin = msgspec.json.decode(data, type=Pin)
    except msgspec.MsgspecError as error:
        raise _damaged(where, str(error)) from error
    if pin.format != FORMAT or pin.epoch < 0 or not pin.store_id or not pin.url:
        raise _damaged(where, "it does not name a store")
    return pin


def read_copy(folder: str) -> Pin | None:
    """Return the copy of a pin beside its folder: if the folder is gone, the store is lost, not new."""
    above = os.path.dirname(folder)
    return read_pin(above) if os.path.lexists(f"{above}/{NAME}") else None


def replace_damaged(folder: str) -> bool:
    """Replace a damaged pin by its copy; return whether it was damaged and has an intact copy."""
    try:
        read_pin(folder)
    except Corrupt:
        with contextlib.suppress(Corrupt):
            if (copy := read_copy(folder)) is not None:
                replace_pin(folder, copy)
                return True
    return False


def write_copy(folder: str, pin: Pin) -> None:
    """Write a pin beside its folder, too; a sandbox may forbid that, and the pin itself is what counts."""
    with contextlib.suppress(Unavailable, Invalid):
        replace_pin(os.path.dirname(folder), pin)


def create_pin(folder: str, pin: Pin) -> bool:
    """Write the first pin of a folder; change nothing and return False if it has one."""
    with _errors(folder):
        from coord.stores.local.folders import make_private_folder  # noqa: PLC0415 - once per repository

        make_private_folder(folder)
        with _written(folder, pin) as (opened, draft):
            try:
                os.link(draft, NAME, src_dir_fd=opened, dst_dir_fd=opened, follow_symlinks=False)
            except FileExistsError:
                return False
            os.fsync(opened)
    return True


def replace_pin(folder: str, pin: Pin) -> None:
    """Replace the pin; a reader finds the old one or the new one, even after a crash."""
    with _errors(folder), _written(folder, pin) as (opened, draft):
        os.rename(draft, NAME, src_dir_fd=opened, dst_dir_fd=opened)
        os.fsync(opened)


def _read(folder: str) -> bytes:
    opened = os.open(folder, _FOLDER)
    try:
        file = os.open(NAME, _READ, dir_fd=opened)
        if os.fstat(opened).st_mode & stat.S_IWOTH and not os.fstat(opened).st_mode & stat.S_ISVTX:
            os.close(file)
            raise Unsupported(
                f"every user of this machine can write to {folder}, and so change the locks in it",
                hint=f"remove that permission: chmod go-w {folder}",
            )
    finally:
        os.close(opened)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _damaged(f"{folder}/{NAME}", "it is not a file")
        return os.read(file, PIN_BYTES_MAX)
    finally:
        os.close(file)


@contextlib.contextmanager
def _written(folder: str, pin: Pin) -> Iterator[tuple[int, str]]:
    """Yield the open folder and the name of a draft in it to which the pin was written and synced."""
    draft = f".{NAME}-{os.urandom(8).hex()}"
    opened = os.open(folder, _FOLDER)
    try:
        file = os.open(draft, _CREATE, 0o600, dir_fd=opened)
        try:
            data = msgspec.json.format(msgspec.json.encode(pin), indent=1) + b"\n"
            if os.write(file, data) < len(data):
                raise Unavailable(
                    f"{folder}/{NAME} could not be written completely", hint="check whether the disk is full"
                )
            os.fsync(file)
            yield opened, draft
        finally:
            os.close(file)
            with contextlib.suppress(FileNotFoundError):  # renamed
                os.unlink(draft, dir_fd=opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def _errors(folder: str) -> Iterator[None]:
    try:
        yield
    except (NotADirectoryError, IsADirectoryError) as error:
        raise Invalid(f"{folder} is not a folder", hint="remove the file at this path") from error
    except OSError as error:
        if os.path.islink(folder) or os.path.islink(f"{folder}/{NAME}"):
            raise Invalid(
                f"{folder} or its {NAME} is a symlink", hint="coord does not follow symlinks here; remove it"
            ) from error
        raise Unavailable(
            f"{folder}/{NAME}: {error.strerror}",
            hint="check whether the disk is full or read-only, and who owns the folder",
        ) from error


def _damaged(where: str, why: str) -> Corrupt:
    folder = os.path.dirname(where)
    intact = False
    if os.path.basename(folder) == "coord":  # otherwise it is the copy itself
        with contextlib.suppress(CoordError):
            intact = read_copy(folder) is not None
    next_step = "coord doctor --fix restores it from its copy" if intact else "coord init --new-store"
    return Corrupt(f"{where} is damaged: {why}", hint=next_step)
