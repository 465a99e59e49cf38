"""Open a store through a hub: that of this user, or one that an `http://` url names."""

import os
import stat
import time
from collections.abc import Callable, Mapping
from typing import Any

from coord.core.errors import CoordError, Invalid, Unreachable, Unsupported
from coord.engine.engine import TIMEOUT_S
from coord.host.store_location import StoreLocation
from coord.sdk.remote.channel import Broken, Channel, UnixChannel
from coord.sdk.remote.database import HELLO_S, RemoteDatabase, say_hello
from coord.stores.database import Database

RETRY_S = 0.2
TOKEN_BYTES_MAX = 1024


def open_through_hub(
    socket: str, location: StoreLocation, tenant: str, open_direct: Callable[[], Database[Any]]
) -> tuple[Database[Any] | None, str]:
    """Open the pinned store of a location through the hub at a socket.

    Without a database the hub is gone, or cannot be used: then the second value says why, for people.
    """
    repository = location.repository
    root = "" if repository is None else repository.root or repository.commondir
    channel = UnixChannel(socket)
    try:
        welcome = say_hello(channel, root, tenant, HELLO_S)
        if welcome.store_id == location.store_id and welcome.epoch >= location.epoch:
            return RemoteDatabase(location.url, root, channel, welcome, open_direct), ""
        why = "the hub has another store for this repository"
    except Unreachable:
        why = ""
    except (Broken, Unsupported) as error:
        why = error.message
    except CoordError:  # the store itself has the same problem, and explains it better
        why = ""
    except BaseException:
        channel.close()
        raise
    channel.close()
    return None, why


def open_http(
    url: str, environ: Mapping[str, str], *, timeout: float, repository_id: str = ""
) -> Database[Any]:
    """Open the store of the hub at a url; one that cannot be reached is tried again for `timeout` seconds.

    The token names the tenant.
    """
    from coord.sdk.remote.http_channel import HttpChannel  # slow to import

    headers = {"Coord-Repository": repository_id} if repository_id else {}
    channel: Channel = HttpChannel(url, read_token(environ), headers)
    deadline = time.monotonic() + timeout
    try:
        while True:
            try:
                welcome = say_hello(channel, "", "", min(max(HELLO_S, timeout), TIMEOUT_S))
                return RemoteDatabase(url, "", channel, welcome, None)
            except (Unreachable, Broken):
                if time.monotonic() + RETRY_S >= deadline:
                    raise
                time.sleep(RETRY_S)  # noqa: TID251 - a hub that starts announces it to nobody
    except BaseException:
        channel.close()
        raise


def read_token(environ: Mapping[str, str]) -> str:
    """Return the token of COORD_TOKEN, or of the private file that COORD_TOKEN_FILE names; "" without."""
    if given := environ.get("COORD_TOKEN", ""):
        return given
    path = environ.get("COORD_TOKEN_FILE", "")
    if not path:
        return ""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(TOKEN_BYTES_MAX)
    except OSError as error:
        raise Invalid(f"COORD_TOKEN_FILE {path}: {error.strerror}", hint="put a token into it") from error
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise Invalid(f"COORD_TOKEN_FILE {path} can be read by others", hint=f"chmod 600 {path}")
    return data.decode("ascii", "replace").strip()
