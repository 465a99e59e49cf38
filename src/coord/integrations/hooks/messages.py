"""The texts that agents read: facts and the exact next step, no orders, because models distrust those."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from coord.core.locks.commands import LockInfo, LockReply, Outcome
from coord.core.messages.quoting import quote, quote_lines, quote_name, quote_names, visible
from coord.host.runtime.environment import environment

if TYPE_CHECKING:
    from coord.core.messages.commands import MessageInfo
    from coord.core.sessions.commands import SessionInfo

EMERGENCY = "emergency"
SYSTEM = "system"
"""The sender of coord's own messages; no session may have this name."""
NAMED_MAX = 5
SAID_CHARS_MAX = 9_000
"""The tools cut longer texts."""


def denial(reply: LockReply, resources: Sequence[str], command: str) -> str:
    """Return why a call is refused and what to do about it; `command` is the line that was not run."""
    names = quote_names([resource.removeprefix("file:") for resource in resources], NAMED_MAX)
    if command:
        wait, again = (
            f"`{coord()} guard {_words(resources)} -- sh -c {_words([command], own=True)}` waits and runs it",
            "",
        )
    else:
        wait = f"`{coord()} lock {_words(resources)}` waits for it"
        again = ", then read the file again and repeat the edit"
    if reply.outcome is Outcome.CHANGED and reply.holder is not None:
        return (
            f"coord: the lock on {names} had expired, and {_holder(reply.holder)} has held "
            f"{quote_name(reply.holder.resource)} since. The file may have changed. Next: read it again and "
            "repeat the edit; it is free now."
        )
    if reply.cycle:
        return (
            f"coord: {names} is part of a deadlock: {' → '.join(map(quote_name, reply.cycle))} wait for "
            "each other. Nothing was changed, and no lock was taken yet. If this lasts, coord asks one "
            "session for its lock, with a deadline. Next: release your locks (commit the edits, or "
            f"`{coord()} unlock`), then {wait}{again}."
        )
    if reply.holder is None:
        return f"coord: others wait for {names} already. Nothing was changed. Next: {wait}{again}."
    held = reply.holder
    covers = "" if held.resource in resources else f" as part of {quote_name(held.resource)}"
    why = f", for: {quote(held.reason)}" if held.reason else ""
    return (
        f"coord: {names} is locked{covers} by {_holder(held)} until {_clock_time(held.expires_ms)} "
        f"({span(held.expires_in_s)} from now){why}. Nothing was changed. Next: {wait}{again}; "
        "or do something else first."
    )


def emergency(messages: Sequence[MessageInfo], session: str = "") -> str:
    """Return why a call is stopped; `session` is the one that acknowledges, if it is not the default."""
    shown = list(_fitting(messages[:NAMED_MAX], stopped=True))
    lines = "\n".join(line for line, _ in shown)
    ids = " ".join(message.id for _, message in shown)
    acting = f" --session {session}" if session else ""
    return (
        f"{lines}\n"
        "coord: this is an emergency, and it stops edits and commands. Nothing was changed. "
        f"Next: act on it; `{coord()}{acting} ack {ids}` acknowledges it, and calls pass again."
    )


def held_up(words: str) -> str:
    """Return why a call is stopped while a person has stopped all agents."""
    return (
        f"coord: {words}. Edits and commands are stopped, and nothing was changed. Next: end your turn; a "
        "person decides when to go on."
    )


def background_denial(resources: Sequence[str]) -> str:
    """Return why a command that needs a lock may not run in the background."""
    return (
        f"coord: this command needs {quote_names(resources, NAMED_MAX)} while it runs, and coord cannot see "
        "when a command in the background ends. Nothing was run. Next: run it in the foreground, "
        "without `&`, nohup and setsid."
    )


def salvage_notice(findings: Sequence[str]) -> str:
    """Return why a call is refused once: the files changed after the agent read them."""
    return (
        f"coord: {visible('; '.join(findings)[:SAID_CHARS_MAX])}. The files are locked for this session now. "
        "Next: read them again and repeat the call."
    )


def failure(message: str, hint: str, *, closed: bool) -> str:
    """Return the text for a store that does not answer."""
    step = f" Next: {hint}." if hint else ""
    state = (
        "writes are blocked until coord can check who holds the file" if closed else "locks are not checked"
    )
    return visible(f"coord: {message}; {state}.{step} `{coord()} doctor` shows what is wrong.")


def peers_notice(peers: Sequence[SessionInfo], own: str) -> str:
    """Return the other sessions in one sentence (SES-21)."""
    if not peers:
        return ""
    count = len(peers)
    shown = "; ".join(_peer(peer) for peer in peers[:NAMED_MAX])
    more = f"; and {count - NAMED_MAX} more" if count > NAMED_MAX else ""
    are = "is 1 other session" if count == 1 else f"are {count} other sessions"
    return (
        f"coord: there {are} working here: {shown}{more}. This is session {own}. "
        "Files that another session edits are locked. The user wants your first answer to mention them."
    )


def same_work_notice(peers: Sequence[SessionInfo]) -> str:
    """Return which peers run the same program now; "" if none does (SES-23)."""
    if not peers:
        return ""
    shown = "; ".join(
        f"{quote_name(peer.agent or 'session')} {quote_name(peer.session_id)} runs "
        f"{quote(peer.current_command)}"
        for peer in peers[:NAMED_MAX]
    )
    return (
        f"coord: this command failed while {shown}. That may be the cause. "
        f"Next: `{coord()} peers` shows when it is done; then try again."
    )


def reminder(held: Sequence[LockInfo]) -> str:
    """Return the locks that an agent still holds when it is about to stop."""
    names = [lock.resource for lock in held]
    by_hand = [lock.resource for lock in held if not lock.worktree]
    steps = []
    if len(by_hand) < len(held):
        steps.append("commit or undo the edits, which releases the locks on those files")
    if by_hand:
        steps.append(f"`{coord()} unlock {_words(by_hand)}` releases the locks that you no longer need")
    return (
        f"coord: this session still holds {quote_names(names, NAMED_MAX)}. "
        f"Next: {'; '.join(steps)}; or stop again to keep them. This reminder comes once."
    )


def inbox(messages: Sequence[MessageInfo]) -> tuple[str, list[str]]:
    """Return the messages that fit as one text, and the ids of those that the hook may acknowledge."""
    shown = list(_fitting(messages))
    ids = [message.id for _, message in shown if message.kind != EMERGENCY]
    return "\n".join(line for line, _ in shown), ids


def _fitting(messages: Sequence[MessageInfo], *, stopped: bool = False) -> Iterator[tuple[str, MessageInfo]]:
    """Yield messages as text, as many as fit, but at least one; `stopped`: the reader knows what stops it."""
    room = SAID_CHARS_MAX
    for message in messages:
        stops = f" (edits and commands are stopped until `{coord()} ack {message.id}`)"
        line = _message(message, stops if message.kind == EMERGENCY and not stopped else "")
        room -= len(line)
        if room < 0 and room + len(line) < SAID_CHARS_MAX:
            return
        yield line, message


def _message(message: MessageInfo, more: str = "") -> str:
    """Return a message: a line of coord, then the body with a mark before each line."""
    body = f"\n{quote_lines(message.body)}" if message.body else ""
    at = f" in {quote_name(message.from_repository)}" if message.from_repository else ""
    session, kind = quote_name(message.from_session_id), quote_name(message.kind)
    sender = f"message {quote_name(message.id)} from {session}{at} ({kind})"
    own = message.from_session_id == SYSTEM
    subject = visible(message.subject) if own else quote(message.subject)
    return f"coord: {sender}: {subject}{more}{body}"


def span(seconds: float) -> str:
    """Return a duration such as `5m00s`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def coord() -> str:
    """Return how to call the `coord` command from here."""
    for folder in environment().get("PATH", "").split(os.pathsep):
        if folder and os.access(f"{folder}/coord", os.X_OK):
            return "coord"
    return f"{os.path.dirname(sys.executable)}/coord"


def _holder(lock: LockInfo) -> str:
    session = f"session {quote_name(lock.owner)}"
    return f"{quote_name(lock.agent)} ({session})" if lock.agent else session


def _peer(peer: SessionInfo) -> str:
    task = " ".join(str(value) for value in peer.current_task.values() if value)
    at = f" in {quote_name(peer.cwd)}" if peer.cwd else ""
    on = f", on {quote_name(task)}" if task else ""
    return f"{quote_name(peer.agent or 'session')} {quote_name(peer.session_id)} ({peer.liveness}){at}{on}"


def _clock_time(ms: int) -> str:
    return time.strftime("%H:%M:%S UTC", time.gmtime(ms / 1000))


def _words(resources: Sequence[str], *, own: bool = False) -> str:
    """Return words for a command line; `own`: the agent's command, which keeps its lines."""
    from shlex import join

    line = join([each.removeprefix("file:") for each in resources])
    return line if own else visible(line)
