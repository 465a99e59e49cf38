"""Renewals, releases and submissions of whoever calls: its session is found in the same step."""

from typing import Any

import msgspec

from coord.core import keys
from coord.core.decide import decide, reads_ahead
from coord.core.plan_commands import ByCaller
from coord.core.session import Session, caller_reads, enlist, find_session
from coord.core.view import View


def by_caller(view: View, command: ByCaller, now: int) -> Any:
    """Answer a command for the session of its caller, and take it for a heartbeat.

    One that has ended is not begun again by this: its claims ended with it, and the rule says so.
    """
    name = find_session(view, command.caller, now)
    session = view.get(keys.session(name), Session)
    if session is not None and not session.ended_ms:
        name = enlist(view, command.caller, now).session_id
    return decide(view, msgspec.structs.replace(command.asked, session=name), now)


def by_caller_reads(command: ByCaller) -> list[str]:
    """Return what the caller's session and the command itself are going to read."""
    reads, name = caller_reads(command), command.caller.session
    return [*reads, *reads_ahead(msgspec.structs.replace(command.asked, session=name))] if name else reads
