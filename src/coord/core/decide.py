"""Which rule answers which command."""

from collections.abc import Callable
from typing import Any

from coord.core import (
    acquire,
    commands,
    ending,
    history,
    holding,
    limits,
    lock,
    message,
    peers,
    plan,
    plan_commands,
    queue,
    result,
    revoke,
    session,
    sweep,
    task,
)
from coord.core.view import View

RULES: dict[type[commands.Command], Callable[[View, Any, int], Any]] = {
    commands.ClaimTask: task.claim_task,
    commands.ClaimTasks: task.claim_tasks,
    commands.RenewLease: task.renew_lease,
    commands.ReleaseClaim: task.release_claim,
    commands.ResetTask: task.reset_task,
    commands.SubmitResult: result.submit_result,
    commands.SetLimits: limits.set_limits,
    commands.GetTaskState: history.get_task_state,
    commands.GetTaskStates: history.get_task_states,
    commands.GetClaimHistory: history.get_claim_history,
    commands.GetSessionClaims: history.get_session_claims,
    commands.ListExpiredClaims: history.list_expired_claims,
    commands.Sweep: sweep.sweep,
    plan_commands.AddTasks: plan.add_tasks,
    plan_commands.SkipTask: plan.skip_task,
    plan_commands.RetryTask: plan.retry_task,
    plan_commands.SetTrack: plan.set_track,
    plan_commands.GetTasks: plan.get_tasks,
    plan_commands.ClaimNext: queue.claim_next,
    commands.Register: ending.register,
    commands.Deregister: ending.deregister,
    commands.Heartbeat: session.heartbeat,
    commands.UpdateSession: session.update_session,
    commands.GetSession: peers.get_session,
    commands.ListSessions: peers.list_sessions,
    commands.AcquireLocks: acquire.acquire_locks,
    commands.ConfirmWait: acquire.confirm_wait,
    commands.PeekWait: acquire.peek_wait,
    commands.WithdrawWait: acquire.withdraw_wait,
    commands.ReleaseLocks: holding.release_locks,
    commands.RenewLocks: holding.renew_locks,
    commands.CheckLocks: holding.check_locks,
    commands.ListLocks: holding.list_locks,
    commands.StealLock: revoke.steal_lock,
    commands.PreemptLock: revoke.preempt_lock,
    commands.SendMessage: message.send_message,
    commands.ReceiveMessages: message.receive_messages,
    commands.PeekMessages: message.peek_messages,
    commands.AckMessages: message.ack_messages,
}

READS: dict[type[commands.Command], Callable[[Any], list[str]]] = {
    commands.ClaimTask: task.claim_reads,
    commands.ClaimTasks: task.claim_reads,
    commands.ReleaseClaim: task.claim_reads,
    commands.SubmitResult: result.submit_reads,
    commands.Heartbeat: session.caller_reads,
    commands.UpdateSession: session.caller_reads,
    commands.SendMessage: session.caller_reads,
    commands.ReceiveMessages: session.caller_reads,
    commands.ConfirmWait: acquire.wait_reads,
    commands.PeekWait: acquire.wait_reads,
    commands.AcquireLocks: lock.lock_reads,
    commands.ReleaseLocks: lock.lock_reads,
    commands.RenewLocks: lock.lock_reads,
    commands.CheckLocks: lock.lock_reads,
}
"""What a rule is going to read, for those worth loading ahead; others say it when they miss it."""


def decide(view: View, command: commands.Command, now: int) -> Any:
    """Answer a command by its rule; what it changes is in the view."""
    return RULES[type(command)](view, command, now)


def reads_ahead(command: commands.Command) -> list[str]:
    """Return keys that are worth loading before the command is decided."""
    foresee = READS.get(type(command))
    return [] if foresee is None else foresee(command)
