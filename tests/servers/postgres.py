"""A private Postgres server: own folder, own port, own password, fsync on; gone when the tests are."""

import contextlib
import ctypes
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import coord

USER = "coord"
PASSWORD = "keep-me-out-of-messages"
START_S = 60
STOP_S = 30
POLL_S = 0.02
PORT_TRIES = 5

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": "200",
    "logging_collector": "off",
}

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


class PostgresServer:
    """One server process with its databases; survives being killed."""

    def __init__(self, programs: Path, folder: Path, account: pwd.struct_passwd | None) -> None:
        self.folder = folder
        self.port = 0
        self._programs = programs
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None
        self._shared_url = ""
        self._names = (f"test_{number}" for number in itertools.count(1))

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        assert self._process is not None, "the server was never started"
        return self._process.pid

    def url(self, database: str, password: str = PASSWORD) -> str:
        """Return the url of a database on this server."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def fresh_url(self) -> str:
        """Return the url of a new database that `install` has prepared."""
        url = self.blank_url()
        coord.install(url)
        return url

    def fresh_schema_url(self) -> str:
        """Return the url of a new store in a schema of its own: a quarter of the price of a database."""
        self._shared_url = self._shared_url or self.blank_url()
        url = f"{self._shared_url}?schema={next(self._names)}"
        coord.install(url)
        return url

    def blank_url(self) -> str:
        """Return the url of a new, empty database."""
        name = next(self._names)
        with self.admin() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def admin(self) -> psycopg.Connection[Any]:
        """Return an autocommit connection of the superuser, for what a test does behind coord's back."""
        return psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=5)

    def kill(self) -> None:
        """SIGKILL to the postmaster and all its children, as a crash of the machine's software would."""
        assert self._process is not None, "the server was never started"
        family = [self.pid, *_children(self.pid)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(STOP_S)
        # A child that outlives the postmaster keeps its shared memory, and a new one would refuse to start.
        poll_until(lambda: not any(map(runs, family)), STOP_S, "its children did not die")

    def stop(self) -> None:
        """Fast shutdown: running statements are ended, what is committed is kept."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def discard(self) -> None:
        """End at once and for good: nothing has to be written to a folder that will be removed."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def restart(self) -> None:
        """Start again after `kill` or `stop`, on the same port."""
        self.stop()
        self._start()

    def create(self) -> None:
        """Make the data folder and start the server on a free port."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if self._account:
            os.chown(secret, self._account.pw_uid, self._account.pw_gid)
        initdb = f"{self._programs}/initdb --pgdata {self.folder}/data --username {USER} --pwfile {secret}"
        made = self._spawn(f"{initdb} --auth scram-sha-256 --encoding UTF8 --locale C --no-sync".split())
        if made.wait(START_S):
            raise RuntimeError(f"initdb failed:\n{self._log()}")
        for tries in range(1, PORT_TRIES + 1):
            self.port = _free_port()
            try:
                self._start()
                return
            except RuntimeError:  # somebody else may have taken the port in the meantime
                if tries == PORT_TRIES:
                    raise

    def _start(self) -> None:
        command = f"{self._programs}/postgres -D {self.folder}/data -p {self.port} -k {self.folder}".split()
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        self._process = self._spawn(command)
        try:
            poll_until(self._answers, START_S, "it does not answer")
        except BaseException:
            self.stop()
            raise

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"Postgres ended at once:\n{self._log()}")
        with contextlib.suppress(psycopg.OperationalError):
            self.admin().close()
            return True
        return False

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        account = self._account
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=account and [],
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - it takes no lock and calls the kernel only
            )

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[PostgresServer]:
    """Run a private server; skip where Postgres is not installed.

    Its data lie in a short folder of its own: as root it runs as another user, who cannot look into pytest's
    folders. The given folder gets its log.
    """
    programs = _programs()
    if programs is None:
        pytest.skip("Postgres is not installed (tools/setup servers)")
    account = _unprivileged() if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="coord-pg-"))
    server = PostgresServer(programs, home, account)
    try:
        if account:
            os.chown(home, account.pw_uid, account.pw_gid)
        server.create()
        yield server
    finally:
        server.discard()
        if (home / "log").exists():
            shutil.copyfile(home / "log", folder / "postgres.log")
        shutil.rmtree(home)


def _programs() -> Path | None:
    """Return the folder of the server's programs: the one in PATH, else the newest installed."""
    found = shutil.which("postgres")
    if found and (Path(found).resolve().parent / "initdb").exists():
        return Path(found).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


def _unprivileged() -> pwd.struct_passwd:
    """Return the account to run as, because Postgres refuses to run as root."""
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _end_with_parent() -> None:
    """Ask the kernel for a SIGQUIT when the tests are killed, so that no server is left behind."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(parent: int) -> list[int]:
    return [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _status(pid)[1:] == (parent,)
    ]


def runs(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    return _status(pid)[:1] not in ((), ("Z",))


def _status(pid: int) -> tuple[()] | tuple[str, int]:
    """Return a process's state and parent, or nothing if it is gone."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[:2]
    except OSError:
        return ()
    return state, int(parent)


def poll_until(holds: Callable[[], object], seconds: float, otherwise: str) -> None:
    """Wait until something holds; fail with these words if it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"Postgres: {otherwise} within {seconds} s")
        time.sleep(POLL_S)  # noqa: TID251 - a bounded poll: another program's start and end give no signal
