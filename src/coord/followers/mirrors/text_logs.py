"""The text logs of a mirror as coord keeps them beside the store; the mirror has a copy.

A log is a series of parts. A part only grows, and a new one begins when it is full. The state says how long
each part is: what a killed process wrote behind that is overwritten. Two parts are kept, so a log is bounded.
"""

import os
from collections.abc import Sequence

from coord.followers.mirrors.log_lines import LOGS, Line
from coord.followers.mirrors.state import LogFile, MirrorState
from coord.stores.local.safe_folder import FILE_MODE, FOLDER_MODE

PART_BYTES_MAX = 128 * 1024


class TextLogs:
    """The text logs of one mirror."""

    def __init__(self, folder: str, state: MirrorState) -> None:
        self._folder = folder
        self._state = state

    def append(self, lines: Sequence[Line]) -> None:
        """Append lines; the state says how far they count."""
        for name in LOGS:
            texts = [line.text.encode() for line in lines if line.log == name]
            if texts:
                self._append(name, self._state.logs.setdefault(name, LogFile()), texts)

    def files(self) -> dict[str, bytes]:
        """Return the logs by the name of their file: the current part, and the one before it as `.1`."""
        found = {}
        for name in LOGS:
            log = self._state.logs.get(name, LogFile())
            found[name] = self._read(name, log.part, log.size)
            if log.part:
                found[f"{name}.1"] = self._read(name, log.part - 1, log.former)
        return found

    def remove_old(self) -> None:
        """Remove the parts that no file shows any more."""
        for name, log in self._state.logs.items():
            for part in range(log.part - 2, -1, -1):
                path = self._path(name, part)
                if not os.path.exists(path):
                    break  # those before it were removed earlier
                os.unlink(path)

    def _append(self, name: str, log: LogFile, texts: list[bytes]) -> None:
        pending = b""
        for text in texts:
            size = log.size + len(pending)
            if size and size + len(text) > PART_BYTES_MAX:
                self._write(name, log.part, log.size, pending)
                log.part, log.size, log.former, pending = log.part + 1, 0, log.size + len(pending), b""
            pending += text
        self._write(name, log.part, log.size, pending)
        log.size += len(pending)

    def _write(self, name: str, part: int, size: int, data: bytes) -> None:
        os.makedirs(self._folder, FOLDER_MODE, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self._path(name, part), flags, FILE_MODE), "r+b") as file:
            file.seek(size)
            file.write(data)

    def _read(self, name: str, part: int, size: int) -> bytes:
        try:
            with open(self._path(name, part), "rb") as file:
                return file.read(size)
        except FileNotFoundError:
            return b""

    def _path(self, name: str, part: int) -> str:
        return f"{self._folder}/{name}.{part}"
