"""The client of a call that came to the hub: the hub's own engine, behind the checks of its sender.

A process of this machine names files as it sees them. A client with a token is elsewhere: what it names are
texts from the top of the repository, and it reaches nothing but the store of its token.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

from coord.core.identity import Caller
from coord.engine.engine import Engine
from coord.host.caller import project_name
from coord.host.consent import Configuration, read_consented
from coord.host.store_location import StoreLocation
from coord.sdk.client.client import Client
from coord.sdk.client.connection import Connection
from coord.transports.hub.api.resources import read_resources
from coord.transports.hub.identity import Identity, check_command, forbidden
from coord.transports.hub.mcp.tools import ToolEngine
from coord.transports.hub.stores import OpenStore

if TYPE_CHECKING:
    from coord.core.messages.commands import SendMessage, SendReply
    from coord.host.words import Words


class HubClient(Client):
    """The client of one call."""

    def __init__(
        self,
        store: OpenStore,
        engine: Engine,
        identity: Identity,
        caller: Caller,
        *,
        location: StoreLocation,
        cwd: str,
        environ: Mapping[str, str],
        command_id: str,
    ) -> None:
        """`location`: that of the caller's worktree."""
        self._checked = ToolEngine(engine, partial(check_command, identity), command_id, identity.origin)
        self._elsewhere = identity.token is not None
        self._home = location
        if self._elsewhere:
            location = location._replace(repository=None, repository_id=identity.repository)
        super().__init__(
            store.database, location, caller, tenant=engine.tenant, cwd=cwd, environ=environ, timeout=0.0
        )
        self.sees_events = identity.token is None or not (identity.token.project or identity.token.session)
        """Whether the caller may read the log, which has the events of all projects and sessions."""

    def _new_engine(self, *_: object) -> Engine:
        return cast("Engine", self._checked)

    def close(self) -> None:
        """Close what this call has opened: the store itself is the hub's."""
        if self._host is not None:
            self._host.close()

    @property
    def configuration(self) -> Configuration:
        """The `coord.toml` of the repository in which the hub found the store."""
        return read_consented(self._home.repository, self._environ)

    def read_words(self, resources: str | Iterable[str], *, names: bool = True) -> "Words":
        if not self._elsewhere:
            return super().read_words(resources, names=names)
        from coord.host.words import Words

        words = [resources] if isinstance(resources, str) else resources
        return Words(read_resources(words, self.location.repository_id))

    def store_for(self, resources: Sequence[str]) -> Connection:
        if self._elsewhere and any(self.are_of_host(resources)):
            self._refuse()
        return super().store_for(resources)

    def open_other(self, location: StoreLocation) -> Connection:
        if self._elsewhere:
            self._refuse()
        return super().open_other(location)

    def _send_elsewhere(self, command: "SendMessage") -> "SendReply | None":
        return None if self._elsewhere else super()._send_elsewhere(command)

    def _refuse(self) -> NoReturn:
        raise forbidden("this belongs to the machine of the hub, and a token to its store")


def plain_caller(identity: Identity, session: str, location: StoreLocation) -> Caller:
    """Return a caller that names only its session; `check_command` adds what its token says."""
    own = "" if identity.token is None else identity.token.project
    project = own or location.project or project_name(location.repository)
    return Caller(session, project=project, host=identity.address)


def as_session(caller: Caller, session: str) -> Caller:
    """Return a caller that speaks for the session which its call names."""
    import msgspec

    if session in ("", caller.session):
        return caller
    changes: dict[str, Any] = {"session": session, "process": None, "person": False, "terminal": False}
    return msgspec.structs.replace(caller, **changes)
