"""Commands that a stranger made: names that cannot be ids never reach a rule."""

from typing import Any

import msgspec
import pytest

from coord.core.errors import Invalid
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ReleaseLocks
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.sessions.commands import UpdateSession
from coord.core.tasks.commands import (
    AsSession,
    ClaimTask,
    ClaimTasks,
    RenewLease,
    SubmitResult,
    SubmitResults,
)
from coord.sdk.remote.wire import command_types
from coord.sdk.validation.commands import IDS, check_names

CALLER = Caller("s1", project="shop", tenant="local")
CLAIM = ClaimTask("local", "shop", "A-1", "ada", "s1", 1000)
RENEW = RenewLease("local", "shop", "A-1", "s1", 1)
SUBMIT = SubmitResult("local", "shop", "A-1", "s1", 1, b"{}", "wp")
BAD = ("a/b", "..", "\0", "x" * 200, " ", "é", "\ud800")


def _with(command: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(command, **fields)


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_is_no_id_is_refused_wherever_it_is(name: str) -> None:
    """In the command, in its caller, in a command inside of it, and in lists."""
    lock = AcquireLocks(CALLER, "repo", ("file:a",))
    for bad in (
        *(_with(CLAIM, **{field: name}) for field in ("tenant", "project", "task", "session")),
        *(_with(lock, caller=_with(CALLER, **{field: name})) for field in ("session", "project", "parent")),
        _with(lock, repository=name),
        AsSession(CALLER, _with(RENEW, task=name)),
        SubmitResults(CALLER, (SUBMIT, _with(SUBMIT, project=name))),
        ClaimTasks("local", "ada", "s1", 1000, (("shop", "A-1"), ("shop", name))),
        ClaimTasks("local", "ada", "s1", 1000, ((name, "A-1"),)),
        AddTasks("shop", (NewTask(task_id="a", repository=name),)),
    ):
        with pytest.raises(Invalid):
            check_names(bad)


def test_what_clients_send_passes() -> None:
    for good in (
        *(CLAIM, RENEW, SUBMIT, AsSession(CALLER, RENEW), SubmitResults(CALLER, (SUBMIT,))),
        AcquireLocks(_with(CALLER, session="ida@host:7-1", repository="/home/ida/shop"), "", ("file:a b/é",)),
        ReleaseLocks(Caller(""), "repo", ()),
        UpdateSession(caller=CALLER, task="merging PR #34 / now"),
    ):
        check_names(good)


@pytest.mark.parametrize("lease", [0, -5, 2**62])
def test_a_lease_is_a_duration(lease: int) -> None:
    with pytest.raises(Invalid, match="lease"):
        check_names(_with(CLAIM, lease_ms=lease))


def test_every_command_with_such_a_field_is_checked() -> None:
    """A new command is covered without a line: its fields count by their names."""
    names = {field for kind in command_types() for field in kind.__struct_fields__}
    assert IDS.keys() - names == {"parent"}, "parent is a field of the caller"
