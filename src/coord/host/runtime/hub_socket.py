"""Where the hub of this user listens, and who is at the other end of a socket.

Hooks import this module before anything else, so it imports only what Python has loaded already: no `os`.
"""

import _stat
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET = "hub.sock"
OFF = "off"
"""The value of COORD_HUB with which a process uses no hub."""
RUNTIME_CHARS_MAX = 60
"""The path of a socket may have about a hundred bytes."""
PID_BYTES = 4
"""The size of a pid, which begins the credentials of a socket; the uid follows it."""


def runtime_folder(environ: "Mapping[str, str]", *, make: bool = False) -> str:
    """Return the private folder for sockets of this user; "" if there is none.

    `stores/local/wakeup.py` has the same rule: a hook would load one more file for it. A test compares both.
    """
    base = environ.get("XDG_RUNTIME_DIR", "")
    usable = base and len(base) < RUNTIME_CHARS_MAX
    folder = f"{base}/coord" if usable else f"/tmp/coord-{posix.getuid()}"  # noqa: S108 - checked below
    if make:
        try:
            posix.mkdir(folder, mode=0o700)
        except FileExistsError:
            pass
        except OSError:
            return ""
    try:
        status = posix.lstat(folder)
    except OSError:
        return ""
    private = _stat.S_ISDIR(status.st_mode) and status.st_uid == posix.getuid() and not status.st_mode & 0o077
    return folder if private else ""


def socket_of_user(environ: "Mapping[str, str]") -> str:
    """Return the socket of this user's hub in its private folder; "" if no hub listens there.

    A socket of somebody else, or a link to one, is not used: it would get what we send.
    """
    folder = runtime_folder(environ)
    path = f"{folder}/{SOCKET}"
    return path if folder and _is_own_socket(path) else ""


def hub_socket(environ: "Mapping[str, str]") -> str:
    """Return the socket of the hub that COORD_HUB names, or of this user's hub; "" without one."""
    given = environ.get("COORD_HUB", "")
    if not given:
        return socket_of_user(environ)
    if given == OFF:
        return ""
    if not _is_own_socket(given):
        from coord.core.errors import Invalid  # noqa: PLC0415 - slow to import

        raise Invalid(f"COORD_HUB is {given}, which is no socket of yours", hint="coord serve --status")
    return given


def _is_own_socket(path: str) -> bool:
    try:
        status = posix.lstat(path)
    except OSError:
        return False
    return _stat.S_ISSOCK(status.st_mode) and status.st_uid == posix.getuid()


def maker_of(fd: int) -> int:
    """Return the pid of the process that made a pair of sockets, one of which is ours."""
    import _socket  # noqa: PLC0415 - `socket` itself takes longer to import than the rest of a hook

    own = _socket.socket(fileno=posix.dup(fd))
    try:
        data = own.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 3 * PID_BYTES)
    finally:
        own.close()
    return int.from_bytes(data[:PID_BYTES], sys.byteorder)
