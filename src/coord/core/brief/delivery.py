"""What sessions got, and when their context begins again.

The newest brief is a part of the session's record, which every tool call writes anyway. Every brief is an
event, so the log is the list of receipts, as long as the log is.
"""

import msgspec

from coord.core import keys
from coord.core.brief.commands import BeginEpoch, RecordBrief
from coord.core.brief.schema import BriefDelivered
from coord.core.sessions.identify import ensure_session, put_session
from coord.core.sessions.schema import SessionCompacted
from coord.core.transaction import Transaction

CHARS_PER_TOKEN = 4
"""Roughly, for English text and paths."""
COMPACT = "compact"


def estimated_tokens(chars: int) -> int:
    """Return about how many tokens a model needs for a text of this length."""
    return -(-chars // CHARS_PER_TOKEN)


def record_brief(tx: Transaction, command: RecordBrief, now: int) -> bool:
    """Record that a session got its brief; false if its context began again since the brief was made."""
    session = ensure_session(tx, command.caller, now)
    if session.epoch != command.epoch:
        return False
    offset = max(session.briefed_offset, command.offset)
    put_session(
        tx,
        msgspec.structs.replace(session, briefed=command.digest, briefed_ms=now, briefed_offset=offset),
    )
    tokens = estimated_tokens(command.chars)
    tx.emit(
        BriefDelivered(
            session.session_id, session.agent, command.offset, command.chars, tokens, session.epoch
        )
    )
    return True


def begin_epoch(tx: Transaction, command: BeginEpoch, now: int) -> int:
    """Note that the context of a session began again, so that it gets everything again; return its epoch."""
    session = ensure_session(tx, command.caller, now)
    mark = keys.digest(command.mark) if command.mark else session.epoch_mark
    if command.mark and mark == session.epoch_mark:
        return session.epoch
    session = msgspec.structs.replace(
        session,
        epoch=session.epoch + 1,
        epoch_mark=mark,
        seen=(-1, -1),
        seen_ms=0,
        briefed="",
        briefed_ms=0,
        briefed_offset=0,
    )
    put_session(tx, session)
    if command.why == COMPACT:
        tx.emit(SessionCompacted(session.session_id, session.agent, session.epoch))
    return session.epoch
