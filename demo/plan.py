"""The plan of a run, drawn from its seed: the tasks, the workers, and which accident happens when."""

import random
from collections.abc import Iterator
from enum import StrEnum

TENANT = "local"
PROJECT = "lighthouse"
LEASE_S = 1.5
HALF_S = (0.25, 0.6)
"""Half of the work on a task takes about this long; the lease is renewed between the halves."""

TASKS_LEAST, TASKS_MOST = 16, 200
WORKERS_LEAST, WORKERS_MOST = 4, 16

NAMES = ["ada", "bela", "cleo", "dov", "ezra", "fay", "gus", "hana"]
NAMES += ["ivo", "jun", "kim", "leo", "mia", "nils", "olga", "pia"]
WORK = ("draw", "build", "paint", "test", "write-up")
THINGS = ("lamp", "stairs", "door", "roof", "pier", "bell", "boat", "wall")


class Fate(StrEnum):
    """What may happen to a worker that holds a claim."""

    KILLED_WORKING = "killed while working"
    KILLED_SUBMITTING = "killed while submitting"
    FROZEN_UNTIL_TAKEN = "frozen until another holds its task"
    FROZEN_UNTIL_DONE = "frozen until another has finished its task"

    @property
    def freezes(self) -> bool:
        return self in (Fate.FROZEN_UNTIL_TAKEN, Fate.FROZEN_UNTIL_DONE)


def task_ids(count: int) -> list[str]:
    """Return ids of the track grammar: A-001-draw-lamp, A-002-draw-stairs, … B-001-build-lamp, …"""
    ids = []
    for number in range(count):
        track, place = divmod(number, len(THINGS))
        ids.append(f"{chr(ord('A') + track)}-{place + 1:03d}-{WORK[track % len(WORK)]}-{THINGS[place]}")
    return ids


def sessions(name: str) -> Iterator[str]:
    """Yield the session ids of one worker and of those who replace it: ada-1, ada-2, …"""
    number = 0
    while True:
        number += 1
        yield f"{name}-{number}"


def accidents(seed: int, tasks: int) -> dict[int, Fate]:
    """Return which fate awaits whoever is the n-th to be half-way through a task.

    Every task is half-way at least once, and each accident brings one more; so all of these are met.
    """
    rng = random.Random(seed)
    each = max(4, tasks // 10)
    fates = [Fate.KILLED_WORKING] * (each - 1) + [Fate.KILLED_SUBMITTING]
    fates += [Fate.FROZEN_UNTIL_TAKEN, Fate.FROZEN_UNTIL_DONE] * (each // 2)
    rng.shuffle(fates)
    marks = sorted(rng.sample(range(2, tasks - 2), len(fates)))
    return dict(zip(marks, fates, strict=True))
