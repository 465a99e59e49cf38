"""Commands and replies of the real thing, put into the words of the model."""

from typing import Any

from coord.core.commands import Command
from coord.core.tasks import types
from coord.core.tasks.commands import (
    ClaimTask,
    ClaimTasks,
    GetClaimHistory,
    GetSessionClaims,
    GetTaskState,
    ListExpiredClaims,
    ReleaseClaim,
    RenewLease,
    ResetTask,
    SubmitResult,
    TaskCommand,
)
from tests.linearizability.task_model import Answer, Op


def operations(command: Command) -> list[Op]:
    """The operations that a command asks for: one, but for several claims at once."""
    if isinstance(command, ClaimTasks):
        session, lease = command.session, command.lease_ms
        return [Op("claim", f"{project}/{task}", session, lease=lease) for project, task in command.tasks]
    return [operation(command)]


def operation(command: Command) -> Op:
    """The operation that a command asks for."""
    match command:
        case ClaimTask():
            kind = "force" if command.force else "claim"
            return Op(kind, _task(command), command.session, lease=command.lease_ms, reason=command.reason)
        case RenewLease():
            return Op("renew", _task(command), command.session, command.generation)
        case ReleaseClaim():
            return Op(
                "release", _task(command), command.session, command.generation, reason=command.reason.value
            )
        case SubmitResult():
            return Op(
                "submit", _task(command), command.session, command.generation, work=command.work_product
            )
        case ResetTask():
            return Op("reset", _task(command))
        case GetTaskState():
            return Op("state", _task(command))
        case GetClaimHistory():
            return Op("history", _task(command))
        case GetSessionClaims():
            return Op("claims", session=command.session)
        case ListExpiredClaims():
            return Op("expired")
    raise AssertionError(f"the model does not know {command!r}")


def _task(command: TaskCommand) -> str:
    return f"{command.project}/{command.task}"


def answer(reply: Any) -> Answer:
    """A reply as the model gives it."""
    match reply:
        case types.ClaimResult():
            claim = reply.claim
            granted = (None, None) if claim is None else (int(claim.generation), claim.expires_ms)
            return (reply.reason.value, *granted, reply.current_holder)
        case types.RenewalResult():
            return (reply.reason.value, reply.new_expiry_ms)
        case types.ReleaseResult():
            return (reply.reason.value,)
        case types.SubmissionResult():
            return (reply.reason.value, reply.current_generation, reply.work_lost)
        case types.ResetResult():
            return (reply.reason.value, reply.generation)
        case types.TaskState():
            return _state(reply)
        case list():
            return tuple(_listed(item) for item in reply)
    raise AssertionError(f"the model does not know {reply!r}")


def _state(reply: types.TaskState) -> Answer:
    claim, result = reply.claim, reply.result
    shown = (None,) * 3 if claim is None else (claim.state.value, claim.session_id, claim.expires_ms)
    work = None if result is None else result.work_product_ref
    return (reply.state.value, reply.generation, *shown, work)


def _listed(item: types.TaskClaim | types.ClaimHistory) -> Answer:
    if isinstance(item, types.ClaimHistory):
        end_reason = item.release_reason.value
        return (item.generation, item.session_id, item.acquired_ms, end_reason, item.released_ms)
    return (f"{item.project_id}/{item.task_id}", int(item.generation), item.expires_ms)
