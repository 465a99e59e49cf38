"""The newest offset of each log that this machine has seen, in a file beside the pin.

A store whose log ends before that offset is an old copy, or has lost its newest commits. Its locks and
generations would be given out again, so it is refused. A mark is written after the commits that it covers are
durable, and without a sync: it may be too low after a power failure, and is never too high.
"""

import contextlib
import os
from _thread import get_native_id  # a hub answers in many threads
from binascii import crc32  # loaded already, unlike zlib
from collections.abc import Mapping
from typing import NamedTuple

from coord.core.errors import Corrupt

NAME = "high-water"
BYTES_MAX = 1024 * 1024


class Mark(NamedTuple):
    """A log's newest offset, and the epoch of its store at that time."""

    epoch: int
    offset: int


class HighWater:
    """The marks in the folder of a pin; `where` names the store in errors."""

    def __init__(self, folder: str, where: str) -> None:
        self._folder = folder
        self._where = where
        self._marks = self._read()

    def check(self, store_id: str, epoch: int, tenant: str, offset: int) -> None:
        """Refuse a log that ends before its mark; a store in a later epoch has reported its loss."""
        mark = self._marks.get((store_id, tenant))
        if mark is not None and epoch <= mark.epoch and offset < mark.offset:
            raise Corrupt(
                f"{self._where} went back from offset {mark.offset} to {offset}, like an old copy",
                hint="restore the newest copy; or keep this one without what is lost: coord doctor --repair",
            )

    def raise_to(self, store_id: str, epoch: int, offsets: Mapping[str, int]) -> None:
        """Write the newest offsets of logs; what another process wrote higher stays."""
        known = self._read()
        new = dict(known)
        for tenant, offset in offsets.items():
            mark = Mark(epoch, offset)
            new[store_id, tenant] = max(mark, known.get((store_id, tenant), mark))
        if new != known:
            self._write(new)

    def _read(self) -> dict[tuple[str, str], Mark]:
        """Return the marks; a damaged line is no mark."""
        found: dict[tuple[str, str], Mark] = {}
        try:
            file = os.open(
                f"{self._folder}/{NAME}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            )
        except OSError:
            return found
        try:
            data = os.read(file, BYTES_MAX)
        except OSError:
            return found
        finally:
            os.close(file)
        for line in data.decode(errors="replace").splitlines():
            checksum, _, rest = line.partition(" ")
            store_id, epoch, offset, tenant = (*rest.split(" "), "", "", "", "")[:4]
            if checksum == _checksum(rest):
                found[store_id, tenant] = Mark(int(epoch), int(offset))
        return found

    def _write(self, marks: dict[tuple[str, str], Mark]) -> None:
        """Replace the file; where nothing can be written, the marks stay as they are."""
        lines = [
            f"{store_id} {mark.epoch} {mark.offset} {tenant}" for (store_id, tenant), mark in marks.items()
        ]
        data = "".join(f"{_checksum(line)} {line}\n" for line in lines).encode()
        draft = f"{self._folder}/.{NAME}-{get_native_id()}"
        with contextlib.suppress(OSError):
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                complete = os.write(file, data) == len(data)
            finally:
                os.close(file)
            if complete:
                os.rename(draft, f"{self._folder}/{NAME}")


def _checksum(text: str) -> str:
    return f"{crc32(text.encode()):08x}"
