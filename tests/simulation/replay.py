"""Runs one seed again and tells all of it: `python -m tests.simulation.replay [locks|work] SEED`."""

import sys

from tests.linearizability.ledger import Violation
from tests.simulation.lock_world import LockWorld
from tests.simulation.plan_world import PlanWorld
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import World

COMMAND = ".venv/bin/python -m tests.simulation.replay"
WORLDS: dict[str, type[Scheduler]] = {"locks": LockWorld, "work": PlanWorld}


class Failed(AssertionError):
    """A seed found something."""


def run_seed(seed: int) -> World:
    """Run a seed; a failure says how to see it again."""
    world = World(seed)
    _run(world, f"{COMMAND} {seed}")
    return world


def run_lock_seed(seed: int) -> LockWorld:
    """Run a seed of sessions, locks and messages; a failure says how to see it again."""
    world = LockWorld(seed)
    _run(world, f"{COMMAND} locks {seed}")
    return world


def run_plan_seed(seed: int) -> PlanWorld:
    """Run a seed of a plan and those who carry it out; a failure says how to see it again."""
    world = PlanWorld(seed)
    _run(world, f"{COMMAND} work {seed}")
    return world


def _run(world: Scheduler, command: str) -> None:
    try:
        world.run()
    except Violation as broken:
        raise Failed(f"seed {world.seed}: {broken}\n\nsee it again:  {command}") from None
    except Exception as error:
        raise Failed(f"seed {world.seed}: {error!r}\n\nsee it again:  {command}") from error


def main(arguments: list[str]) -> int:
    kind = WORLDS.get(arguments[0], World) if arguments else World
    seeds = arguments if kind is World else arguments[1:]
    if len(seeds) != 1 or not seeds[0].isdecimal():
        sys.stderr.write(f"{__doc__}\n")
        return 2
    world = kind(int(seeds[0]))
    try:
        world.run()
    except Violation as broken:
        summary, code = f"BROKEN: {broken}", 1
    else:
        observer = world.observer
        summary = f"all well: {len(observer.ops)} operations, {observer.store.seen.offset} entries"
        code = 0
    sys.stdout.write("\n".join([str(world.plan), *world.trace, summary, ""]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
