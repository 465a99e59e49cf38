"""Where stores are made for measuring: a folder of the run, and private servers."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.lock_peers import Rival
from tests.support.servers.etcd import EtcdServer
from tests.support.servers.kinds import FreshStores, Servers, lacks
from tests.support.servers.postgres import PostgresServer, in_log_shape
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import lacking

SAQ_DATABASE = "/9"
"""Which numbered database of Redis SAQ has for itself: it is emptied before each run."""


class Places:
    """Gives urls of new stores; `stack` stops the servers that were started."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self._servers = Servers(stack)
        self._stores = FreshStores(folder, self._servers)
        self._queues = 0

    def fresh_url(self, store: str) -> str:
        """Return the url of a new, empty store; on Postgres in a database of its own, where others may go."""
        if store == "postgres":
            return self._servers.get(PostgresServer).fresh_url()
        if store == "postgres-log":
            return self._servers.get(PostgresServer).fresh_url(in_log_shape)
        return self._stores.url(store)

    def queue_url(self, queue: str, store: str) -> str:
        """Return a new, empty place for a queue: ours in a store, another one where it keeps its tasks."""
        match queue.partition(",")[0]:
            case "coord":
                return self.fresh_url(store)
            case "SAQ":
                return self._servers.get(RedisServer).url.removesuffix("/0") + SAQ_DATABASE
            case "procrastinate" | "pgqueuer":
                return self._servers.get(PostgresServer).blank_url()
        self._queues += 1
        return str(self.folder / f"store-{queue}-{self._queues}.db")

    def rivals(self, names: Iterable[str]) -> Iterator[Rival]:
        """Give other locks to compare with, as far as they can be had here."""
        for name in names:
            match name:
                case "filelock":
                    yield Rival(name, str(self.folder / "filelock"))
                case "redis-py Lock" if not lacking(RedisServer):
                    yield Rival(name, self._servers.get(RedisServer).url)
                case "etcd" | "etcd, lease each" if not lacking(EtcdServer):
                    yield Rival(name, self._servers.get(EtcdServer).url)
                case "Postgres advisory" if not lacks("postgres"):
                    yield Rival(name, self._servers.get(PostgresServer).blank_url())

    def remove_embedded(self) -> None:
        """Free the disk of what was measured so far; servers go on."""
        for path in [*self.folder.glob("files-*"), *self.folder.glob("store-*")]:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def temporary(parent: str | None) -> Iterator[Places]:
    """Make places in a new folder: by default below /var/tmp, which is on a disk where /tmp may not be."""
    where = parent or ("/var/tmp" if Path("/var/tmp").is_dir() else None)
    with tempfile.TemporaryDirectory(prefix="coord-bench-", dir=where, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # a server that runs as another user has its data below it
        usual, tempfile.tempdir = tempfile.tempdir, name  # so that the server's data is on the same disk
        try:
            with contextlib.ExitStack() as stack:
                yield Places(folder, stack)
        finally:
            tempfile.tempdir = usual
