"""The folder of one tenant in a files store. A file appears in it completely or not at all.

tenants/<tenant>/lock                   the lock and the watermark, see lock.py
                 log/<shard>/<offset>   one file per commit, see log.py
                 snapshots/             snapshots of the state, see snapshots.py
                 values/<sha256>        large values, see values.py
                 tmp/                   files that are being written
"""

import contextlib
import secrets
from collections.abc import Iterable, Iterator

from coord.stores.files.io import FileErrors, FileLayer
from coord.stores.files.lock import LockFile
from coord.stores.local.fair_lock import lock_within

PARTS = ("log", "snapshots", "values", "tmp")
SNAPSHOT = "snapshot"


class TenantFolder:
    """The open folder of one tenant; created if it is missing."""

    def __init__(self, layer: FileLayer, root: int, path: str, tenant: str) -> None:
        self.layer = layer
        self.path = f"{path}/tenants/{tenant}"
        self.errors = FileErrors(self.path)
        with self.errors, contextlib.ExitStack() as opened:
            tenants = layer.open_folder("tenants", root)
            opened.callback(layer.close, tenants)
            self._make(tenant, tenants)
            self._home = layer.open_folder(tenant, tenants)
            with contextlib.ExitStack() as kept:
                kept.callback(layer.close, self._home)
                self.lock = LockFile(layer, self._home, tenant)
                kept.callback(self.lock.close)
                if self.lock.watermark() is None:  # it is new, or perhaps not durable yet
                    for part in PARTS:
                        self._make(part, self._home)
                    for folder in (self._home, tenants, root):
                        layer.sync_folder(folder)
                self.tmp = layer.open_folder("tmp", self._home)
                kept.callback(layer.close, self.tmp)
                self._kept = kept.pop_all()

    def _make(self, name: str, folder: int) -> None:
        with contextlib.suppress(FileExistsError):
            self.layer.make_folder(name, folder)

    @contextlib.contextmanager
    def opened(self, part: str) -> Iterator[int]:
        """Open one of the folders of the tenant."""
        folder = self.layer.open_folder(part, self._home)
        try:
            yield folder
        finally:
            self.layer.close(folder)

    @contextlib.contextmanager
    def written(self, kind: str, parts: Iterable[bytes]) -> Iterator[tuple[str, int]]:
        """Write a durable file in tmp, which the caller links to its final name; yield its name and size."""
        name = f"{kind}-{secrets.token_hex(8)}"
        try:
            yield name, self.layer.write_file(name, self.tmp, parts)
        finally:
            self.remove(name, self.tmp)

    def remove(self, name: str, folder: int) -> None:
        """Unlink a file that nobody needs; if that fails, a later call removes it."""
        with contextlib.suppress(OSError):
            self.layer.unlink(name, folder)

    def tidy(self) -> None:
        """Remove the files that dead processes left in tmp.

        The caller holds the tenant's lock, so no live process is writing an entry or a value. A process that
        writes a snapshot holds only the lock on the folder of snapshots.
        """
        names = self.layer.names(self.tmp)
        if not names:
            return
        with self.opened("snapshots") as snapshots:
            nobody_writes_snapshots = lock_within(snapshots, 0)
            for name in names:
                if nobody_writes_snapshots or not name.startswith(SNAPSHOT):
                    self.remove(name, self.tmp)

    def close(self) -> None:
        self._kept.close()
