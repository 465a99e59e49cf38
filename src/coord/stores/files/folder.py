"""The folder of one tenant in a files store, and how a file comes into it whole or not at all.

tenants/<tenant>/lock                   the lock and the mark, see `file_lock`
                 log/<shard>/<offset>   one file per commit, see `file_log`
                 snapshots/             the fold now and then, see `file_snapshots`
                 values/<sha256>        large values, see `file_values`
                 tmp/                   what is being written
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
    """The open folder of one tenant; made if it is not there."""

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
                if self.lock.watermark() is None:  # it is new, or nobody can say how durable it is
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
        """Open one of the folders in this one."""
        folder = self.layer.open_folder(part, self._home)
        try:
            yield folder
        finally:
            self.layer.close(folder)

    @contextlib.contextmanager
    def written(self, kind: str, parts: Iterable[bytes]) -> Iterator[tuple[str, int]]:
        """Write a durable file in tmp, to be linked to where it belongs; yield its name and size."""
        name = f"{kind}-{secrets.token_hex(8)}"
        try:
            yield name, self.layer.write_file(name, self.tmp, parts)
        finally:
            self.remove(name, self.tmp)

    def remove(self, name: str, folder: int) -> None:
        """Unlink a file that nobody needs; if that fails, it is tried again some other time."""
        with contextlib.suppress(OSError):
            self.layer.unlink(name, folder)

    def tidy(self) -> None:
        """Remove what dead processes left in tmp.

        The lock is held, so no living one writes entries or values at this moment. A snapshot is written
        without it, but never without the lock on the folder of snapshots.
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
