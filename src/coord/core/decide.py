"""Which rule answers which command.

Rules are imported when they are first asked for: most processes live for one command.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from coord.core.commands import Command
from coord.core.range import Range
from coord.core.view import View


def imported(name: str) -> Callable[..., Any]:
    """Return a function of the core by its name, `module.function`."""
    module, _, function = name.partition(".")
    found: Callable[..., Any] = getattr(import_module(f"coord.core.{module}"), function)
    return found


class ByCommand(dict[type[Command], Callable[..., Any]]):
    """Functions by the class of the command, as far as they are imported; `names` has them all."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.names = names

    def __missing__(self, kind: type[Command]) -> Callable[..., Any]:
        found = self[kind] = imported(self.names[kind.__name__])
        return found


RULES = ByCommand(
    {
        "ClaimTask": "task.claim_task",
        "ClaimTasks": "task.claim_tasks",
        "RenewLease": "task.renew_lease",
        "ReleaseClaim": "task.release_claim",
        "ResetTask": "reset.reset_task",
        "SubmitResult": "result.submit_result",
        "PutChunk": "blob.put_chunk",
        "GetChunks": "blob.get_chunks",
        "GetResult": "history.get_result",
        "SetLimits": "limits.set_limits",
        "GetLimits": "limits.get_limits",
        "GetTaskState": "history.get_task_state",
        "GetTaskStates": "history.get_task_states",
        "GetClaimHistory": "history.get_claim_history",
        "GetSessionClaims": "history.get_session_claims",
        "ListExpiredClaims": "history.list_expired_claims",
        "Sweep": "sweep.sweep",
        "AddTasks": "plan.add_tasks",
        "SplitTask": "split.split_task",
        "SkipTask": "plan.skip_task",
        "RetryTask": "plan.retry_task",
        "SetTrack": "plan.set_track",
        "EnableAgent": "pool.enable_agent",
        "GetAgents": "pool.get_agents",
        "FindAlike": "similar.find_alike",
        "GetTasks": "plan.get_tasks",
        "GetStuck": "plan.get_stuck",
        "Recall": "memory.recall",
        "ClaimNext": "queue.claim_next",
        "ClaimNamed": "queue.claim_named",
        "ByCaller": "by_caller.by_caller",
        "SubmitResults": "by_caller.submit_results",
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
        "CheckFences": "fence.check_fences",
        "ListLocks": "holding.list_locks",
        "BeginCall": "call.begin_call",
        "EndCall": "call.end_call",
        "LetGo": "call.let_go",
        "RecordCommit": "commit_record.record_commit",
        "RecordMerge": "merge_record.record_merge",
        "StealLock": "revoke.steal_lock",
        "PreemptLock": "revoke.preempt_lock",
        "SendMessage": "message.send_message",
        "ReceiveMessages": "message.receive_messages",
        "PeekMessages": "message.peek_messages",
        "AckMessages": "message.ack_messages",
    }
)


class ReadsAhead(ByCommand):
    """What a rule is going to read, for those worth loading ahead; others say it when they miss it."""

    def __missing__(self, kind: type[Command]) -> Callable[..., Any]:
        if kind.__name__ in self.names:
            return super().__missing__(kind)
        self[kind] = _nothing
        return _nothing


def _nothing(_command: Command) -> list[Any]:
    return []


READS = ReadsAhead(
    {
        "ClaimTask": "task.claim_reads",
        "ClaimTasks": "task.claims_reads",
        "ReleaseClaim": "task.claim_reads",
        "SubmitResult": "result.submit_reads",
        "ClaimNext": "queue.next_reads",
        "PutChunk": "blob.chunk_reads",
        "ClaimNamed": "queue.claim_named_reads",
        "ByCaller": "by_caller.by_caller_reads",
        "SubmitResults": "by_caller.submit_results_reads",
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
        "RecordCommit": "lock.lock_reads",
    }
)


RANGES = ReadsAhead(
    {
        "Sweep": "sweep.sweep_ranges",
        "ClaimNext": "queue.next_ranges",
        "AcquireLocks": "lock.lock_ranges",
        "CheckLocks": "lock.lock_ranges",
        "BeginCall": "lock.lock_ranges",
    }
)


def decide(view: View, command: Command, now: int) -> Any:
    """Answer a command by its rule; what it changes is in the view."""
    return RULES[type(command)](view, command, now)


def foresees(command: Command) -> bool:
    """Whether a command says what it is going to read."""
    return type(command).__name__ in READS.names


def reads_ahead(command: Command) -> list[str]:
    """Return keys that are worth loading before the command is decided."""
    found: list[str] = READS[type(command)](command)
    return found


def ranges_ahead(command: Command) -> list[Range]:
    """Return ranges that are worth reading together with those keys."""
    found: list[Range] = RANGES[type(command)](command)
    return found
