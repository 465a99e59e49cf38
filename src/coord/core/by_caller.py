"""Renewals, releases and submissions of whoever calls: its session is found in the same step."""

from typing import Any

import msgspec

from coord.core import keys
from coord.core.commands import SubmitResult
from coord.core.decide import decide, reads_ahead
from coord.core.plan_commands import ByCaller
from coord.core.session import Session, caller_reads, enlist, find_session
from coord.core.view import View
from coord.core.work import done_reads


def by_caller(view: View, command: ByCaller, now: int) -> Any:
    """Answer a command for the session of its caller, and take it for a heartbeat.

    One that has ended is not begun again by this: its claims ended with it, and the rule says so.
    """
    name = find_session(view, command.caller, now)
    session = view.get(keys.session(name), Session)
    if session is not None and not session.ended_ms:
        enlist(view, command.caller, now, name)
    return decide(view, msgspec.structs.replace(command.asked, session=name), now)


def by_caller_reads(command: ByCaller) -> list[str]:
    """Return what the caller's session and the command itself are going to read."""
    caller, asked = command.caller, command.asked
    reads, name = caller_reads(command), caller.session
    if not name:
        return reads
    reads += reads_ahead(msgspec.structs.replace(asked, session=name))
    if isinstance(asked, SubmitResult):
        reads += done_reads(asked.project, asked.task, caller.agent or name, name)
    return reads
