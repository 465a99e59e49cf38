"""Which rule answers which command.

Rules are imported when they are first asked for: most processes live for one command.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from coord.core.commands import Command
from coord.core.view import View


def imported(name: str) -> Callable[..., Any]:
    """Return a function of the core by its name, `module.function`."""
    module, _, function = name.partition(".")
    found: Callable[..., Any] = getattr(import_module(f"coord.core.{module}"), function)
    return found


class ByCommand(dict[type[Command], Callable[..., Any]]):
    """Functions by the class of the command, as far as they are imported; `names` has them all."""

    def __init__(self, names: Mapping[str, str], otherwise: str = "") -> None:
        super().__init__()
        self.names = names
        self._otherwise = otherwise

    def __missing__(self, kind: type[Command]) -> Callable[..., Any]:
        found = self[kind] = imported(self.names.get(kind.__name__) or self._otherwise)
        return found


RULES = ByCommand(
    {
        "ClaimTask": "task.claim_task",
        "ClaimTasks": "task.claim_tasks",
        "RenewLease": "task.renew_lease",
        "ReleaseClaim": "task.release_claim",
        "ResetTask": "task.reset_task",
        "SubmitResult": "result.submit_result",
        "SetLimits": "limits.set_limits",
        "GetTaskState": "history.get_task_state",
        "GetTaskStates": "history.get_task_states",
        "GetClaimHistory": "history.get_claim_history",
        "GetSessionClaims": "history.get_session_claims",
        "ListExpiredClaims": "history.list_expired_claims",
        "Sweep": "sweep.sweep",
        "AddTasks": "plan.add_tasks",
        "SkipTask": "plan.skip_task",
        "RetryTask": "plan.retry_task",
        "SetTrack": "plan.set_track",
        "GetTasks": "plan.get_tasks",
        "ClaimNext": "queue.claim_next",
        "Register": "ending.register",
        "Deregister": "ending.deregister",
        "Heartbeat": "session.heartbeat",
        "UpdateSession": "session.update_session",
        "GetSession": "peers.get_session",
        "ListSessions": "peers.list_sessions",
        "AcquireLocks": "acquire.acquire_locks",
        "ConfirmWait": "acquire.confirm_wait",
        "PeekWait": "acquire.peek_wait",
        "WithdrawWait": "acquire.withdraw_wait",
        "ReleaseLocks": "holding.release_locks",
        "RenewLocks": "holding.renew_locks",
        "CheckLocks": "holding.check_locks",
        "ListLocks": "holding.list_locks",
        "BeginCall": "call.begin_call",
        "EndCall": "call.end_call",
        "LetGo": "call.let_go",
        "StealLock": "revoke.steal_lock",
        "PreemptLock": "revoke.preempt_lock",
        "SendMessage": "message.send_message",
        "ReceiveMessages": "message.receive_messages",
        "PeekMessages": "message.peek_messages",
        "AckMessages": "message.ack_messages",
    }
)

READS = ByCommand(
    {
        "ClaimTask": "task.claim_reads",
        "ClaimTasks": "task.claim_reads",
        "ReleaseClaim": "task.claim_reads",
        "SubmitResult": "result.submit_reads",
        "Heartbeat": "session.caller_reads",
        "UpdateSession": "session.caller_reads",
        "SendMessage": "session.caller_reads",
        "ReceiveMessages": "session.caller_reads",
        "ConfirmWait": "acquire.wait_reads",
        "PeekWait": "acquire.wait_reads",
        "AcquireLocks": "lock.lock_reads",
        "ReleaseLocks": "lock.lock_reads",
        "RenewLocks": "lock.lock_reads",
        "CheckLocks": "lock.lock_reads",
        "BeginCall": "lock.lock_reads",
        "LetGo": "lock.lock_reads",
        "EndCall": "session.caller_reads",
    },
    otherwise="decide.nothing_ahead",
)
"""What a rule is going to read, for those worth loading ahead; others say it when they miss it."""


def decide(view: View, command: Command, now: int) -> Any:
    """Answer a command by its rule; what it changes is in the view."""
    return RULES[type(command)](view, command, now)


def reads_ahead(command: Command) -> list[str]:
    """Return keys that are worth loading before the command is decided."""
    keys: list[str] = READS[type(command)](command)
    return keys


def nothing_ahead(_command: Command) -> list[str]:
    """Return what is loaded ahead for most commands."""
    return []
