"""How far each follower of the log has read, and the state that it has there.

State and offset are one record, so a follower counts each entry once, whatever is killed in between. The
state at an offset depends on the log alone: it only moves forwards, and two processes that run the same
follower save the same. A follower with effects has a *runner*: one process at a time, for a lease.

Entries that a follower has not read are not trimmed, up to a bound (`engine/trim.py`). Its record is then the
snapshot from which it goes on. Once entries are trimmed, a second record keeps an older state: whoever
computes the follower again begins there.
"""

import msgspec

from coord.core import keys
from coord.core.commands import Command, Reply
from coord.core.errors import Denied, LimitReached, Unsupported
from coord.core.identity import Process, ProcessState
from coord.core.records import Stored
from coord.core.transaction import Transaction

STATE_BYTES_MAX = 180 * 1024
"""A record may have 256 KiB, and JSON writes three bytes as four."""
ERROR_CHARS_MAX = 500
FOLLOWERS_MAX = 1000


class Cursor(Stored, frozen=True, tag=1):
    """A follower: the newest offset that it has read, and its state there.

    `missed` counts the entries that were trimmed before it read them. `runner` is the process that performs
    its effects until `until_ms`, or until `process` is proven dead. `error` is why it failed at `failed_ms`,
    and empty since it went on.
    """

    offset: int = 0
    at_ms: int = 0
    version: int = 0
    state: bytes = b""
    missed: int = 0
    runner: str = ""
    until_ms: int = 0
    process: Process | None = None
    error: str = ""
    failed_ms: int = 0


class CursorBase(Stored, frozen=True, tag=1):
    """A state of a follower after which no entry is missing: from here it is computed again."""

    offset: int
    version: int
    state: bytes
    missed: int = 0


class FollowerInfo(Reply, frozen=True):
    """A follower without its state.

    `offset` is the saved one, up to some seconds old. A hub that runs the follower sets it to what has been
    read by now, and says so by `live`.
    """

    name: str
    offset: int
    at_ms: int
    version: int
    state_bytes: int
    missed: int
    runner: str
    error: str
    failed_ms: int
    live: bool = False


class FollowerState(Reply, frozen=True):
    """Where a follower goes on; `leads` says whether the caller is its runner now."""

    offset: int = 0
    version: int = 0
    state: bytes = b""
    missed: int = 0
    leads: bool = False
    runner: str = ""


class SaveFollower(Command, frozen=True):
    """Save the state of a follower at an offset. The reply is the offset that is saved now.

    What is older than the saved state changes nothing. A newer `version` starts again from any offset.
    `first` is the first entry that is left, if the log was trimmed.
    """

    rule = "coord.core.followers:save_follower"
    reply = int
    name: str
    offset: int
    version: int = 0
    state: bytes = b""
    missed: int = 0
    runner: str = ""
    first: int = 0


class ReadFollower(Command, frozen=True):
    """Return the saved state of a follower."""

    rule = "coord.core.followers:read_follower"
    reply = FollowerState
    reads_only = True
    name: str


class LeadFollower(Command, frozen=True):
    """Become the runner of a follower for a lease, unless another process is; return its state."""

    rule = "coord.core.followers:lead_follower"
    reply = FollowerState
    name: str
    runner: str
    lease_ms: int
    process: Process | None = None
    """The process of the runner, which shows that it has died before its lease ends."""


class FailFollower(Command, frozen=True):
    """Note why a follower failed; "" notes that it goes on."""

    rule = "coord.core.followers:fail_follower"
    reply = bool
    name: str
    error: str


class ForgetFollower(Command, frozen=True):
    """Forget a follower and its state, unless a process runs it. The reply is whether there was one."""

    rule = "coord.core.followers:forget_follower"
    reply = bool
    name: str


class RebuildFollower(Command, frozen=True):
    """Let a follower be computed again: from the first entry, or from where a trimmed log allows it.

    The reply is the offset after which it reads again. `first` is as in `SaveFollower`.
    """

    rule = "coord.core.followers:rebuild_follower"
    reply = int
    name: str
    version: int
    first: int = 0


class ListFollowers(Command, frozen=True):
    """Return all followers by name."""

    rule = "coord.core.followers:list_followers"
    reply = list[FollowerInfo]
    reads_only = True


def save_follower(tx: Transaction, command: SaveFollower, now: int) -> int:
    """Move a follower forwards, with its state."""
    if len(command.state) > STATE_BYTES_MAX:
        raise LimitReached(
            f"the state of follower {command.name} has {len(command.state)} bytes; "
            f"the limit is {STATE_BYTES_MAX}"
        )
    before = tx.get(keys.cursor(command.name), Cursor) or Cursor()
    _check_version(command.name, before, command.version)
    _check_runner(command.name, before, command.runner, now)
    if command.version == before.version:
        same = command.offset == before.offset and command.state == before.state
        if same or command.offset < before.offset:
            return before.offset
    saved = msgspec.structs.replace(
        before,
        offset=command.offset,
        at_ms=now,
        version=command.version,
        state=command.state,
        missed=command.missed,
        error="",
        failed_ms=0,
    )
    if command.first:
        _keep_base(tx, command, before)
    tx.put(keys.cursor(command.name), saved)
    return saved.offset


def _keep_base(tx: Transaction, command: SaveFollower, before: Cursor) -> None:
    """Keep the oldest state that we have after which no entry is missing."""
    key = keys.cursor_base(command.name)
    base = tx.get(key, CursorBase)
    if base is not None and _begins(base, command.version, command.first):
        return
    kept = before if _begins(before, command.version, command.first) else command
    tx.put(key, CursorBase(kept.offset, kept.version, kept.state, kept.missed))


def _begins(state: Cursor | CursorBase, version: int, first: int) -> bool:
    """Whether a follower of this version can be computed from a state: it has read what was trimmed."""
    return state.version == version and state.offset >= first - 1


def rebuild_follower(tx: Transaction, command: RebuildFollower, now: int) -> int:
    """Go back to the state from which everything that is left can be read again."""
    before = tx.get(keys.cursor(command.name), Cursor)
    if before is None:
        return 0
    _check_runner(command.name, before, "", now)
    base = tx.get(keys.cursor_base(command.name), CursorBase)
    if not command.first:
        _forget(tx, command.name)
        return 0
    if base is not None and _begins(base, command.version, command.first):
        again = msgspec.structs.replace(before, offset=base.offset, state=base.state, missed=base.missed)
        tx.put(keys.cursor(command.name), again)
        return base.offset
    if before.version == command.version:
        return before.offset  # no older state is left: this one is where it begins
    _forget(tx, command.name)
    return 0


def _forget(tx: Transaction, name: str) -> None:
    tx.delete(keys.cursor(name))
    if tx.get(keys.cursor_base(name), CursorBase) is not None:
        tx.delete(keys.cursor_base(name))


def read_follower(tx: Transaction, command: ReadFollower, _now: int) -> FollowerState:
    """Return where a follower goes on."""
    return _state(tx.get(keys.cursor(command.name), Cursor) or Cursor(), leads=False)


def lead_follower(tx: Transaction, command: LeadFollower, now: int) -> FollowerState:
    """Give a follower to a process, unless another one has it."""
    before = tx.get(keys.cursor(command.name), Cursor) or Cursor()
    if before.runner not in ("", command.runner) and now < before.until_ms and not _has_died(tx, before):
        return _state(before, leads=False)
    led = msgspec.structs.replace(
        before, runner=command.runner, until_ms=now + command.lease_ms, process=command.process
    )
    tx.put(keys.cursor(command.name), led)
    return _state(led, leads=True)


def fail_follower(tx: Transaction, command: FailFollower, now: int) -> bool:
    """Note an error of a follower; the same one again changes nothing."""
    before = tx.get(keys.cursor(command.name), Cursor) or Cursor()
    error = command.error[:ERROR_CHARS_MAX]
    if error == before.error:
        return False
    tx.put(
        keys.cursor(command.name),
        msgspec.structs.replace(before, error=error, failed_ms=now if error else 0),
    )
    return True


def forget_follower(tx: Transaction, command: ForgetFollower, now: int) -> bool:
    """Delete the record of a follower."""
    before = tx.get(keys.cursor(command.name), Cursor)
    if before is None:
        return False
    _check_runner(command.name, before, "", now)
    _forget(tx, command.name)
    return True


def list_followers(tx: Transaction, _command: ListFollowers, now: int) -> list[FollowerInfo]:
    """Return all followers; a runner whose lease has expired is none."""
    found = tx.scan(keys.CURSOR_PREFIX, limit=FOLLOWERS_MAX)
    tx.prefetch(*(each.key for each in found))
    return [
        FollowerInfo(
            keys.parts(each.key)[1],
            cursor.offset,
            cursor.at_ms,
            cursor.version,
            len(cursor.state),
            cursor.missed,
            cursor.runner if now < cursor.until_ms else "",
            cursor.error,
            cursor.failed_ms,
        )
        for each in found
        if (cursor := tx.get(each.key, Cursor)) is not None
    ]


def _has_died(tx: Transaction, cursor: Cursor) -> bool:
    """Whether the runner is proven dead, so that nobody waits for the end of its lease."""
    return cursor.process is not None and tx.evidence(cursor.process)[0].life is ProcessState.DEAD


def _state(cursor: Cursor, *, leads: bool) -> FollowerState:
    return FollowerState(cursor.offset, cursor.version, cursor.state, cursor.missed, leads, cursor.runner)


def _check_version(name: str, before: Cursor, version: int) -> None:
    if version < before.version:
        raise Unsupported(
            f"a newer coord runs follower {name}: version {before.version}, and this one is {version}",
            hint="upgrade coord on this machine",
        )


def _check_runner(name: str, before: Cursor, runner: str, now: int) -> None:
    if before.runner not in ("", runner) and now < before.until_ms:
        raise Denied(f"follower {name} is run by {before.runner}", hint="coord follow list shows all runners")
