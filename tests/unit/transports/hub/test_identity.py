"""Over TCP a token decides what a command may do, wherever the command says more than that."""

import os
from typing import Any

import pytest

from coord.core.commands import Command
from coord.core.identity import Caller, Process
from coord.core.lifecycle.commands import Register
from coord.core.limits import SetLimits
from coord.core.locks.commands import AcquireLocks, ReleaseLocks
from coord.core.sessions.commands import Heartbeat
from coord.core.tasks.commands import AsSession, ClaimTasks, GetTaskStates, RenewLease
from coord.core.tokens.commands import FindToken, MarkTokenUsed, TokenInfo
from coord.core.tokens.schema import Role
from coord.host.processes import describe
from coord.transports.hub import calls
from coord.transports.hub.identity import PROCESS, Identity, check_command
from coord.transports.hub.problems import HttpError

BOB = Caller("bob")


def identity(role: str = "admin", **limits: Any) -> Identity:
    info = TokenInfo("t-1", Role(role), user="ida", **limits)
    return Identity(role=info.role, tenant="acme", token=info, address="10.0.0.1")


@pytest.mark.parametrize(
    ("limits", "command"),
    [
        ({"project": "shop"}, ClaimTasks("acme", "a", "bob", 1, (("shop", "t"), ("other", "t")))),
        ({"project": "shop"}, GetTaskStates("acme", (("other", "t"),))),
        ({"project": "shop"}, AsSession(BOB, RenewLease("acme", "other", "t", "bob", 1))),
        ({"project": "shop"}, SetLimits("enterprise")),
        ({"session": "bob"}, AsSession(BOB, RenewLease("acme", "shop", "t", "ann", 1))),
        ({"session": "bob"}, Heartbeat(Caller("ann"))),
        ({}, AsSession(BOB, RenewLease("local", "shop", "t", "bob", 1))),
        ({}, Heartbeat(Caller("bob", tenant="local"))),
        ({}, FindToken("0" * 64)),
        ({}, MarkTokenUsed("t-2")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Command) else str(value),
)
def test_a_command_beyond_its_token_is_forbidden(limits: dict[str, str], command: Command) -> None:
    """TEN-1: also in lists and in commands inside a command; a process of the hub's user has no token."""
    with pytest.raises(HttpError) as refused:
        check_command(identity(**limits), command)
    assert (refused.value.status, "coord token create" in refused.value.hint) == (403, True)
    assert check_command(PROCESS, command) is command


@pytest.mark.parametrize(
    ("role", "command", "allowed"),
    [
        ("view", GetTaskStates("acme", ()), True),
        ("view", ReleaseLocks(BOB, "r", ()), False),
        ("operate", ReleaseLocks(BOB, "r", ()), True),
        ("operate", SetLimits("enterprise"), False),
        ("admin", SetLimits("enterprise"), True),
    ],
)
def test_a_role_bounds_the_commands(role: str, command: Command, allowed: bool) -> None:
    """A viewer changes nothing, and an operator no rules."""
    if allowed:
        assert type(check_command(identity(role), command)) is type(command)
        return
    with pytest.raises(HttpError, match="needs a token with the role"):
        check_command(identity(role), command)


def test_nobody_joins_the_family_of_another_session() -> None:
    """A sub-agent passes the locks of its parent, so a token of one session names no other parent."""
    command = Register(caller=Caller("bob", parent="ann", user="eve", person=True, token="t-9"))
    checked = check_command(identity(session="bob"), command)
    assert isinstance(checked, Register)
    assert (checked.caller.parent, checked.caller.person) == ("", False)
    assert (checked.caller.user, checked.caller.token) == ("ida", "t-1")


def test_processes_of_this_machine_are_believed() -> None:
    """The hub can look at them; what it cannot look at, also a process that waits, does not count."""
    mine, foreign = describe(os.getpid()), Process(7, 1, "another", "boot", "pid")
    assert mine is not None
    caller = Caller("bob", process=foreign, process_ancestors=(mine, foreign))
    checked = check_command(identity(), AcquireLocks(caller, "r", ("file:a",), waiter=foreign))
    assert isinstance(checked, AcquireLocks)
    assert (checked.caller.process, checked.caller.process_ancestors, checked.waiter) == (None, (mine,), None)
    checked = check_command(identity(), AcquireLocks(caller, "r", ("file:a",), waiter=mine))
    assert isinstance(checked, AcquireLocks)
    assert checked.waiter == mine


def test_a_process_of_this_machine_has_no_token() -> None:
    """A local client that states a token gets neither its rights nor its name in the audit."""
    command = Heartbeat(Caller("ada", token="t-stolen"))
    found = calls._as_caller(command, lambda: ())
    assert isinstance(found, Heartbeat)
    assert found.caller.token == ""


def test_a_token_of_a_session_is_no_person() -> None:
    """A browser acts as its person; an agent that sends its token as a cookie stays the agent."""
    person = Identity(token=TokenInfo("t-1", Role.ADMIN, user="ida"), by_cookie=True)
    assert person.person_session == "ida-t-1"
    assert person._replace(by_cookie=False).person_session == ""
    assert (
        person._replace(token=TokenInfo("t-1", Role.ADMIN, user="ida", session="s-bob")).person_session == ""
    )
