"""No command leaves the limits of its token: each is tried with each of its fields, none is exempt."""

import pkgutil
import types
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from importlib import import_module
from typing import Any

import msgspec
import pytest

import coord.core
from coord.core.commands import Command
from coord.core.errors import Refused
from coord.core.identity import Caller, Process
from coord.core.locks.commands import AcquireLocks, ListWaits
from coord.core.sessions.commands import Heartbeat
from coord.core.tasks.commands import AsSession, ClaimTask, ClaimTasks, RenewLease
from coord.core.tokens.commands import TokenInfo
from coord.core.tokens.schema import Role
from coord.core.tokens.scope import TENANT_CHANGES, TENANT_READS, within_limits

TOKEN = TokenInfo("t-1", Role.ADMIN, project="shop", session="bob")
FREE = TokenInfo("t-2", Role.ADMIN)
OTHER = "other"
INSIDE = {"tenant": "acme", "project": "shop", "session": "bob"}
KINDS: list[type[Command]] = sorted(
    {
        value
        for module in pkgutil.walk_packages(coord.core.__path__, "coord.core.")
        for value in vars(import_module(module.name)).values()
        if isinstance(value, type) and issubclass(value, Command) and "reply" in vars(value)
    }
    - {Command},
    key=lambda kind: kind.__name__,
)
NOT_OF_A_PROJECT = {
    # sessions and messages belong to the tenant
    *("AckMessages", "AddDelegation", "DeclareDead", "Deregister", "EndDelegation", "FindRecipients"),
    *("FindSession", "GetSession", "GetSessionMemory", "GetStatus", "Heartbeat", "IsWaiting", "JoinGroup"),
    *("LeaveGroup", "ListDelegations", "ListGroups", "ListHung", "ListSessions", "PeekMessages"),
    *("ReceiveMessages", "Register", "SendMessage", "ShowGroup", "TokenMayAct", "UpdateSession"),
    # a question belongs to the project of its session, which its rule compares with the token
    *("AnswerQuestion", "AskQuestion", "GetQuestion", "WithdrawQuestion"),
    # an alert belongs to the project of its session, which its rule compares with the token
    "CloseAlert",
    *("BeginEpoch", "GetBrief", "RecordBrief"),  # GetBrief shows the project of the caller, which is narrowed
    # locks belong to a repository
    *("AcquireLocks", "BeginToolCall", "CheckFences", "CheckLocks", "ConfirmWait", "EndTaskWait"),
    *("EndToolCall", "GetLocks", "ListLockPeriods", "ListLockRequests", "ListLocks", "ListWaits"),
    *("PeekWait", "PreemptLock", "RecordCommit", "RecordMerge", "ReleaseHookLocks", "ReleaseLocks"),
    *("RecordCommitRefusal", "RecordRestore"),
    *("RenewLocks", "StealLock", "WatchLocks", "WithdrawWait", "GrantAllWaiters"),
    # data by its digest, what changes nothing, and tokens by their own rules
    *("GetChunks", "PutChunk", "GetLimits", "GetWorkMode", "Sweep"),
    *("FindToken", "ListTokens", "MarkTokenUsed", "RevokeToken", "RotateToken"),
}
"""Commands without a project, each for a reason; another one has to be added here or to `scope.py`."""

Fill = Callable[[str, str], str]
"""Gives the value of a field by its path and its name."""


def build(hint: Any, path: str, name: str, fill: Fill) -> Any:
    """Return a value of a type, in which every text comes from `fill`."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        structs = [each for each in inner if isinstance(each, type) and issubclass(each, msgspec.Struct)]
        return build(structs[0], path, name, fill) if structs else None
    if hint is str:
        return fill(path, name)
    if origin is tuple:
        if name == "tasks" and typing.get_origin(inner[0]) is tuple:
            return ((fill(f"{path}.project", "project"), "t"),)
        return (build(inner[0], f"{path}.0", name, fill),) if inner[-1] is ... else ()
    if origin is dict or hint is dict:
        return {}
    if issubclass(hint, Enum):
        return next(iter(hint))
    if issubclass(hint, msgspec.Struct):
        hints = typing.get_type_hints(hint)
        fields = {each: build(hints[each], f"{path}.{each}", each, fill) for each in hint.__struct_fields__}
        return hint(**fields)
    return hint()


def inside(_path: str, name: str) -> str:
    return INSIDE.get(name, "x")


def paths(kind: type[Command], name: str) -> list[str]:
    """Return the places of a command where it names a tenant, a project or a session, but for its caller."""
    found: list[str] = []

    def note(path: str, field: str) -> str:
        if field == name and ".caller." not in path:
            found.append(path)
        return inside(path, field)

    build(kind, kind.__name__, "", note)
    return found


def outside(kind: type[Command], name: str) -> Iterator[Command]:
    """Yield the command with one such field outside of the limits, each in turn."""
    for place in paths(kind, name):
        yield build(kind, kind.__name__, "", partial(_outside_at, place))


def _outside_at(place: str, path: str, name: str) -> str:
    return OTHER if path == place else inside(path, name)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_field_leads_outside(kind: type[Command]) -> None:
    """TEN-1: another tenant, project or session is refused wherever a command names it, also inside."""
    limited = msgspec.structs.replace(TOKEN, project="", session="")
    for name, own in INSIDE.items():
        token = limited if name == "tenant" else msgspec.structs.replace(limited, **{name: own})
        for command in outside(kind, name):
            with pytest.raises(Refused):
                within_limits(command, token, "acme")
    command = build(kind, kind.__name__, "", inside)
    if kind.__name__ in TENANT_CHANGES | TENANT_READS:
        with pytest.raises(Refused, match="whole tenant"):
            within_limits(command, TOKEN, "acme")
    else:
        assert type(within_limits(command, TOKEN, "acme")) is kind
    assert type(within_limits(command, FREE, "acme")) is kind


def test_every_command_has_a_project_or_a_reason() -> None:
    """A new command without a project has to be looked at."""
    without = {kind.__name__ for kind in KINDS if not paths(kind, "project")}
    assert without - (TENANT_CHANGES | TENANT_READS) == NOT_OF_A_PROJECT


def test_the_search_sees_what_is_inside() -> None:
    """The test above would prove nothing if it did not look into lists and into commands inside commands."""
    assert paths(ClaimTasks, "project") == ["ClaimTasks.tasks.project"]
    assert paths(AsSession, "session") == ["AsSession.command.session"]
    assert len(KINDS) > 80


@pytest.mark.parametrize("name", ["project", "tenant"])
def test_a_missing_name_is_not_all_of_them(name: str) -> None:
    """Without a project a command would mean every one; without a tenant it means that of the token."""
    command = ClaimTask(tenant="", project="", task="t", agent="a", session="bob", lease_ms=1)
    if name == "project":
        with pytest.raises(Refused, match="name that project"):
            within_limits(command, TOKEN, "acme")
    else:
        assert within_limits(command, FREE, "acme").tenant == "acme"


def test_a_command_inside_another_gets_its_tenant() -> None:
    """The tenant `local` has no limits, so naming it inside a command would go around those of `acme`."""
    renew = RenewLease("local", "shop", "t", "bob", 1)
    with pytest.raises(Refused, match="tenant acme"):
        within_limits(AsSession(Caller("bob"), renew), FREE, "acme")


HERE = Caller(
    "bob",
    user="eve",
    project="other",
    parent="ann",
    process=Process(1, 1),
    process_ancestors=(Process(2, 1),),
    tenant="",
    person=True,
    terminal=True,
    token="t-9",
)


def test_a_caller_is_what_its_token_says() -> None:
    """What only a process of this machine could prove does not come over the network."""
    caller = within_limits(Heartbeat(HERE), TOKEN, "acme").caller
    assert (caller.session, caller.project, caller.parent) == ("bob", "shop", "")
    assert (caller.tenant, caller.token) == ("acme", "t-1")
    assert (caller.process, caller.process_ancestors, caller.person, caller.terminal) == (
        None,
        (),
        False,
        False,
    )
    assert within_limits(Heartbeat(HERE), FREE, "acme").caller.parent == "ann"


def test_a_process_that_can_be_probed_is_believed() -> None:
    """A hub believes in processes of its own machine, and in no others."""
    command = AcquireLocks(HERE, "r", ("file:a",), waiter=Process(3, 1))
    narrowed = within_limits(command, TOKEN, "acme", lambda process: process.pid in (2, 3))
    assert (narrowed.caller.process, narrowed.caller.process_ancestors) == (None, (Process(2, 1),))
    assert narrowed.waiter == Process(3, 1)


@pytest.mark.parametrize(
    ("session", "acts_as"), [("", "bob"), ("bob", "bob"), ("bob~2", "bob~2"), ("ann", ""), ("bob.kid", "")]
)
def test_a_caller_acts_for_the_session_of_its_token(session: str, acts_as: str) -> None:
    """No session means that of the token; any other one is refused."""
    if not acts_as:
        with pytest.raises(Refused, match="limited to project shop and session bob"):
            within_limits(Heartbeat(Caller(session)), TOKEN, "acme")
    else:
        assert within_limits(Heartbeat(Caller(session)), TOKEN, "acme").caller.session == acts_as


def test_a_waiting_process_is_not_believed() -> None:
    """A request in the wait queue lives as long as its process; over the network, as long as its lease."""
    command = AcquireLocks(Caller("bob"), "r", ("file:a",), waiter=Process(1, 1))
    assert within_limits(command, TOKEN, "acme").waiter is None


def test_a_list_of_waits_is_for_the_project_of_its_token() -> None:
    """Its client sends no caller: the token decides whose tasks are named, whatever a client states."""
    assert within_limits(ListWaits(), TOKEN, "acme").caller.project == TOKEN.project
    assert within_limits(ListWaits(Caller("", project=OTHER)), TOKEN, "acme").caller.project == TOKEN.project
    assert within_limits(ListWaits(), FREE, "acme").caller.project == ""
