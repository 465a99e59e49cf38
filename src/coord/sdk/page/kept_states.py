"""States of the page that were kept: in memory, or in a folder beside the pin of a store.

What was before a trim cannot be read from the log again, so a hub keeps states on its disk; the next hub and
`coord report` find them there. A state is as secret as the store that it comes from.
"""

import os
import re
import zlib
from contextlib import suppress
from hashlib import sha256
from tempfile import NamedTemporaryFile
from typing import NamedTuple

import msgspec

from coord.core.page.rules import JOINTS, RECENT, RULES
from coord.core.page.state import PageState
from coord.host.store_location import StoreLocation

FOLDER = "page"
KEPT_MAX = 64
DRAFT = "draft-"
RULES_ID = sha256(msgspec.json.encode((RULES, JOINTS, RECENT), order="sorted")).hexdigest()[:12]
"""States that were made by other rules do not count."""
_NAME = re.compile(rf"{RULES_ID}-(\d+)-(\d+)")


class StateAt(NamedTuple):
    """The entry after which a state was kept; a log that has another entry there is another log."""

    offset: int
    at: int


class KeptStates:
    """States by their entries; there are at most `KEPT_MAX`, as far apart from each other as possible."""

    def __init__(self) -> None:
        self._states: dict[StateAt, bytes] = {}

    def known(self) -> list[StateAt]:
        """Return the states, the oldest first."""
        return sorted(self._states)

    def read(self, kept_at: StateAt) -> PageState | None:
        """Return a state, or None if it cannot be read."""
        with suppress(OSError, zlib.error, msgspec.MsgspecError):
            state = msgspec.json.decode(zlib.decompress(self._get(kept_at)), type=PageState)
            if (state.offset, state.at) == kept_at:
                return state
        self.remove(kept_at)
        return None

    def keep(self, state: PageState) -> None:
        """Keep a state; if there are too many, one that is close to others makes room."""
        kept_at = StateAt(state.offset, state.at)
        if kept_at in self.known():
            return
        self._put(kept_at, zlib.compress(msgspec.json.encode(state), 1))
        known = self.known()
        if len(known) > KEPT_MAX:
            inner = range(1, len(known) - 1)
            self.remove(known[min(inner, key=lambda each: known[each + 1].offset - known[each - 1].offset)])

    def remove(self, kept_at: StateAt) -> None:
        """Remove a state."""
        self._states.pop(kept_at, None)

    def _get(self, kept_at: StateAt) -> bytes:
        return self._states[kept_at]

    def _put(self, kept_at: StateAt, data: bytes) -> None:
        self._states[kept_at] = data


class StateFolder(KeptStates):
    """States as files of a private folder; several processes may use it."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def known(self) -> list[StateAt]:
        names: list[str] = []
        with suppress(OSError):
            names = os.listdir(self._path)
        found = [match for name in names if (match := _NAME.fullmatch(name))]
        return sorted({*super().known(), *(StateAt(int(each[1]), int(each[2])) for each in found)})

    def _get(self, kept_at: StateAt) -> bytes:
        if kept_at in self._states:
            return self._states[kept_at]
        with open(self._file(kept_at), "rb") as file:
            return file.read()

    def _put(self, kept_at: StateAt, data: bytes) -> None:
        """Write a file; what cannot be written stays in memory."""
        try:
            self._clean()
            with NamedTemporaryFile(dir=self._path, prefix=DRAFT, delete=False) as file:
                file.write(data)
            os.replace(file.name, self._file(kept_at))
        except OSError:
            super()._put(kept_at, data)

    def _clean(self) -> None:
        """Make the folder, and remove what other rules have made."""
        for folder in (os.path.dirname(self._path), self._path):
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
        for name in os.listdir(self._path):
            if not name.startswith((f"{RULES_ID}-", DRAFT)):
                os.unlink(f"{self._path}/{name}")

    def remove(self, kept_at: StateAt) -> None:
        super().remove(kept_at)
        with suppress(OSError):
            os.unlink(self._file(kept_at))

    def _file(self, kept_at: StateAt) -> str:
        return f"{self._path}/{RULES_ID}-{kept_at.offset}-{kept_at.at}"


def kept_states(location: StoreLocation, tenant: str) -> KeptStates:
    """Return the states that are kept of the log of a tenant: in memory, if the store has no pin here."""
    if not location.store_id or not os.path.isdir(location.folder):
        return KeptStates()
    name = sha256(f"{location.store_id}\n{location.epoch}\n{tenant}".encode()).hexdigest()[:32]
    return StateFolder(f"{location.folder}/{FOLDER}/{name}")
