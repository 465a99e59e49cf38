"""Bind the sockets of a hub, and keep a second hub of the same user from starting."""

import fcntl
import os
import socket
import stat
from contextlib import suppress
from typing import NamedTuple

import msgspec

from coord.core.errors import Invalid, Refused, Unavailable
from coord.host.runtime.hub_socket import SOCKET, runtime_folder
from coord.host.runtime.start_hub import ATTEMPT, LOCK
from coord.sdk.remote.address import STATE, HubState

PORT = 7420
DEFAULT_LISTEN = f"127.0.0.1:{PORT}"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
BACKLOG = 65_535
"""How many clients may wait to be accepted; the kernel takes at most its own limit, net.core.somaxconn."""
SOCKET_PATH_BYTES_MAX = 100


class Listen(NamedTuple):
    """A TCP address to listen on."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """The address as a url has it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK


def parse_listen(text: str) -> Listen:
    """Return an address: `HOST:PORT`, `[::1]:PORT` or `:PORT`.

    >>> parse_listen("127.0.0.1:7420").port
    7420
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not colon or not port.isdecimal() or len(port) > 5 or int(port) > 65535 or "/" in host:
        raise Invalid(f"{text!r} is not an address", hint=f"for example {DEFAULT_LISTEN}")
    return Listen(host, int(port))


class HubFiles:
    """The socket, the lock and the state file of one hub; they lie side by side."""

    def __init__(self, path: str, environ: "dict[str, str]") -> None:
        """`path`: where the socket is wanted; "" means the place where clients look for it."""
        if not path:
            folder = runtime_folder(environ, make=True)
            if not folder:
                raise Unavailable(
                    "there is no private folder for the hub's socket",
                    hint="set XDG_RUNTIME_DIR, or use --socket",
                )
            path = f"{folder}/{SOCKET}"
        self.socket = os.path.abspath(path)
        if len(os.fsencode(self.socket)) > SOCKET_PATH_BYTES_MAX:
            raise Invalid(f"{self.socket} is too long for a socket", hint="name a shorter path")
        folder = os.path.dirname(self.socket)
        self.state = f"{folder}/{STATE}"
        self._lock_path = f"{folder}/{LOCK}"
        self._lock = -1

    def lock(self) -> None:
        """Make sure that no other hub uses this socket; raises Refused if one does."""
        _check_folder(os.path.dirname(self.socket))
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._lock = os.open(self._lock_path, flags, 0o600)
        except OSError as error:  # a folder that is read-only, full, or of another kind
            raise Unavailable(
                f"{self._lock_path} cannot be written: {error.strerror}",
                hint="make its folder writable, or use --socket PATH in another one",
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            self._lock = -1
            raise Refused(
                f"a hub runs already at {self.socket}", hint="coord serve --status, coord serve --stop"
            ) from error

    def bind(self) -> socket.socket:
        """Return a socket that only this user can connect to; a stale one is replaced."""
        try:
            status = os.lstat(self.socket)
        except FileNotFoundError:
            pass
        else:
            if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
                raise Refused(f"{self.socket} is no socket of yours", hint="remove it, or use --socket PATH")
            os.unlink(self.socket)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            made.bind(self.socket)
            made.listen(BACKLOG)
        except OSError as error:
            made.close()
            raise Unavailable(f"{self.socket} cannot be bound: {error.strerror}") from error
        finally:
            os.umask(before)
        return made

    def write_state(self, state: HubState) -> None:
        """Write the state file."""
        draft = f"{self.state}.{os.getpid()}"
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(msgspec.json.encode(state))
        os.replace(draft, self.state)

    def remove(self) -> None:
        """Remove the socket and the state file, and let another hub start."""
        attempt = f"{os.path.dirname(self.socket)}/{ATTEMPT}"
        for path in (self.socket, self.state, attempt):
            with suppress(OSError):
                os.unlink(path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _check_folder(folder: str) -> None:
    try:
        status = os.lstat(folder)
    except OSError as error:
        raise Invalid(f"{folder}: {error.strerror}", hint="create it with mode 700") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise Refused(
            f"others can write to {folder}, so they could replace the socket", hint=f"chmod 700 {folder}"
        )


def bind_tcp(listen: Listen) -> socket.socket:
    """Return a socket that listens on a TCP address."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio needs the protocol
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((listen.host, listen.port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise Unavailable(
            f"{listen.text} cannot be used: {error.strerror or error}",
            hint="--listen HOST:PORT names another",
        ) from error
    return made
