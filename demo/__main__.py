"""`python -m demo`: six agents carry out a plan despite planned accidents, and the log proves it."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import coord
from demo import plan
from demo.author import Broken
from demo.conductor import Conductor, Outcome
from demo.ending import print_landing, print_lineage, print_losses, print_proof, print_report
from demo.git_act import GitAct, git
from demo.hub import page_link, serving
from demo.screen import screen_for_stdout
from demo.stage import Part, Piece, Stage

EXAMPLE = "example:\n  python -m demo --pace 5 --wait"


def factor(text: str) -> float:
    """Return how much slower the agents are to work."""
    value = float(text)
    if not 1 <= value <= 20:
        raise ValueError
    return value


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="Six agents of three kinds carry out a plan on four tracks in a fresh repository. Some "
        "are killed, some come back as zombies, two want one file and two block each other; then three work "
        "in git worktrees, one's shell writes over another's file, and one merges too late. At the end the "
        "log proves that every task has exactly one accepted result, and main all that was accepted.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--keep", action="store_true", help="keep the repository, and say where it is")
    parser.add_argument(
        "--wait", action="store_true", help="begin and end when you press enter, so that you see the page"
    )
    parser.add_argument(
        "--pace", type=factor, default=1.0, metavar="N", help="let the agents take N times as long (1 to 20)"
    )
    parser.add_argument("--html", metavar="FILE", help="write the page and the log of the run into one file")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for name in [name for name in os.environ if name.startswith(("COORD_", "GIT_"))]:
        del os.environ[name]  # the demo uses its own store and repository, never the caller's
    os.environ["COORD_HUB"] = "off"  # nor a hub of the caller; its own one comes later
    folder = Path(tempfile.mkdtemp(prefix="coord-demo-"))
    try:
        # Sessions in the user's own store would be told to the user's agents in other repositories.
        with tempfile.TemporaryDirectory(prefix="coord-demo-state-") as os.environ["XDG_STATE_HOME"]:
            return show(folder, args)
    except KeyboardInterrupt:
        print("\nInterrupted; all workers are stopped.")
        return 130
    finally:
        if args.keep:
            print(f"\nThe repository is kept: {folder} (there: coord --project {plan.PROJECT} plan show)")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def show(folder: Path, args: argparse.Namespace) -> int:
    stage, pace = prepare(folder), plan.pace_of(args.pace)
    url = f"sqlite://{folder}/.git/coord/store/coord.db"
    print(
        f"{len(plan.AGENTS)} agents of {len(plan.KINDS)} kinds are about to carry out "
        f"{len(stage.pieces)} tasks on four tracks (demo/plan.yaml).\n"
        f"Some will be killed with kill -9 in the middle of their work, and others replace them. Some\n"
        f"will be frozen until their lease of {pace.lease_s:.0f} s is gone and somebody else has their\n"
        f"task; then they go on, know nothing, and hand in work that must no longer count. Two want\n"
        f"{plan.HOT_FILE} at once, and two each want what the other holds. In the end every task\n"
        f"must have exactly one accepted result. Then three agents bring their work into main with\n"
        f"real git: the shell of one writes over another's file, and one merges when it is too late.\n"
    )
    with serving(folder) as address:
        print(f"They share one hub at {address} (coord serve). Watch and steer them; the link works once:\n")
        print(f"  {page_link(folder)}\n", flush=True)
        if args.wait:
            wait("begin")
        outcome, act = play(folder, url, stage, pace)
        if args.wait:
            wait("end the hub and its page")
    if outcome.trouble:
        return fail(outcome, folder / "workers.err")
    print_lineage(url, stage.pieces, outcome)
    print_losses(outcome)
    print_landing(act.landing)
    code = print_proof(url, folder, outcome, stage, act.landing)
    if not code:
        print_report(folder, os.path.abspath(args.html) if args.html else "")
    return code


def wait(what: str) -> None:
    """Wait for enter; without a person, for the end of the input."""
    with suppress(EOFError):
        input(f"Press enter to {what}.")


def play(folder: Path, url: str, stage: Stage, pace: plan.Pace) -> tuple[Outcome, GitAct]:
    """Let the agents work, then bring their work into main."""
    with screen_for_stdout() as screen:
        conductor = Conductor(folder, url, stage, screen, pace)
        outcome = conductor.run()
        screen.show(stage)
        act = GitAct(folder, stage, screen)
        if not outcome.trouble:
            try:
                act.run()
            except Broken as broken:
                outcome.trouble.append(str(broken))
    return outcome, act


def prepare(folder: Path) -> Stage:
    """Create a repository, load the plan into its store, and return the stage."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    program = [sys.executable, "-m", "coord.transports.cli.main", "--session", "director"]
    load = [*program, "--project", plan.PROJECT, "plan", "load", str(plan.PLAN_FILE)]
    subprocess.run(load, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with coord.connect(cwd=str(folder), session="director", project=plan.PROJECT) as client:
        tasks = client.task_list()
    pieces = {}
    for task in tasks:
        also = task.requirements.get("also")
        files = (*task.files, *([f"file:{also}"] if also else []))
        pieces[task.task_id] = Piece(task.task_id, tuple(task.depends_on), files)
    return Stage({name: Part(name, kind) for name, kind in plan.AGENTS.items()}, pieces)


def fail(outcome: Outcome, errors: Path) -> int:
    print("\nFAILED, the demo broke: " + "; ".join(outcome.trouble))
    print(errors.read_text(errors="replace")[-2000:])
    return 1


if __name__ == "__main__":
    sys.exit(main())
