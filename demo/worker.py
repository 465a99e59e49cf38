"""One worker: claims a task, works on it in two halves, submits, takes the next, until none is left.

It knows nothing of accidents. Half-way through each task it waits for a nod on stdin, so that the conductor
always finds it holding a claim; what happens to it then is a real signal. What it says goes to stdout.
"""

import random
import sys
import time

import msgspec

import coord
from demo.plan import HALF_S, LEASE_S, PROJECT, TENANT, task_ids

IDLE_S = 0.06


class Report(msgspec.Struct, omit_defaults=True):
    """One line that a worker says."""

    did: str
    task: str = ""
    generation: int = 0
    reason: str = ""
    current_generation: int = 0
    work_lost: bool = False


def say(did: str, task: str = "", generation: int = 0, **more) -> None:
    line = msgspec.json.encode(Report(did, task, generation, **more))
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def wait_for_nod() -> None:
    if not sys.stdin.readline():
        raise SystemExit("the conductor has gone")


def work(rng: random.Random) -> None:
    time.sleep(rng.uniform(*HALF_S))


def carry_out(tasks: coord.TaskCoordinator, session: str, task: str, generation: int, rng: random.Random):
    """Work on a task that was granted, and submit; whether the claim still counts is not ours to judge."""
    say("claimed", task, generation)
    work(rng)
    renewal = tasks.renew_lease(TENANT, PROJECT, task, session, generation)
    if not renewal.success:
        say("lost", task, generation, reason=renewal.reason.value)
        return
    say("half-way", task, generation)
    wait_for_nod()
    work(rng)
    say("submitting", task, generation)
    answer = tasks.submit_result(TENANT, PROJECT, task, session, generation, {"made by": session})
    say(
        "accepted" if answer.accepted else "refused",
        task,
        generation,
        reason=answer.reason.value,
        current_generation=answer.current_generation,
        work_lost=answer.work_lost,
    )


def run(url: str, agent: str, session: str, count: int, seed: int) -> None:
    rng = random.Random(f"{seed} {session}")
    left, waiting = task_ids(count), False
    with coord.TaskCoordinator.open(url) as tasks:
        while left:
            rng.shuffle(left)
            for task in list(left):
                reply = tasks.claim_task(TENANT, PROJECT, task, agent, session, LEASE_S)
                if reply.claim is not None:
                    waiting = False
                    carry_out(tasks, session, task, reply.claim.generation.generation, rng)
                    break
                if reply.reason == "DENIED_COMPLETED":
                    left.remove(task)
            else:
                if left and not waiting:
                    waiting = True
                    say("waiting")
                time.sleep(IDLE_S)
    say("finished")


if __name__ == "__main__":
    _, url_, agent_, session_, count_, seed_ = sys.argv
    run(url_, agent_, session_, int(count_), int(seed_))
