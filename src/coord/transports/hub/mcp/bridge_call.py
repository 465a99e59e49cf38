"""What `coord mcp` reports to the hub about its agent, in a header: only it knows who started it."""

from typing import TYPE_CHECKING

import msgspec

from coord.core.errors import CoordError, Invalid, NotFound
from coord.core.identity import Caller

if TYPE_CHECKING:
    from coord.engine.engine import Engine

HEADER = "Coord-Caller"
COMMAND_ID = "Coord-Command-Id"


class BridgeCall(msgspec.Struct, frozen=True):
    """The worktree, the folder and the caller of a bridge, and the store that it has in mind.

    `otherwise` is the caller if nobody has registered a session for the agent: that session has the name of
    the process which started the bridge.
    """

    root: str
    cwd: str
    tenant: str
    store_id: str
    caller: Caller
    otherwise: Caller | None = None


def speaker(engine: "Engine", caller: Caller, otherwise: Caller | None) -> Caller:
    """Return the caller, or `otherwise` if nothing names its session and no process above it has one."""
    if caller.session or otherwise is None:
        return caller
    from coord.core.sessions.commands import FindSession  # the bridge itself does not ask

    try:
        engine.call(FindSession(caller))
    except (NotFound, Invalid):
        return otherwise
    except CoordError:
        return caller  # the call itself says what is wrong
    return caller
