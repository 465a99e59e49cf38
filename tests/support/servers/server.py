"""A private server of any kind: own folder, port and password, synced writes; gone when the tests are."""

import contextlib
import ctypes
import fcntl
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
from typing import ClassVar, TypeVar

import pytest

PASSWORD = "keep-me-out-of-messages"
START_S = 180
STOP_S = 90
"""Generous: on a busy disk a server syncs all its files for a minute before it ends or answers."""
POLL_S = 0.02
LOOPBACK = "127.0.0.1"
PORT_TRIES = 5
TEMPLATES = "COORD_TEST_TEMPLATES"
"""Where set: the folder in which the first server of a kind leaves its new data for all others of the run."""

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


class Server:
    """One server process with its data folder; survives being killed. Each kind says how it starts."""

    name: ClassVar[str]
    """What people call it."""
    account: ClassVar[str] = "nobody"
    """Whom it runs as where the tests run as root; an account that is missing is replaced by nobody."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    """The signal for an orderly end: running statements are ended, what is committed is kept."""
    quit_signal: ClassVar[signal.Signals] = signal.SIGKILL
    """The signal for an end at once and for good."""

    refused: ClassVar[str] = ""
    """Why no server may be started in this run ("" if servers may)."""

    host = LOOPBACK
    """The address that it listens on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._account = _unprivileged(self.account) if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    # What each kind gives.

    @classmethod
    def program(cls) -> str | None:
        """Return the path of the server's program, or None where it is not installed."""
        raise AssertionError("each server knows its program")

    def prepare(self) -> None:
        """Make what the server needs before its first start."""

    def command(self) -> list[str]:
        """Return the command that runs it in the foreground, on `port`, with its data in `folder`."""
        raise AssertionError("each server knows its command")

    def answers(self) -> bool:
        """Whether it takes questions."""
        raise AssertionError("each server is asked in its own way")

    def fresh_store_url(self) -> str:
        """Return the url of a new store that `install` has prepared."""
        raise AssertionError("each server holds stores in its own way")

    # The life of all.

    @property
    def pid(self) -> int:
        """The id of the process that was started."""
        assert self._process is not None, "the server was never started"
        return self._process.pid

    def create(self) -> None:
        """Make the data folder and start the server on a free port."""
        if self._account:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        self.prepare()
        for tries in range(1, PORT_TRIES + 1):
            self.port = free_port(self.host)
            try:
                self.start()
                return
            except RuntimeError:  # somebody else may have taken the port in the meantime
                if tries == PORT_TRIES:
                    raise

    def start(self) -> None:
        """Start on the port that it has, and see that it answers."""
        self._process = self.spawn(self.command())
        try:
            poll_until(self._answers, START_S, f"{self.name} does not answer")
        except BaseException:
            self.discard()
            raise

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended at once:\n{self.log()}")
        return self.answers()

    def kill(self) -> None:
        """SIGKILL to the server and all its children, as a crash of the machine's software would."""
        assert self._process is not None, "the server was never started"
        family = [self.pid, *_children(self.pid)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(STOP_S)
        # A child that outlives its server may keep shared memory, and a new one would refuse to start.
        poll_until(lambda: not any(map(runs, family)), STOP_S, f"the children of {self.name} did not die")

    def send(self, by: signal.Signals) -> None:
        """Send a signal, and wait for nothing."""
        assert self._process is not None, "the server was never started"
        self._process.send_signal(by)

    def stop(self) -> None:
        """End in order."""
        self._end(self.stop_signal)

    def discard(self) -> None:
        """End at once and for good: nothing has to be written to a folder that will be removed."""
        self._end(self.quit_signal)

    def _end(self, by: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(by)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self) -> None:
        """Start again after `kill` or `stop`, on the same port."""
        self.stop()
        self.start()

    def spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a program of the server, as its account, with its output in the log."""
        account = self._account
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                # Names of temporary files are made of pids, and other pid namespaces may share /tmp with us.
                env={**os.environ, "TMPDIR": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=account and [],
                preexec_fn=end_with_parent,  # noqa: PLW1509 - it takes no lock and calls the kernel only
            )

    def have_data(self, make: Callable[[], None]) -> None:
        """Have what `make` puts into `folder/data`: a copy of what it made for another server of the run."""
        if TEMPLATES not in os.environ:
            make()
            return
        data, template = self.folder / "data", Path(os.environ[TEMPLATES]) / self.name
        with open(f"{template}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not template.exists():
                make()
                copy_tree(data, template.with_suffix(".new"))
                template.with_suffix(".new").rename(template)
                return
        copy_tree(template, data)

    def make_certificate(self) -> None:
        """Make `certificate` and `key` in the folder, for encrypted connections to this machine."""
        words = (
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost"
        )
        names = (
            f"-addext subjectAltName=IP:127.0.0.1 -keyout {self.folder}/key -out {self.folder}/certificate"
        )
        subprocess.run(["openssl", *words.split(), *names.split()], check=True, capture_output=True)
        self.own(self.folder / "key")

    def own(self, path: Path) -> None:
        """Give a file to the account that the server runs as."""
        if self._account:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def log(self) -> str:
        """Return the end of what the server said."""
        return (self.folder / "log").read_text(errors="replace")[-2000:]


AnyServer = TypeVar("AnyServer", bound=Server)


@contextlib.contextmanager
def running(
    kind: type[AnyServer], log_folder: Path | None = None, host: str = LOOPBACK
) -> Iterator[AnyServer]:
    """Run a private server; skip where it is not installed.

    Its data lie in a short folder of its own: as root it runs as another user, who cannot look into pytest's
    folders. The given folder gets its log.
    """
    if reason := lacking(kind):
        pytest.skip(reason)
    home = Path(tempfile.mkdtemp(prefix="coord-server-"))
    server = kind(home)
    server.host = host
    try:
        server.create()
        yield server
    finally:
        server.discard()
        if log_folder is not None and (home / "log").exists():
            shutil.copyfile(home / "log", log_folder / f"{kind.name}.log")
        shutil.rmtree(home)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder with all owners and rights."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def lacking(kind: type[Server]) -> str:
    """Return why a server cannot be run here ("" if it can)."""
    if Server.refused:
        return Server.refused
    return "" if kind.program() else f"{kind.name} is not installed (tools/setup servers)"


def _unprivileged(account: str) -> pwd.struct_passwd:
    """Return the account to run as, because servers refuse or ought not to run as root."""
    try:
        return pwd.getpwnam(account)
    except KeyError:
        return pwd.getpwnam("nobody")


def end_with_parent() -> None:
    """Ask the kernel for a SIGQUIT when the tests are killed, so that no server is left behind."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def free_port(host: str = LOOPBACK) -> int:
    """Return a port of an address of this machine that nobody has now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
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
            raise RuntimeError(f"{otherwise} within {seconds} s")
        time.sleep(POLL_S)  # noqa: TID251 - a bounded poll: another program's start and end give no signal
