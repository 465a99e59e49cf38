"""Messages to sessions in other repositories of this machine.

The user's store says in which folder a session works. The message goes straight into the store of that
repository, where the session reads its inbox anyway, so that its hooks have to look nowhere else.
"""

from typing import NamedTuple

import msgspec

from coord.core.errors import CoordError
from coord.core.messages.commands import DeliverMessage, FindRecipients, SendElsewhere, SendMessage, SendReply
from coord.core.sessions.commands import Heartbeat, SessionInfo
from coord.core.sessions.schema import Liveness
from coord.host.repository import find_repository
from coord.host.store_location import StoreLocation, pinned_location
from coord.sdk.client.connection import Connection


class Destination(NamedTuple):
    """A store, and the sessions that read their inboxes there."""

    location: StoreLocation
    sessions: list[str]


def find_elsewhere(connection: Connection, to: str) -> list[Destination]:
    """Return the other stores in which the recipients of an address work; none if nobody has it."""
    try:
        host = connection if connection.location.repository is None else connection.user_store(make=False)
        found = [] if host is None else host.call(FindRecipients(caller=connection.caller, to=to))
    except CoordError:
        return []
    by_folder: dict[str, Destination] = {}
    for session in found:
        location = _location_of(session, connection)
        if location.pinned and location.folder != connection.location.folder:
            destination = by_folder.setdefault(location.folder, Destination(location, []))
            destination.sessions.append(session.session_id)
    return list(by_folder.values())


def send_elsewhere(
    connection: Connection, command: SendMessage, destinations: list[Destination]
) -> SendReply:
    """Count and log a message in the sender's store, then deliver it; one commit in each store."""
    repository = connection.location.repository
    content = {name: getattr(command, name) for name in command.__struct_fields__}
    deliver: DeliverMessage = connection.call(
        SendElsewhere(
            **content,
            sessions=tuple(name for each in destinations for name in each.sessions),
            from_repository=repository.root or repository.commondir if repository else connection.caller.cwd,
        )
    )
    connection.mirror_to_user_store(Heartbeat(connection.caller), make=True)  # so that they can reply
    recipients: dict[str, Liveness] = {}
    for location, sessions in destinations:
        with connection.open_other(location) as other:
            reply: SendReply = other.call(msgspec.structs.replace(deliver, to=tuple(sessions)))
        recipients |= reply.recipients
    return SendReply(deliver.id, recipients)


def _location_of(session: SessionInfo, connection: Connection) -> StoreLocation:
    """Return the store of the repository in which a session works, or else the user's."""
    if session.cwd and find_repository(session.cwd) is not None:
        return pinned_location(session.cwd)
    return connection.user_location
