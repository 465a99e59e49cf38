"""`python -m demo`: workers race for tasks, die and come back as zombies; every task ends with one result."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from demo import plan
from demo.conductor import Conductor, Outcome
from demo.ending import print_lineage, print_proof, print_zombies
from demo.screen import screen_for_stdout

EXAMPLE = "example:\n  python -m demo --seed 7 --workers 12 --tasks 60 --keep"


def between(low: int, high: int):
    """Return a type for argparse: a whole number within bounds."""

    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
        return value

    return number


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="Workers race for tasks in a fresh SQLite store while some are killed and some come back "
        "as zombies; at the end the log proves that every task has exactly one accepted result.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    workers = between(plan.WORKERS_LEAST, plan.WORKERS_MOST)
    tasks = between(plan.TASKS_LEAST, plan.TASKS_MOST)
    parser.add_argument("--seed", type=int, help="draws the accidents; the same seed, the same plan")
    parser.add_argument("--workers", type=workers, default=8, metavar="N", help="worker processes (8)")
    parser.add_argument("--tasks", type=tasks, default=40, metavar="N", help="tasks to do (40)")
    parser.add_argument("--keep", action="store_true", help="keep the store, and say where it is")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    seed = random.randrange(1000) if args.seed is None else args.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="coord-demo-"))
    try:
        return show(folder, args.workers, args.tasks, seed)
    except KeyboardInterrupt:
        print("\nInterrupted; all workers are stopped.")
        return 130
    finally:
        if args.keep:
            print(f"\nThe store is kept: sqlite://{folder}/store.db")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def show(folder: Path, workers: int, tasks: int, seed: int) -> int:
    url = f"sqlite://{folder}/store.db"
    print(
        f"{workers} worker processes are about to race for {tasks} tasks in one SQLite store (seed {seed}).\n"
        f"Some will be killed with kill -9 in the middle of their work, and others replace them. Some will\n"
        f"be frozen until their lease of {plan.LEASE_S} s is gone and somebody else has their task; then\n"
        f"they go on, know nothing, and hand in work that must no longer count. In the end every task must\n"
        f"have exactly one accepted result.\n"
    )
    with screen_for_stdout() as screen:
        conductor = Conductor(url, folder / "workers.err", plan.NAMES[:workers], tasks, seed, screen)
        outcome = conductor.run()
        screen.show(conductor.stage)
    if outcome.trouble:
        return fail(outcome, folder / "workers.err")
    print_lineage(url, tasks, outcome)
    print_zombies(outcome)
    return print_proof(url, tasks, outcome, conductor.stage)


def fail(outcome: Outcome, errors: Path) -> int:
    print("\nTHE DEMO BROKE: " + "; ".join(outcome.trouble))
    print(errors.read_text(errors="replace")[-2000:])
    return 1


if __name__ == "__main__":
    sys.exit(main())
