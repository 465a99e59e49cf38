"""`coord guard`: run a command while holding locks."""

from coord.core.errors import LockLost, NotFound, Refused
from coord.sdk.client.blocks import LockBlock
from coord.sdk.client.client import Client
from coord.transports import exit_codes
from coord.transports.cli import signals
from coord.transports.cli.handlers import locks
from coord.transports.cli.output import Answer, failed, say
from coord.transports.cli.process import Child, NotStarted

LOOK_S = 0.5
"""How often guard checks for a lost lock; renewals are far less frequent."""


class GuardArgs(locks.LockArgs, frozen=True):
    """The arguments of `coord guard`."""

    command: list[str]


def guard(client: Client, args: GuardArgs) -> Answer | int:
    """Run a command under locks; return its exit code, or a refusal if it did not start."""
    resources = locks.resources_of(args.resources)
    reply = locks.take(client, resources, args, args.mode)
    if not reply.ok:
        return locks.answer_of(reply)
    held = client.lock(*resources)
    held.keep(reply.locks)
    return _run(args.command, held)


def _run(command: list[str], held: LockBlock) -> Answer | int:
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
            child = Child(command)
            for signum in early:
                child.send(signum)
            _attend(child, held)
        except NotStarted as error:
            return failed(error.failure("the locks are released; check the spelling of the command"))
        finally:
            if child is not None and not child.ended.is_set():
                child.stop()
            held.end(failed=True)
    return _exit_code_with_locks(held, child.exit_code)


def _attend(child: Child, held: LockBlock) -> None:
    """Wait until the command ends; stop it if a lock is lost."""
    while not child.ended.wait(LOOK_S):
        if held.lost:
            child.stop()


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
