"""After the storm: whatever happened before, every task can still be carried to one accepted result."""

from typing import TYPE_CHECKING, Any

from coord.core.commands import Command
from coord.core.errors import Unavailable
from coord.core.tasks.commands import ClaimTask, GetTaskState, ResetTask, SubmitResult
from coord.core.tasks.types import ClaimReason, ClaimState
from tests.linearizability.ledger import require
from tests.simulation.agents import Ask
from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.world import World

SESSION = "finisher"
LEASE_MS = 30_000
WAIT_MS = 120_000
TRIES = 30


def finish(world: "World") -> None:
    """Carry every task to done with one fresh process in good weather."""
    process = Process(world, "last")
    for task in world.tasks:
        _carry_to_done(world, process, task)
        require(world.observer.ledger.state(task).phase == "done", "not done in the log:", task)


def _carry_to_done(world: "World", process: Process, task: str) -> None:
    project, name = task.split("/")
    names = (world.plan.tenant, project, name)
    for _ in range(TRIES):
        state = _call(world, process, GetTaskState(*names))
        if state.completed:
            return
        claim = ClaimTask(*names, SESSION, SESSION, LEASE_MS)
        reply = _call(world, process, claim)
        if reply.success:
            generation = int(reply.claim.generation)
            submit = SubmitResult(*names, SESSION, generation, b'{"by":"last"}', f"wp-{task}-last")
            accepted = _call(world, process, submit)
            require(accepted.accepted, "the only holder was refused:", accepted)
        elif reply.reason is ClaimReason.DENIED_LIMIT_GENERATIONS:
            _call(world, process, ResetTask(*names, "it went round too often"))
        elif state.claim is not None and state.claim.state is ClaimState.ACTIVE:
            _wait_until(world, process, state.claim.expires_ms)
        else:
            _wait_until(world, process, world.wall_ms(process) + WAIT_MS)
    require(False, "cannot be carried to done:", task)


def _call(world: "World", process: Process, command: Command) -> Any:
    """Ask as everybody else does, so that every answer is checked; a log from the future is accepted."""
    reply = world.ask_now(process, Ask(command))
    if isinstance(reply, Unavailable) and "ahead of the clock" in reply.message:
        process.engine.accept_clock()
        reply = world.ask_now(process, Ask(command))
    require(not isinstance(reply, Exception), "refused in good weather:", command, repr(reply))
    return reply


def _wait_until(world: "World", process: Process, ms: int) -> None:
    world.pass_time(max(0, ms - world.wall_ms(process)) * 1000)
