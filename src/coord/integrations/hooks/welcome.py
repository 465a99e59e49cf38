"""What a session is told when it begins, goes on after a clearing, or has lost its memory."""

from coord.core.commands import ListLocks
from coord.core.errors import Refused
from coord.core.replies import SessionShown
from coord.integrations.hooks import messages as texts
from coord.sdk.client.client import Client


def greet(client: Client, source: str) -> str:
    """Register the session and return what it should know."""
    replaces = _cleared(client) if source == "clear" else ""
    try:
        registered = client.register(replaces=replaces)
    except Refused:
        registered = client.register()
    own = registered.session.session_id
    family = {own, registered.session.parent}
    peers = [peer for peer in client.peers(live=True) if peer.session_id not in family and peer.parent != own]
    if source != "compact":
        return texts.company(peers, own)
    held = client.call(ListLocks(client.caller, own=True))
    return texts.doing(own, held, peers, client.locks())


def _cleared(client: Client) -> str:
    """Return the session that lived in the same process before it was cleared; none if that is not clear."""
    process = client.caller.process
    if process is None:
        return ""
    before = [peer for peer in client.peers() if _lived_there(peer, client, process.pid)]
    return before[0].session_id if len(before) == 1 else ""


def _lived_there(peer: SessionShown, client: Client, pid: int) -> bool:
    return peer.pid == pid and peer.host == client.caller.host and not peer.parent
