"""After a command of git, gh or cargo failed: which peers run the same program now (SES-23).

Such a command often fails only because a peer is in the middle of the same. Then waiting helps, and trying
again does not.
"""

import re
from collections.abc import Mapping
from typing import Any

from coord.core.sessions.commands import ListSessions
from coord.core.sessions.schema import Liveness
from coord.integrations.hooks.events import CONTENDED_PROGRAMS
from coord.integrations.hooks.messages import same_work_notice
from coord.integrations.shell_commands.line import CommandLine
from coord.sdk.client.connection import Connection

GONE = (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
_FAILURE = re.compile(
    r"^\s*(fatal|error|remote: error)\b|\[(remote )?rejected\]|Exit Code: [1-9]", re.MULTILINE | re.IGNORECASE
)


def peers_at_the_same(
    connection: Connection, line: CommandLine, payload: Mapping[str, Any], *, failed: bool
) -> str:
    """Return a sentence about peers that run the program which failed; "" if none does, or nothing failed."""
    if not failed and not _FAILURE.search(str(payload.get("tool_response", ""))):
        return ""
    ours = {words[0] for words in line.words() if words[0] in CONTENDED_PROGRAMS}
    if not ours:
        return ""
    own, repository = connection.caller.session, connection.caller.repository
    peers = [
        peer
        for peer in connection.call(ListSessions(connection.caller))
        if peer.session_id != own
        and peer.liveness not in GONE
        and peer.repository == repository
        and ours & {words[0] for words in CommandLine(peer.current_command, peer.cwd, ask_git=False).words()}
    ]
    return same_work_notice(peers)
