"""What agents read: facts in one sentence, and the exact next step. No orders: models distrust those."""

import os
import sys
import time
from collections.abc import Sequence

from coord.core.locks.commands import LockInfo, LockReply, Outcome
from coord.core.messages.commands import MessageInfo
from coord.core.sessions.commands import SessionInfo

NAMED_MAX = 5
SAID_CHARS_MAX = 9_000
"""The tools cut what is longer."""
BODY_CHARS_MAX = 4_000


def denial(reply: LockReply, resources: Sequence[str], command: str) -> str:
    """Return why a call is refused, and what to do about it; `command` is the line that was to be run."""
    names = ", ".join(resource.removeprefix("file:") for resource in resources[:NAMED_MAX])
    if command:
        wait, again = (
            f"`{coord()} guard {_words(resources)} -- sh -c {_words([command])}` waits and runs it",
            "",
        )
    else:
        wait = f"`{coord()} lock {_words(resources)}` waits in line for it"
        again = ", then read the file again and repeat the edit"
    if reply.outcome is Outcome.CHANGED and reply.holder is not None:
        return (
            f"coord: the lock on {names} had expired, and {_holder(reply.holder)} has held "
            f"{reply.holder.resource} since. The file may have changed. Next: read it again and repeat the "
            "edit; it is free now."
        )
    if reply.cycle:
        return (
            f"coord: {names} cannot be had: {' → '.join(reply.cycle)} wait for each other. "
            f"Nothing was changed. Next: give back what is held (commit the edits, or `{coord()} unlock`), "
            f"then {wait}{again}."
        )
    if reply.holder is None:
        return f"coord: others are in line for {names}. Nothing was changed. Next: {wait}{again}."
    held = reply.holder
    covers = "" if held.resource in resources else f" as part of {held.resource}"
    why = f", for: {held.reason}" if held.reason else ""
    return (
        f"coord: {names} is locked{covers} by {_holder(held)} until {_clock_time(held.expires_ms)} "
        f"({span(held.expires_in_s)} from now){why}. Nothing was changed. Next: {wait}{again}; "
        "or do something else first."
    )


def background_denial(resources: Sequence[str]) -> str:
    """Return why a command is refused that needs a lock and would outlive its call."""
    return (
        f"coord: this command needs {', '.join(resources[:NAMED_MAX])} for as long as it runs, and nobody "
        "tells when one in the background ends. Nothing was run. Next: run it in the foreground, "
        "in a line without `&`, nohup and setsid."
    )


def salvage_notice(findings: Sequence[str]) -> str:
    """Return why a call is refused once: the files are not what they were when the agent read them."""
    return (
        f"coord: {'; '.join(findings)[:SAID_CHARS_MAX]}. The files are locked for this session now. "
        "Next: read them again and repeat the call."
    )


def failure(message: str, hint: str, *, closed: bool) -> str:
    """Return what to say where the store does not answer."""
    step = f" Next: {hint}." if hint else ""
    state = "nothing is written until it can be told who holds what" if closed else "locks are not looked at"
    return f"coord: {message}; {state}.{step} `{coord()} doctor` says what is wrong."


def peers_notice(peers: Sequence[SessionInfo], own: str) -> str:
    """Return who else is there, in one sentence (SES-21)."""
    if not peers:
        return ""
    count = len(peers)
    shown = "; ".join(_peer(peer) for peer in peers[:NAMED_MAX])
    more = f"; and {count - NAMED_MAX} more" if count > NAMED_MAX else ""
    are = "is 1 other session" if count == 1 else f"are {count} other sessions"
    return (
        f"coord: there {are} at work here: {shown}{more}. This is session {own}. "
        "Files that another session edits are locked. The user wants to hear of them in the first answer."
    )


def status_summary(
    own: str, held: Sequence[LockInfo], peers: Sequence[SessionInfo], others: Sequence[LockInfo]
) -> str:
    """Return who is doing what, for a session whose memory was cut."""
    mine = ", ".join(lock.resource for lock in held) or "nothing"
    lines = [f"coord: this is session {own}; it holds {mine}."]
    for peer in peers[:NAMED_MAX]:
        has = [lock.resource for lock in others if lock.owner == peer.session_id]
        lines.append(f"{_peer(peer)} holds {', '.join(has[:NAMED_MAX]) or 'nothing'}.")
    return " ".join(lines)


def reminder(held: Sequence[LockInfo]) -> str:
    """Return what is still held when an agent is about to stop."""
    names = [lock.resource for lock in held]
    given_back = [lock.resource for lock in held if not lock.worktree]
    steps = []
    if len(given_back) < len(held):
        steps.append("commit or undo the edits, which ends the locks on those files")
    if given_back:
        steps.append(f"`{coord()} unlock {_words(given_back)}` gives back what is not needed any more")
    return (
        f"coord: this session still holds {', '.join(names[:NAMED_MAX])}"
        f"{f' and {len(names) - NAMED_MAX} more' if len(names) > NAMED_MAX else ''}. "
        f"Next: {'; '.join(steps)}; or stop again to keep them. This is said once."
    )


def inbox(messages: Sequence[MessageInfo]) -> tuple[str, list[str]]:
    """Return messages as text, as many as fit, and the ids of those."""
    text, ids = "", list[str]()
    for message in messages:
        body = f" — {message.body[:BODY_CHARS_MAX]}" if message.body else ""
        sender = f"message {message.id} from {message.from_session_id} ({message.kind})"
        line = f"coord: {sender}: {message.subject}{body}"
        if text and len(text) + len(line) > SAID_CHARS_MAX:
            break
        text, ids = f"{text}\n{line}" if text else line, [*ids, message.id]
    return text, ids


def span(seconds: float) -> str:
    """Return a duration as people write it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def coord() -> str:
    """Return how the `coord` command is called from here."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder and os.access(f"{folder}/coord", os.X_OK):
            return "coord"
    return f"{os.path.dirname(sys.executable)}/coord"


def _holder(lock: LockInfo) -> str:
    return f"{lock.agent} (session {lock.owner})" if lock.agent else f"session {lock.owner}"


def _peer(peer: SessionInfo) -> str:
    task = " ".join(str(value) for value in peer.current_task.values() if value)
    at = f" in {peer.cwd}" if peer.cwd else ""
    return (
        f"{peer.agent or 'session'} {peer.session_id} ({peer.liveness}){at}{f', on {task}' if task else ''}"
    )


def _clock_time(ms: int) -> str:
    return time.strftime("%H:%M:%S UTC", time.gmtime(ms / 1000))


def _words(resources: Sequence[str]) -> str:
    from shlex import quote

    return " ".join(quote(each.removeprefix("file:")) for each in resources)
