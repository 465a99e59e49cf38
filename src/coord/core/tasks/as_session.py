"""Claim, renew, release and submit for the session of the caller, which is found in the same step."""

from typing import Any

import msgspec

from coord.core import keys
from coord.core.dispatch import dispatch, keys_to_prefetch
from coord.core.identity import Caller
from coord.core.sessions.identify import caller_reads, ensure_session, find_session
from coord.core.sessions.schema import Session
from coord.core.tasks.commands import AsSession, ClaimTask, ClaimTasks, SubmitResult, SubmitResults
from coord.core.tasks.planned import done_reads
from coord.core.tasks.types import SubmissionResult
from coord.core.transaction import Transaction


def as_session(tx: Transaction, command: AsSession, now: int) -> Any:
    """Run a command for the session of its caller; it counts as a heartbeat."""
    caller, asked = command.caller, command.command
    if isinstance(asked, ClaimTask | ClaimTasks):
        session = ensure_session(tx, caller, now)
        who = {"session": session.session_id, "user": caller.user or session.user}
    else:
        who = _session_of(tx, caller, now)
    return dispatch(tx, msgspec.structs.replace(asked, **who), now)


def submit_results(tx: Transaction, command: SubmitResults, now: int) -> list[SubmissionResult]:
    """Submit several results for the session of the caller; it counts as a heartbeat."""
    who = _session_of(tx, command.caller, now)
    return [dispatch(tx, msgspec.structs.replace(each, **who), now) for each in command.results]


def _session_of(tx: Transaction, caller: Caller, now: int) -> dict[str, str]:
    """Return the session of a caller, with a fresh heartbeat, and its agent and user.

    A session that has ended stays ended: its claims ended with it, and the rule rejects the command.
    """
    name = find_session(tx, caller, now)
    session = tx.get(keys.session(name), Session)
    if session is not None and not session.ended_ms:
        ensure_session(tx, caller, now, name)
    agent, user = (session.agent, session.user) if session is not None else (caller.agent, caller.user)
    return {"session": name, "agent": agent or name, "user": user or caller.user}


def as_session_reads(command: AsSession) -> list[str]:
    """Return the keys that the caller's session and the command read."""
    reads, caller, asked = caller_reads(command), command.caller, command.command
    if not caller.session:
        return reads
    if isinstance(asked, SubmitResult):
        return reads + _result_reads(caller, asked)
    return reads + keys_to_prefetch(msgspec.structs.replace(asked, session=caller.session))


def submit_results_reads(command: SubmitResults) -> list[str]:
    """Return the keys that the caller's session and its submissions read."""
    reads = caller_reads(command)
    if command.caller.session:
        for each in command.results:
            reads += _result_reads(command.caller, each)
    return reads


def _result_reads(caller: Caller, result: SubmitResult) -> list[str]:
    name = caller.session
    reads = keys_to_prefetch(msgspec.structs.replace(result, session=name))
    return reads + done_reads(result.project, result.task, caller.agent or name, name)
