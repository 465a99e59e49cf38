"""States of the page that were kept: in memory, or in a folder beside the pin of a store.

What was before a trim cannot be read from the log again, so a hub keeps states on its disk; the next hub and
`coord report` find them there. A state is as secret as the store that it comes from.
"""

import os
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from typing import NamedTuple

import msgspec

from coord.core.errors import CoordError
from coord.core.page.rules import DELIVERED, RECENT
from coord.core.page.state import PageState
from coord.host.pin import read_pin
from coord.host.store_location import StoreLocation
from coord.stores.local.safe_folder import Folder

FOLDER = "page"
KEPT_MAX = 64
STATE_BYTES_MAX = 64 * 1024 * 1024
"""A larger state stays in memory; a file that has more in it is not from us."""
DRAFT_S = 3600.0
"""A process that writes a file for longer was killed."""
RULES_ID = sha256(msgspec.json.encode((DELIVERED, RECENT), order="sorted")).hexdigest()[:12]
"""States that were made by other rules do not count."""
_NAME = re.compile(r"([0-9a-f]{12})-(\d{1,16})-(\d{1,16})")
_DRAFT = re.compile(r"draft-[0-9a-f]{16}")
_OF_LOG = re.compile(r"[0-9a-f]{32}")


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
        with suppress(CoordError, zlib.error, ValueError, RecursionError):
            state = msgspec.json.decode(self._get(kept_at), type=PageState)
            if (state.offset, state.at) == kept_at:
                return state
        self.remove(kept_at)
        return None

    def keep(self, state: PageState) -> None:
        """Keep a state; if there are too many, one that is close to others makes room."""
        kept_at = StateAt(state.offset, state.at)
        if kept_at in self.known():
            return
        self._put(kept_at, msgspec.json.encode(state))
        known = self.known()
        if len(known) > KEPT_MAX:
            inner = range(1, len(known) - 1)
            self.remove(known[min(inner, key=lambda each: known[each + 1].offset - known[each - 1].offset)])

    def remove(self, kept_at: StateAt) -> None:
        """Remove a state."""
        self._states.pop(kept_at, None)

    def _get(self, kept_at: StateAt) -> bytes:
        return zlib.decompress(self._states.get(kept_at, b""))

    def _put(self, kept_at: StateAt, data: bytes) -> None:
        self._states[kept_at] = zlib.compress(data, 1)


class StateFolder(KeptStates):
    """States as files of a private folder; several processes may use it.

    An agent in a sandbox may be able to write beside the pin: no link or special file there is opened, and
    only what has the name of a state is removed.
    """

    def __init__(self, location: StoreLocation, tenant: str) -> None:
        super().__init__()
        self._above = location.folder
        self._store = _digest(f"{location.store_id}\n{location.epoch}")
        self._name = f"{FOLDER}/{self._store}{_digest(tenant)}"
        self._stuck: set[StateAt] = set()
        """Files that can neither be read nor removed."""

    def known(self) -> list[StateAt]:
        names: list[str] = []
        with suppress(CoordError), self._opened() as folder:
            names = folder.names()
        found = [match for name in names if (match := _NAME.fullmatch(name)) and match[1] == RULES_ID]
        files = {StateAt(int(each[2]), int(each[3])) for each in found}
        return sorted({*super().known(), *files} - self._stuck)

    def _get(self, kept_at: StateAt) -> bytes:
        if kept_at in self._states:
            return super()._get(kept_at)
        with self._opened() as folder:
            packed = folder.read(_file(kept_at), STATE_BYTES_MAX)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed or b"", STATE_BYTES_MAX)
        if not unpacking.eof:
            raise zlib.error("cut, or too large")
        return data

    def _put(self, kept_at: StateAt, data: bytes) -> None:
        """Write a file; what cannot be written stays in memory."""
        self._stuck.discard(kept_at)
        if len(data) <= STATE_BYTES_MAX:
            with suppress(CoordError), self._opened(make=True) as folder:
                folder.write(_file(kept_at), zlib.compress(data, 1), f"draft-{os.urandom(8).hex()}")
                self._clean(folder)
                return
        super()._put(kept_at, data)

    def remove(self, kept_at: StateAt) -> None:
        super().remove(kept_at)
        try:
            with self._opened() as folder:
                folder.remove(_file(kept_at))
        except CoordError:
            self._stuck.add(kept_at)

    @contextmanager
    def _opened(self, name: str = "", *, make: bool = False) -> Iterator[Folder]:
        """Open the folder of the log, or another one beside the pin."""
        with (
            closing(Folder(os.path.realpath(self._above))) as above,
            closing(above.private(name or self._name, make=make)) as folder,
        ):
            yield folder

    def _clean(self, folder: Folder) -> None:
        """Remove what other rules have made, what killed processes left, and states of earlier stores."""
        with suppress(CoordError):
            for name in folder.names():
                if _is_old(folder, name):
                    folder.remove(name)
            pin = read_pin(self._above)
            if pin is not None and _digest(f"{pin.store_id}\n{pin.epoch}") == self._store:
                self._remove_others()

    def _remove_others(self) -> None:
        """Remove the states of stores that the pin named before."""
        with self._opened(FOLDER) as page:
            for name in page.names(folders=True):
                if not _OF_LOG.fullmatch(name) or name.startswith(self._store):
                    continue
                with closing(page.private(name)) as other:
                    for file in other.names():
                        if _NAME.fullmatch(file) or _DRAFT.fullmatch(file):
                            other.remove(file)
                page.remove_folder(name)


def _is_old(folder: Folder, name: str) -> bool:
    if match := _NAME.fullmatch(name):
        return match[1] != RULES_ID
    return bool(_DRAFT.fullmatch(name)) and _age_s(folder, name) > DRAFT_S


def _age_s(folder: Folder, name: str) -> float:
    signature = folder.signature(name)
    return 0 if signature is None else time.time() - signature.mtime_ns / 1e9


def _file(kept_at: StateAt) -> str:
    return f"{RULES_ID}-{kept_at.offset}-{kept_at.at}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def kept_states(location: StoreLocation, tenant: str) -> KeptStates:
    """Return the states that are kept of the log of a tenant: in memory, if the store has no pin here."""
    if not location.store_id or not location.folder:
        return KeptStates()
    return StateFolder(location, tenant)
