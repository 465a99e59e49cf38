"""The text for a session that starts, continues after a clear, or was compacted."""

from typing import Any

from coord.core.errors import Refused
from coord.core.sessions.commands import SessionInfo
from coord.integrations.hooks import messages
from coord.integrations.hooks.program import program_of
from coord.sdk.client.client import Client


def welcome(client: Client, source: str, model: str = "") -> str:
    """Register the session with its program and model, and return what it should know."""
    replaces = _session_before_clear(client) if source == "clear" else ""
    program = program_of(client.caller.process)
    described: dict[str, Any] = {"bin": program.path or None, "version": program.version or None}
    described["model"] = model or None
    try:
        registered = client.register(**described, replaces=replaces, peers=False)
    except Refused:
        registered = client.register(**described, peers=False)
    own = registered.session.session_id
    family = {own, registered.session.parent}
    peers = [
        peer
        for peer in client.peers(live=True)
        if peer.session_id not in family and peer.parent != own and _works_here(peer, client)
    ]
    return "" if source == "compact" else messages.peers_notice(peers, own)  # the brief follows


def _works_here(peer: SessionInfo, client: Client) -> bool:
    """Whether a session works on this repository; a server may keep those of several."""
    caller = client.caller
    return (
        client.location.local
        or peer.repository in ("", caller.repository)
        or (peer.host != caller.host and peer.project == caller.project)
    )


def _session_before_clear(client: Client) -> str:
    """Return the session that used this process before the clear; "" if there is not exactly one."""
    process = client.caller.process
    if process is None:
        return ""
    before = [peer for peer in client.peers() if _shares_process(peer, client, process.pid)]
    return before[0].session_id if len(before) == 1 else ""


def _shares_process(peer: SessionInfo, client: Client, pid: int) -> bool:
    return peer.pid == pid and peer.host == client.caller.host and not peer.parent
