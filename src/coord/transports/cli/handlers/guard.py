"""`coord guard`: run a command while holding locks. `coord lock --hold`: hold them until interrupted."""

import os
import signal
import stat
import threading
from contextlib import suppress
from typing import Any

import msgspec

from coord.core.errors import LockLost, NotFound, Refused
from coord.core.locks.commands import LockReply, LockWatch, Outcome
from coord.sdk.client.blocks import LEASE_S, LockBlock
from coord.sdk.client.client import Client
from coord.transports import arguments, exit_codes
from coord.transports.cli import signals
from coord.transports.cli.handlers import locks
from coord.transports.cli.output import Answer, failed, say, show
from coord.transports.cli.process import STANDARD_INPUT, Child, NotStarted
from coord.transports.cli.release import release_program
from coord.transports.cli.waiting.notices import Notices, announcing_messages, find_notices
from coord.transports.cli.watchdog import Watchdog

ENDING = (*signals.ENDING, signal.SIGINT)
LOOK_S = 0.5
"""How long guard waits at once: a signal that came just before the wait is noticed after it."""


class GuardArgs(locks.LockArgs, frozen=True):
    """The arguments of `coord guard`."""

    command: list[str]


def guard(client: Client, args: GuardArgs) -> Answer | int:
    """Run a command under locks; return its exit code, or a refusal if it did not start."""
    over, notices = threading.Event(), find_notices(os.environ)
    held = client.lock(
        *locks.resources_of(args),
        command_id=args.command_id,
        on_lost=lambda error: _lost(over, notices, error),
        on_asked=_warn,
    )
    with _watchdog(client, held, args) as watchdog:
        refused = take(client, held, args)
        if refused is not None:
            return refused
        with announcing_messages(client, notices):
            return _run(args.command, watchdog, held, over)


def keep_locked(client: Client, args: locks.LockArgs, **more: Any) -> Answer | int:
    """Hold locks until a signal or the end of the input; return 1 if one is lost."""
    over, notices = threading.Event(), find_notices(os.environ)
    held = client.lock(
        *locks.resources_of(args),
        command_id=args.command_id,
        on_lost=lambda error: _lost(over, notices, error),
        on_asked=_warn_holder,
        on_waiter=lambda state: say(f"coord: {state.waiters[0]} waits for {state.resource}"),
    )
    with _watchdog(client, held, args):
        refused = take(client, held, args, **more)
        if refused is not None:
            return refused
        with signals.handling(ENDING, lambda _: over.set()), signals.asking_nobody():
            try:
                with announcing_messages(client, notices):
                    show(locks.answer_of(LockReply(Outcome.GRANTED, held.locks)))
                    _end_with_input(over)
                    _wait_for(over)
            finally:
                held.end(failed=True)
    exit_code = _exit_code_with_locks(held, exit_codes.OK)
    if exit_code == exit_codes.OK:
        say(f"Lock released ✓ {', '.join(lock.resource for lock in held.locks)}")
    return exit_code


def _watchdog(client: Client, held: LockBlock, args: locks.LockArgs) -> Watchdog:
    """Return the watchdog of locks that are asked for next: a grant must never be without one."""
    return Watchdog(*release_program(client, client.resolve(locks.resources_of(args)), held.use))


def _end_with_input(over: threading.Event) -> None:
    """Set an event at the end of the standard input; a file or /dev/null says nothing by its end."""

    def read() -> None:
        with suppress(OSError):  # in the background a terminal cannot be read
            while os.read(STANDARD_INPUT, 4096):
                pass
            over.set()

    with suppress(OSError):
        mode = os.fstat(STANDARD_INPUT).st_mode
        if os.isatty(STANDARD_INPUT) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            threading.Thread(target=read, name="coord-input", daemon=True).start()


def take(client: Client, held: LockBlock, args: locks.LockArgs, **more: Any) -> Answer | None:
    """Take the locks of a block as the flags say; return the refusal, or None if it has them."""
    asked = args if args.ttl_s is not None else msgspec.structs.replace(args, ttl_s=LEASE_S)
    reply = locks.take(client, locks.resources_of(args), asked, args.mode, use=held.use, **more)
    if not reply.ok:
        return locks.answer_of(reply)
    held.keep(reply.locks)
    return None


def _run(command: list[str], watchdog: Watchdog, held: LockBlock, over: threading.Event) -> Answer | int:
    """Run a command, forward signals to it, and always release the locks."""
    early: list[int] = []
    child: Child | None = None

    def pass_on(signum: int) -> None:
        if child is None:
            early.append(signum)
        else:
            child.send(signum)

    with signals.handling(signals.PASSED_ON, pass_on):
        try:
            child = Child(command, group=watchdog.group, on_end=over.set)
            for signum in early:
                child.send(signum)
            _wait_for(over)  # it has ended, or a lock is lost
        except NotStarted as error:
            return failed(error.failure("the locks are released; check the spelling of the command"))
        finally:
            if child is not None and not child.ended.is_set():
                child.stop()
            held.end(failed=True)
    return _exit_code_with_locks(held, child.exit_code)


def _wait_for(over: threading.Event) -> None:
    """Wait for an event. Python runs the handler of a signal that came just before a wait only after it."""
    while not over.wait(LOOK_S):
        pass


def _lost(over: threading.Event, notices: Notices, error: Exception) -> None:
    """End the wait for the command or for the user, and give a notice."""
    over.set()
    notices.send(f"a lock was lost: {error}")


def _warn(state: LockWatch) -> None:
    say(f"coord: {state.asked_by} needs {state.resource}: the command is stopped in {_left(state)}")


def _warn_holder(state: LockWatch) -> None:
    say(f"coord: {state.asked_by} needs {state.resource}: the lock ends in {_left(state)}")


def _left(state: LockWatch) -> str:
    return arguments.span(state.ends_in_ms / 1000)


def _exit_code_with_locks(held: LockBlock, exit_code: int) -> int:
    """Return the exit code; a lock that was lost while the command ran is a failure."""
    try:
        held.check()
    except LockLost as error:
        if isinstance(error.__cause__, Refused | NotFound):
            say(f"coord: a lock was lost while the command ran: {error.message}")
            return exit_codes.REFUSED
        say(f"coord: the locks may still be held: {error.message}")
    return exit_code
