"""Where the hub of this user listens: a socket in a private folder, and a file that describes the hub."""

import os
from collections.abc import Mapping

import msgspec

from coord.core.identity import ProcessState
from coord.host.processes import describe, probe
from coord.host.runtime.hub_socket import runtime_folder

STATE = "hub.json"


class HubState(msgspec.Struct, frozen=True):
    """A running hub, as its state file describes it."""

    pid: int
    start: int
    version: str
    socket: str
    listen: str = ""
    started_ms: int = 0


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
    return now is not None and now.start == state.start and probe(now).life is ProcessState.ALIVE
