"""Release the locks of a guard that was killed: its watchdog runs this program."""

import os
import sys
import threading
import time
from collections.abc import Sequence

import msgspec

from coord.core.errors import CoordError
from coord.host.processes import group_runs
from coord.sdk.client.blocks import release_use
from coord.sdk.client.client import Client, connect
from coord.sdk.client.lease import TRANSIENT

VARIABLE = "COORD_RELEASE"
"""The variable with the `Release`: everybody can read arguments, and a URL may have a password."""
PATIENCE_S = 60.0
"""How long it tries to reach the store; after that the lease ends the locks."""
RETRY_S = 1.0
LOOK_S = 0.02


class Release(msgspec.Struct, frozen=True):
    """What to release, and where."""

    url: str
    tenant: str
    session: str
    names: tuple[str, ...]
    use: str


def release_program(client: Client, names: Sequence[str], use: str) -> tuple[list[str], dict[str, str]]:
    """Return the program that ends one use of locks, and its environment."""
    session = client.caller.session or client.show().session_id
    wanted = Release(client.location.url, client.tenant, session, tuple(names), use)
    environ = {**os.environ, VARIABLE: msgspec.json.encode(wanted).decode()}
    # Without -P, a module in the current folder could take the place of one of ours.
    return [sys.executable, "-P", "-m", __name__], environ


def main(group: int) -> int:
    """Release what the environment says, once a process group is gone.

    It gives up if the locks are lost, or if the store cannot be reached for too long.
    """
    wanted = msgspec.json.decode(os.environ[VARIABLE], type=Release)
    until = time.monotonic() + PATIENCE_S
    while group_runs(group) and time.monotonic() < until:
        threading.Event().wait(LOOK_S)
    while True:
        try:
            with connect(wanted.url, tenant=wanted.tenant, session=wanted.session) as client:
                release_use(client, wanted.names, wanted.use)
            return 0
        except TRANSIENT:
            if time.monotonic() >= until:
                return 1
            threading.Event().wait(RETRY_S)
        except CoordError:
            return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
