"""Keep a command inside the limits of the token with which it came.

Every field called `tenant`, `project` or `session` counts, in the command and in what it contains. So a new
command is covered without a line here, unless it concerns the whole tenant.
"""

from collections.abc import Callable
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from coord.core.commands import Command
from coord.core.errors import Refused
from coord.core.identity import Caller, Process
from coord.core.tokens.commands import TokenInfo

TENANT_CHANGES = frozenset(
    (
        *("ChangeSettings", "DeliverMessage", "SendElsewhere", "SetLimits", "SetWorkMode"),
        *("SaveFollower", "LeadFollower", "FailFollower", "ForgetFollower", "RebuildFollower", "CheckAlerts"),
        *("NoteReactions", "SendReactionMessage", "DecideReaction"),
    )
)
"""Commands that change something for the whole tenant: refused to a token with any limit."""
TENANT_READS = frozenset(
    (
        *("CountTasks", "ListExpiredClaims", "ListStuck", "ReadFollower", "ListFollowers"),
        "ListWatched",
    )
)
"""Commands that show the tasks of all projects: refused to a token of one project."""

NAMES = ("tenant", "project", "session")
PLAIN = (str, int, float, bytes, NoneType, Enum)

AnyCommand = TypeVar("AnyCommand", bound=Command)


Believes = Callable[[Process], bool]
"""Whether a process that a request names can be probed where the request arrived."""


def within_limits(
    command: AnyCommand, token: TokenInfo, tenant: str, believes: Believes = lambda _process: False
) -> AnyCommand:
    """Return a command as a request with this token may run it; refuse one that reaches further.

    The caller gets the token's project, and its session if it names none. A process that is not believed is
    dropped, and so is a parent that the token does not cover. Nobody is a person over the network.
    """
    name = type(command).__name__
    if (name in TENANT_CHANGES and (token.project or token.session)) or (
        name in TENANT_READS and token.project
    ):
        raise _outside(token, "this concerns the whole tenant")
    narrowed: AnyCommand = _Narrowing(token, tenant, believes).struct(command)
    return narrowed


@cache
def nested_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a struct that may hold others: all but those whose type is a text or a number."""
    return tuple(field.name for field in msgspec.structs.fields(kind) if not _is_plain(field.type))


def _is_plain(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return all(map(_is_plain, get_args(kind)))
    return isinstance(kind, type) and issubclass(kind, PLAIN)


@cache
def _limited_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a struct in which limits count."""
    nested = nested_fields(kind)
    return tuple(name for name in kind.__struct_fields__ if name in NAMES or name in nested)


class _Narrowing(NamedTuple):
    """The limits of one request."""

    token: TokenInfo
    tenant: str
    believes: Believes

    def struct(self, value: Any) -> Any:
        """Return a struct with all its fields inside the limits."""
        changed = {}
        kind: type[msgspec.Struct] = type(value)
        for name in _limited_fields(kind):
            before = getattr(value, name)
            after = self.field(name, before)
            if after is not before:
                changed[name] = after
        return msgspec.structs.replace(value, **changed) if changed else value

    def field(self, name: str, value: Any) -> Any:
        """Return the value of a field, narrowed as far as needed."""
        if isinstance(value, str):
            if name == "tenant":
                return _tenant(value, self.token, self.tenant)
            if name == "project":
                _check_project(value, self.token)
            elif name == "session" and value:
                _check_session(value, self.token)
            return value
        if isinstance(value, Caller):
            return self.caller(value)
        if isinstance(value, Process):
            return value if self.believes(value) else None
        if isinstance(value, msgspec.Struct):
            return self.struct(value)
        if isinstance(value, tuple) and value:
            if isinstance(value[0], msgspec.Struct):
                return tuple(map(self.struct, value))
            if name == "tasks" and isinstance(value[0], tuple):  # pairs of a project and a task
                for project, _task in value:
                    _check_project(project, self.token)
        return value

    def caller(self, caller: Caller) -> Caller:
        """Return the caller as its token describes it."""
        token, process = self.token, caller.process
        session = caller.session or token.session
        _check_session(session, token)
        return msgspec.structs.replace(
            caller,
            session=session,
            tenant=_tenant(caller.tenant, token, self.tenant),
            project=token.project or caller.project,
            parent=caller.parent if token.covers_session(caller.parent) else "",
            process=process if process is not None and self.believes(process) else None,
            process_ancestors=tuple(filter(self.believes, caller.process_ancestors)),
            person=False,
            terminal=False,
            token=token.id,
        )


def _tenant(value: str, token: TokenInfo, tenant: str) -> str:
    if value not in ("", tenant):
        raise Refused(f"token {token.id} is for tenant {tenant}", hint=f"use a token of tenant {value}")
    return tenant


def _check_project(project: str, token: TokenInfo) -> None:
    if not token.covers_project(project):
        raise _outside(token, f"project {project} is another one" if project else "name that project")


def _check_session(session: str, token: TokenInfo) -> None:
    if not token.covers_session(session):
        raise _outside(token, f"session {session} is another one")


def _outside(token: TokenInfo, problem: str) -> Refused:
    named = {"project": token.project, "session": token.session}
    limits = " and ".join(f"{what} {name}" for what, name in named.items() if name)
    return Refused(
        f"token {token.id} is limited to {limits}: {problem}", hint="use a token without that limit"
    )
