"""How much a run measures: enough to trust (full), enough to look (quick), enough to run at all (tiny)."""

from typing import NamedTuple


class Scale(NamedTuple):
    """The sizes and times of one run."""

    name: str
    repetitions: int
    """Of each measurement; the first, shorter one is a warm-up and does not count."""
    seconds: float
    """Of each repetition of a batch or closed-loop measurement."""
    open_seconds: float
    batches: tuple[int, ...]
    callers: tuple[int, ...]
    held_claims: int
    past_entries: int
    generations: int
    live_claims: int
    finished_tasks: int
    processes: int
    """How often a fresh process is started to time an import."""
    calibration_seconds: float
    contenders: int
    """How many processes want one lock."""
    handoffs: int
    """How often each of them gets it."""
    held_locks: tuple[int, ...]
    checks: int
    wakes: int
    commands: int
    """How often a whole command is run."""
    workers: tuple[int, ...]
    """How many drain a queue."""
    drained: int
    waiting: tuple[int, ...]
    """Among how many tasks that wait the next one is taken."""
    nexts: int
    plan_tasks: int
    tenants: int
    """How many claim side by side."""
    broad_locks: tuple[int, ...]
    """Among how many locks a glob is asked for."""
    broad_tasks: int


_LOCKS_FULL = (8, 400, (100, 10_000, 100_000), 1000, 200, 20)
_LOCKS_QUICK = (8, 50, (100, 10_000), 200, 30, 5)
_LOCKS_TINY = (2, 2, (10, 50), 5, 2, 1)

_QUEUE_FULL = ((1, 8), 1_000, (1_000, 100_000, 1_000_000), 200, 10_000, 4)
_QUEUE_QUICK = ((1, 8), 200, (1_000, 10_000), 50, 2_000, 4)
_QUEUE_TINY = ((1,), 6, (10, 20), 2, 30, 1)

_BROAD_FULL = ((1_000, 4_000, 20_000), 50_000)
_BROAD_QUICK = ((1_000, 4_000), 5_000)
_BROAD_TINY = ((20, 40), 30)

FULL = Scale(
    "full",
    5,
    0.6,
    8.0,
    (1, 128, 1000),
    (32, 512),
    10_000,
    1_000_000,
    100,
    10_000,
    100_000,
    10,
    0.2,
    *_LOCKS_FULL,
    *_QUEUE_FULL,
    *_BROAD_FULL,
)
QUICK = Scale(
    "quick",
    2,
    0.1,
    1.0,
    (1, 128, 1000),
    (32, 512),
    10_000,
    20_000,
    100,
    1_000,
    5_000,
    3,
    0.05,
    *_LOCKS_QUICK,
    *_QUEUE_QUICK,
    *_BROAD_QUICK,
)
TINY = Scale(
    "tiny", 1, 0.02, 0.1, (1, 8), (4,), 50, 200, 5, 20, 50, 1, 0.01, *_LOCKS_TINY, *_QUEUE_TINY, *_BROAD_TINY
)
SCALES = {scale.name: scale for scale in (FULL, QUICK, TINY)}
