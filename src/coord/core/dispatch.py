"""Which rule answers which command.

Rules are imported when they are first asked for: most processes live for one command.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from coord.core.commands import Command
from coord.core.ranges import Range
from coord.core.transaction import Transaction


def imported(name: str) -> Callable[..., Any]:
    """Return a function of the core by its name, `module.function`."""
    module, _, function = name.rpartition(".")
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
        "ClaimTask": "tasks.claims.claim_task",
        "ClaimTasks": "tasks.claims.claim_tasks",
        "RenewLease": "tasks.claims.renew_lease",
        "ReleaseClaim": "tasks.claims.release_claim",
        "ResetTask": "tasks.reset.reset_task",
        "SubmitResult": "tasks.results.submit_result",
        "PutChunk": "tasks.chunks.put_chunk",
        "GetChunks": "tasks.chunks.get_chunks",
        "GetResult": "tasks.queries.get_result",
        "SetLimits": "limits.set_limits",
        "GetLimits": "limits.get_limits",
        "GetTaskState": "tasks.queries.get_task_state",
        "GetTaskStates": "tasks.queries.get_task_states",
        "GetClaimHistory": "tasks.queries.get_claim_history",
        "GetSessionClaims": "tasks.queries.get_session_claims",
        "ListExpiredClaims": "tasks.queries.list_expired_claims",
        "Sweep": "sweep.sweep",
        "AddTasks": "plans.plan.add_tasks",
        "SplitTask": "plans.subtasks.split_task",
        "SkipTask": "plans.plan.skip_task",
        "RetryTask": "plans.plan.retry_task",
        "SetTrack": "plans.plan.set_track",
        "EnableAgent": "routing.pool.enable_agent",
        "GetAgents": "routing.pool.get_agents",
        "FindSimilarTasks": "plans.similarity.find_similar_tasks",
        "GetTasks": "plans.plan.get_tasks",
        "GetStuck": "plans.plan.get_stuck",
        "GetSessionMemory": "lifecycle.memory.get_session_memory",
        "ClaimNext": "plans.queue.claim_next",
        "ClaimNamed": "plans.queue.claim_named",
        "AsSession": "tasks.as_session.as_session",
        "SubmitResults": "tasks.as_session.submit_results",
        "Register": "lifecycle.end.register",
        "Deregister": "lifecycle.end.deregister",
        "Heartbeat": "sessions.session.heartbeat",
        "UpdateSession": "sessions.session.update_session",
        "GetSession": "sessions.queries.get_session",
        "ListSessions": "sessions.queries.list_sessions",
        "AcquireLocks": "locks.acquire.acquire_locks",
        "ConfirmWait": "locks.acquire.confirm_wait",
        "PeekWait": "locks.acquire.peek_wait",
        "WithdrawWait": "locks.acquire.withdraw_wait",
        "ReleaseLocks": "locks.release.release_locks",
        "RenewLocks": "locks.release.renew_locks",
        "CheckLocks": "locks.release.check_locks",
        "CheckFences": "locks.queries.check_fences",
        "ListLocks": "locks.release.list_locks",
        "BeginToolCall": "locks.tool_calls.begin_tool_call",
        "EndToolCall": "locks.tool_calls.end_tool_call",
        "ReleaseHookLocks": "locks.tool_calls.release_hook_locks",
        "RecordCommit": "git_log.record_commit",
        "RecordMerge": "git_log_merge.record_merge",
        "StealLock": "locks.revoke.steal_lock",
        "PreemptLock": "locks.revoke.preempt_lock",
        "SendMessage": "messages.message.send_message",
        "ReceiveMessages": "messages.message.receive_messages",
        "PeekMessages": "messages.message.peek_messages",
        "AckMessages": "messages.message.ack_messages",
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
        "ClaimTask": "tasks.claims.claim_reads",
        "ClaimTasks": "tasks.claims.claims_reads",
        "ReleaseClaim": "tasks.claims.claim_reads",
        "SubmitResult": "tasks.results.submit_reads",
        "ClaimNext": "plans.queue.next_reads",
        "PutChunk": "tasks.chunks.chunk_reads",
        "ClaimNamed": "plans.queue.claim_named_reads",
        "AsSession": "tasks.as_session.as_session_reads",
        "SubmitResults": "tasks.as_session.submit_results_reads",
        "Heartbeat": "sessions.session.caller_reads",
        "UpdateSession": "sessions.session.caller_reads",
        "SendMessage": "sessions.session.caller_reads",
        "ReceiveMessages": "sessions.session.caller_reads",
        "ConfirmWait": "locks.acquire.wait_reads",
        "PeekWait": "locks.acquire.wait_reads",
        "AcquireLocks": "locks.locks.lock_reads",
        "ReleaseLocks": "locks.locks.lock_reads",
        "RenewLocks": "locks.locks.lock_reads",
        "CheckLocks": "locks.locks.lock_reads",
        "BeginToolCall": "locks.locks.lock_reads",
        "ReleaseHookLocks": "locks.locks.lock_reads",
        "EndToolCall": "sessions.session.caller_reads",
        "RecordCommit": "locks.locks.lock_reads",
    }
)


RANGES = ReadsAhead(
    {
        "Sweep": "sweep.sweep_ranges",
        "ClaimNext": "plans.queue.next_ranges",
        "AcquireLocks": "locks.locks.lock_ranges",
        "CheckLocks": "locks.locks.lock_ranges",
        "BeginToolCall": "locks.locks.lock_ranges",
    }
)


def decide(tx: Transaction, command: Command, now: int) -> Any:
    """Answer a command by its rule; what it changes is in the view."""
    return RULES[type(command)](tx, command, now)


def has_prefetch(command: Command) -> bool:
    """Whether a command says what it is going to read."""
    return type(command).__name__ in READS.names


def prefetch_reads(command: Command) -> list[str]:
    """Return keys that are worth loading before the command is decided."""
    found: list[str] = READS[type(command)](command)
    return found


def prefetch_ranges(command: Command) -> list[Range]:
    """Return ranges that are worth reading together with those keys."""
    found: list[Range] = RANGES[type(command)](command)
    return found
