"""Who sends a request, and what it may do.

Over the unix socket it is a process of the hub's own user, which may do what it may do with the store itself.
Over TCP a token decides: it names the store, the tenant, a role, and perhaps a project and a session.
"""

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from coord.core.commands import Command, SessionCommand
from coord.core.errors import Refused
from coord.core.events import Origin
from coord.core.identity import Caller, Process
from coord.core.ids import is_id
from coord.core.tasks.commands import (
    AsSession,
    ClaimTask,
    ClaimTasks,
    ReleaseClaim,
    RenewLease,
    SubmitResult,
)
from coord.core.tokens.schema import Role
from coord.core.tokens.scope import within_limits
from coord.host.processes import this_machine
from coord.sdk.validation.commands import check_names
from coord.transports.hub.problems import HttpError

if TYPE_CHECKING:
    from coord.core.tokens.commands import TokenInfo
    from coord.transports.hub.stores import OpenStore

ADMIN_COMMANDS = frozenset(
    (
        *("SetLimits", "ChangeSettings", "SetTrack", "EnableAgent", "DeliverMessage"),
        *("SaveFollower", "LeadFollower", "FailFollower", "ForgetFollower", "RebuildFollower"),
        *("NoteReactions", "SendReactionMessage", "DecideReaction"),
        *("ResetTask", "RetryTask", "SkipTask", "PreemptLock", "SetWorkMode"),
    )
)
"""Commands that change the rules for others, or take something from them."""
HUB_COMMANDS = frozenset(
    (
        *("FindToken", "MarkTokenUsed", "DeclareDead", "EndClaimOfLock", "IsWaiting", "TokenMayAct"),
        "RecordUsage",
        "GrantAllWaiters",
        *("CheckAlerts", "ListWatched"),
    )
)
"""Commands that only the hub itself may run, or only rules send."""
REPORT_PATHS = ("/v1/logs", "/v1/metrics", "/v1/traces")
"""Where tools send their telemetry: all that a token with the role report is for."""
OF_CLAIMS = (ClaimTask, ClaimTasks, RenewLease, ReleaseClaim, SubmitResult)
"""Commands that name a session and have no caller, as the generation clock has them."""


class Identity(NamedTuple):
    """The sender of a request."""

    store: "OpenStore | None" = None
    """The store that its token names; None for a process of this machine, which names it itself."""
    role: Role = Role.ADMIN
    tenant: str = ""
    repository: str = ""
    """The id of the repository whose locks the request means."""
    token: "TokenInfo | None" = None
    address: str = ""
    by_cookie: bool = False
    """A browser sent the request, so a person acts."""

    @property
    def person_session(self) -> str:
        """The session in which the person behind a browser acts; "" for other requests.

        A token that is limited to a session is that of an agent.
        """
        token = self.token
        if token is None or not self.by_cookie or token.session:
            return ""
        return f"{self.user}-{token.id}" if is_id(f"{self.user}-{token.id}") else token.id

    @property
    def user(self) -> str:
        """The user of the token; "" for a process of this machine."""
        token = self.token
        return "" if token is None else token.user or token.label or token.id

    @property
    def origin(self) -> bytes:
        """Where a command of the sender came from, as a field for its events; empty on this machine."""
        return self.origin_after(0)

    def origin_after(self, hops: int) -> bytes:
        """Return the origin of a command to which a number of reactions one after another led."""
        token = self.token
        if token is None:
            return Origin(hops=hops).as_field() if hops else b""
        return Origin(self.user, token.id, self.address, hops=hops).as_field()

    def check_tenant(self, tenant: str) -> str:
        """Return the tenant of a request, which its token has to name."""
        if self.token is not None and tenant not in ("", self.tenant):
            raise forbidden(f"this token is for tenant {self.tenant}")
        return tenant or self.tenant

    def check_project(self, project: str) -> str:
        """Return the project of a request, which its token has to allow."""
        if self.token is None:
            return project
        if project and not self.token.covers_project(project):
            raise forbidden(f"this token is for project {self.token.project}")
        return project or self.token.project

    def check_session(self, session: str) -> str:
        """Return the session of a request, which its token has to allow."""
        if self.token is None:
            return session
        if session and not self.token.covers_session(session):
            raise forbidden(f"this token is for session {self.token.session}")
        return session or self.token.session

    def require(self, role: Role) -> None:
        """Refuse a request for which the role does not suffice."""
        if not self.role.allows(role):
            raise forbidden(f"this needs a token with the role {role}, and this one has {self.role}")


PROCESS = Identity()
"""A process of the hub's own user, over the unix socket."""


def forbidden(message: str) -> HttpError:
    """Return the refusal of a request whose token is valid, but not for this."""
    return HttpError(403, "forbidden", message, hint="use a token that may do this: coord token create")


def role_for(kind: type[Command]) -> Role:
    """Return the role that a command needs."""
    if kind.reads_only:
        return Role.VIEW
    return Role.ADMIN if kind.__name__ in ADMIN_COMMANDS else Role.OPERATE


def _is_of_this_machine(process: Process) -> bool:
    """Whether the hub can look at a process: evidence about any other proves nothing."""
    return (process.machine, process.boot, process.namespace) == this_machine()


def check_command(identity: Identity, command: Command) -> Command:
    """Return a command as its sender may run it, or refuse it."""
    token = identity.token
    if token is None:
        return command
    if type(command).__name__ in HUB_COMMANDS:
        raise forbidden("only the hub itself runs this command")
    identity.require(role_for(type(command)))
    check_names(command)
    if getattr(command, "force", False) or (
        isinstance(command, AsSession) and getattr(command.command, "force", False)
    ):
        identity.require(Role.ADMIN)
    try:
        command = within_limits(command, token, identity.tenant, _is_of_this_machine)
    except Refused as error:
        raise forbidden(error.message) from error
    return _in_name_of(_as_session(command, identity), identity)


def _as_session(command: Command, identity: Identity) -> Command:
    """Return a command about a claim with its caller, so that its session belongs to the token.

    An admin acts for every session, as a process of this machine does.
    """
    token = identity.token
    assert token is not None, "a process of this machine has no token"
    if not isinstance(command, OF_CLAIMS) or (token.role.allows(Role.ADMIN) and not token.session):
        return command
    project = command.project if isinstance(command, ClaimTask) else ""
    caller = Caller(
        command.session, agent=command.agent, project=project, tenant=identity.tenant, token=token.id
    )
    return AsSession(caller, command)


def _in_name_of(command: Command, identity: Identity) -> Command:
    """Return a command that names the user of the token, wherever it names a user."""
    user = identity.user
    if isinstance(command, SessionCommand):
        person = bool(command.caller.session) and command.caller.session == identity.person_session
        return replace(command, caller=replace(command.caller, user=user, person=person))
    names = _user_fields(type(command))
    return replace(command, **dict.fromkeys(names, user)) if names else command


@cache
def _user_fields(kind: type[Command]) -> tuple[str, ...]:
    return tuple(name for name in ("user", "by") if name in kind.__struct_fields__)
