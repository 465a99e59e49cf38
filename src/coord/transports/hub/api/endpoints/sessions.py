"""Sessions over HTTP: a client need not have one to list those of others."""

from typing import Any

from coord.core.sessions.commands import ListSessions, SessionInfo
from coord.core.sessions.schema import Liveness
from coord.transports.hub.api.endpoint import Asking, Endpoint, role_of
from coord.transports.hub.api.endpoints.commands import caller_of
from coord.transports.hub.api.fields import OptionalId, PublicBody


class ListSessionsBody(PublicBody, frozen=True, kw_only=True):
    """Which sessions: with `live` those that seem alive, with `everyone` those that have ended, too.

    A client that names its own `session` gets the others.
    """

    live: bool = False
    everyone: bool = False
    session: OptionalId = ""


async def list_sessions(asking: Asking) -> Any:
    """List the sessions that have not ended, without the caller's."""
    query: ListSessionsBody = asking.values
    caller = caller_of(asking, {"session": query.session}, ListSessions)
    everyone = query.everyone or not caller.session
    found: list[SessionInfo] = await asking.ask(ListSessions(caller, query.live, everyone))
    if query.everyone:
        return found
    return [session for session in found if session.liveness is not Liveness.ENDED]


def endpoints() -> list[Endpoint]:
    """Return the route."""
    return [
        Endpoint(
            "GET",
            "/v1/sessions",
            "listSessions",
            list_sessions,
            summary=str(list_sessions.__doc__),
            tag="sessions",
            role=role_of(ListSessions),
            query=ListSessionsBody,
            replies={200: list[SessionInfo]},
        )
    ]
