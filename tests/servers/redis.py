"""A private Redis server: own folder, own port, own password, every write synced; gone when the bench is."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import redis

from tests.servers.postgres import PORT_TRIES, START_S, STOP_S, _end_with_parent, _free_port, poll_until

PASSWORD = "keep-me-out-of-messages"
SETTINGS = {"bind": "127.0.0.1", "appendonly": "yes", "appendfsync": "always", "save": ""}
"""Durable as a store of coord is: an answer means that it is on disk."""


class RedisServer:
    """One server process."""

    def __init__(self, program: str, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What a client connects to."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def create(self) -> None:
        """Start the server on a free port."""
        for tries in range(1, PORT_TRIES + 1):
            self.port = _free_port()
            try:
                self._start()
                return
            except RuntimeError:  # somebody else may have taken the port in the meantime
                if tries == PORT_TRIES:
                    raise

    def discard(self) -> None:
        """End at once and for good."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(STOP_S)

    def _start(self) -> None:
        settings = {**SETTINGS, "port": str(self.port), "dir": str(self.folder), "requirepass": PASSWORD}
        lines = [f'{name} "{value}"' for name, value in settings.items()]
        (self.folder / "redis.conf").write_text("\n".join(lines) + "\n")
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [self._program, str(self.folder / "redis.conf")],
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - it takes no lock and calls the kernel only
            )
        try:
            poll_until(self._answers, START_S, "Redis does not answer")
        except BaseException:
            self.discard()
            raise

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"Redis ended at once:\n{(self.folder / 'log').read_text()[-2000:]}")
        with contextlib.suppress(redis.ConnectionError), redis.from_url(self.url) as client:
            return bool(client.ping())
        return False


def program() -> str | None:
    """Return the server's program, or None where it is not installed."""
    return shutil.which("redis-server")


@contextlib.contextmanager
def running() -> Iterator[RedisServer]:
    """Run a private server, with its data in a folder of its own."""
    found = program()
    if found is None:
        raise RuntimeError("Redis is not installed (tools/setup servers)")
    home = Path(tempfile.mkdtemp(prefix="coord-redis-"))
    server = RedisServer(found, home)
    try:
        server.create()
        yield server
    finally:
        server.discard()
        shutil.rmtree(home)
