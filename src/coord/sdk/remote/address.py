"""Where the hub of this user listens: a socket in a private folder, and a file that describes the hub."""

import os
import stat
from collections.abc import Mapping

import msgspec

from coord.core.errors import Invalid
from coord.host.processes import describe

SOCKET = "hub.sock"
STATE = "hub.json"
OFF = "off"
"""The value of COORD_HUB with which a process uses no hub."""


class HubState(msgspec.Struct, frozen=True):
    """A running hub, as its state file describes it."""

    pid: int
    start: int
    version: str
    socket: str
    listen: str = ""
    started_ms: int = 0


def runtime_folder(environ: Mapping[str, str], *, make: bool = False) -> str:
    """Return the private folder for sockets of this user; "" if there is none."""
    base = environ.get("XDG_RUNTIME_DIR", "")
    folder = f"{base}/coord" if base and len(base) < 40 else f"/tmp/coord-{os.getuid()}"  # noqa: S108 - checked below
    if make:
        try:
            os.mkdir(folder, mode=0o700)
        except FileExistsError:
            pass
        except OSError:
            return ""
    try:
        status = os.lstat(folder)
    except OSError:
        return ""
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if private else ""


def hub_socket(environ: Mapping[str, str]) -> str:
    """Return the socket of this user's hub; "" if no hub listens, or none is wanted.

    A socket of somebody else, or a link to one, is not used: it would get what we send.
    """
    given = environ.get("COORD_HUB", "")
    if given == OFF:
        return ""
    if given:
        path = given
    else:
        folder = runtime_folder(environ)
        path = f"{folder}/{SOCKET}" if folder else ""
    try:
        status = os.lstat(path) if path else None
    except OSError:
        return ""
    if status is None or not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
        if given:
            raise Invalid(f"COORD_HUB is {given}, which is no socket of yours", hint="coord serve --status")
        return ""
    return path


def read_state(environ: Mapping[str, str]) -> HubState | None:
    """Return the hub that runs for this user; None if none does."""
    folder = runtime_folder(environ)
    try:
        with open(os.open(f"{folder}/{STATE}", os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            state = msgspec.json.decode(file.read(64 * 1024), type=HubState)
    except (OSError, msgspec.MsgspecError):
        return None
    return state if is_running(state) else None


def is_running(state: HubState) -> bool:
    """Whether the process that a state file names is still that hub."""
    now = describe(state.pid)
    return now is not None and now.start == state.start
