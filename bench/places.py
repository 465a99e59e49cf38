"""Where stores are made for measuring: a folder of the run, and private servers."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.lock_peers import Rival
from tests.servers import postgres, redis

STORES = ("memory", "files", "sqlite", "postgres")


class Places:
    """Gives urls of new stores; `servers` stops those that were started."""

    def __init__(self, folder: Path, servers: contextlib.ExitStack) -> None:
        self.folder = folder
        self._servers = servers
        self._made = 0
        self._server: postgres.PostgresServer | None = None
        self._redis: redis.RedisServer | None = None

    def fresh_url(self, store: str) -> str:
        """Return the url of a new, empty store."""
        self._made += 1
        match store:
            case "memory":
                return "memory:"
            case "files":
                return f"file://{self.folder}/files-{self._made}"
            case "sqlite":
                return f"sqlite://{self.folder}/store-{self._made}.db"
            case _:
                return self._postgres_url()

    def _postgres_url(self) -> str:
        if self._server is None:
            self._server = self._servers.enter_context(postgres.running(self.folder))
        return self._server.fresh_url()

    def rivals(self, names: Iterable[str]) -> Iterator[Rival]:
        """Give other locks to compare with, as far as they can be had here."""
        for name in names:
            match name:
                case "filelock":
                    yield Rival(name, str(self.folder / "filelock"))
                case "redis-py Lock" if redis.program() is not None:
                    if self._redis is None:
                        self._redis = self._servers.enter_context(redis.running())
                    yield Rival(name, self._redis.url)
                case "Postgres advisory" if not self.lacking("postgres"):
                    yield Rival(name, self._postgres_url())

    @staticmethod
    def lacking(store: str) -> str:
        """Return why a store cannot be measured here ("" if it can)."""
        missing = store == "postgres" and postgres._programs() is None
        return "Postgres is not installed (tools/setup servers)" if missing else ""

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
            with contextlib.ExitStack() as servers:
                yield Places(folder, servers)
        finally:
            tempfile.tempdir = usual
