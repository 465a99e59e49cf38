"""Whether agents get work: a person pauses all of them, drains them, or stops them in an emergency.

| mode | new claims of agents | their new locks, edits and commands | what they have |
|---|---|---|---|
| paused | none; who asks waits | as ever | they finish it |
| draining | none; `coord work` ends | as ever | they finish it |
| stopped | none; who asks waits | refused; who waits for a lock keeps its place | they keep it |

The record exists only while one of them holds, so without one a rule reads a key that is not there, together
with the keys that it reads anyway. A person is never held up.
"""

from enum import StrEnum

from coord.core import keys
from coord.core.commands import Command, Reply, SessionCommand
from coord.core.dispatch import dispatch
from coord.core.errors import Invalid, Refused
from coord.core.events import Event
from coord.core.identity import Caller
from coord.core.messages.quoting import quote, quote_name
from coord.core.sessions.commands import GrantAllWaiters
from coord.core.sessions.identify import find_session, is_person, name_of_person
from coord.core.settings import STOPPED, HeldWork
from coord.core.transaction import Transaction


class Mode(StrEnum):
    """What agents may begin."""

    ON = "on"
    PAUSED = "paused"
    DRAINING = "draining"
    STOPPED = STOPPED


class WorkModeInfo(Reply, frozen=True):
    """The mode now, and the one before."""

    mode: Mode
    reason: str = ""
    by: str = ""
    since_ms: int = 0
    before: Mode = Mode.ON


class GetWorkMode(Command, frozen=True):
    """Return whether agents get work, and who says so."""

    rule = "coord.core.messages.work_mode:get_work_mode"
    reply = WorkModeInfo
    reads_only = True


class SetWorkMode(SessionCommand, frozen=True, kw_only=True):
    """Pause, drain or stop all agents, or let them go on; only people may."""

    rule = "coord.core.messages.work_mode:set_work_mode"
    reply = WorkModeInfo
    mode: Mode
    reason: str = ""


class WorkHeld(Event, frozen=True, tag="work.held"):
    """A person pauses, drains or stops all agents."""

    mode: str
    reason: str = ""
    by: str = ""


class WorkResumed(Event, frozen=True, tag="work.resumed"):
    """A person lets the agents go on."""

    before: str
    reason: str = ""
    by: str = ""


def get_work_mode(tx: Transaction, _command: GetWorkMode, _now: int) -> WorkModeInfo:
    """Return the mode of the tenant."""
    return _info(tx.get(keys.HELD_WORK, HeldWork))


def set_work_mode(tx: Transaction, command: SetWorkMode, now: int) -> WorkModeInfo:
    """Change the mode of the tenant; a stop needs a reason. The same mode for the same reason stays."""
    _check_is_person(tx, command.caller, now)
    if command.mode is Mode.STOPPED and not command.reason:
        raise Invalid("an emergency stop requires a reason", hint="--reason 'why'")
    found, by = tx.get(keys.HELD_WORK, HeldWork), name_of_person(command.caller)
    before = _info(found).mode
    if command.mode is Mode.ON:
        if found is not None:
            tx.delete(keys.HELD_WORK)
            tx.emit(WorkResumed(found.mode, command.reason, by))
        if before is Mode.STOPPED:  # who waited for a lock during it has it in this commit
            dispatch(tx, GrantAllWaiters(), now)
        return _info(None, before)
    if found is not None and (found.mode, found.reason) == (command.mode, command.reason):
        return _info(found, before)
    wanted = HeldWork(mode=command.mode.value, reason=command.reason, by=by, since_ms=now)
    tx.put(keys.HELD_WORK, wanted)
    tx.emit(WorkHeld(wanted.mode, wanted.reason, by))
    if (before is Mode.STOPPED) is not (command.mode is Mode.STOPPED):
        dispatch(tx, GrantAllWaiters(), now)
    return _info(wanted, before)


def _check_is_person(tx: Transaction, caller: Caller, now: int) -> None:
    """Refuse an agent; over the network the role of the token has decided."""
    if caller.token:
        return
    own = find_session(tx, caller, now)
    if not is_person(caller, own):
        raise Refused(f"{own} is an agent; only people pause and resume work", hint="ask a person to do it")


def _info(found: HeldWork | None, before: Mode = Mode.ON) -> WorkModeInfo:
    if found is None:
        return WorkModeInfo(Mode.ON, before=before)
    return WorkModeInfo(Mode(found.mode), found.reason, found.by, found.since_ms, before)


def words_of(found: HeldWork) -> str:
    """Return who holds the agents up, and why."""
    verb = "is draining the agents" if found.mode == Mode.DRAINING else f"has {found.mode} all agents"
    return f"{quote_name(found.by) if found.by else 'somebody'} {verb}" + (
        f": {quote(found.reason)}" if found.reason else ""
    )


def refuse_stopped(found: HeldWork) -> None:
    """Refuse something new to an agent while all agents are stopped."""
    if found.mode == Mode.STOPPED:
        raise Refused(words_of(found), hint="wait until a person runs coord resume")
