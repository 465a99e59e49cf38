"""Runs one seed again and tells all of it: `python -m tests.simulation.replay SEED` in the project's root."""

import sys

from tests.linearizable.ledger import Violation
from tests.simulation.world import World

COMMAND = ".venv/bin/python -m tests.simulation.replay"


class Failed(AssertionError):
    """A seed found something."""


def run_seed(seed: int) -> World:
    """Run a seed; a failure says how to see it again."""
    world = World(seed)
    try:
        world.run()
    except Violation as broken:
        raise Failed(f"seed {seed}: {broken}\n\nsee it again:  {COMMAND} {seed}") from None
    except Exception as error:
        raise Failed(f"seed {seed}: {error!r}\n\nsee it again:  {COMMAND} {seed}") from error
    return world


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0].isdecimal():
        sys.stderr.write(f"{__doc__}\n")
        return 2
    world = World(int(arguments[0]))
    try:
        world.run()
    except Violation as broken:
        verdict, code = f"BROKEN: {broken}", 1
    else:
        ledger = world.observer.ledger
        verdict = f"all well: {len(world.observer.ops)} operations, {ledger.head} entries"
        code = 0
    sys.stdout.write("\n".join([str(world.plan), *world.trace, verdict, ""]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
