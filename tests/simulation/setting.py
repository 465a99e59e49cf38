"""What one seed is like: how many take part, how time is told, and how bad the weather is."""

import random
from dataclasses import dataclass
from typing import Literal

MANY_AGENTS_EVERY = 20
"""Every so many seeds, hundreds of agents take part."""


@dataclass(frozen=True, slots=True)
class Weather:
    """How often each thing goes wrong at one call of a store."""

    interleave: float = 0.0
    pause: float = 0.0
    unavailable: float = 0.0
    cut_off: float = 0.0
    lost_before: float = 0.0
    lost_after: float = 0.0
    lost_late: float = 0.0
    kill: float = 0.0
    clock_jump: float = 0.0
    trim: float = 0.0


CALM = Weather()
BUSY = Weather(interleave=0.5, pause=0.005, clock_jump=0.004, trim=0.002)
ROUGH = Weather(0.25, 0.01, 0.01, 0.001, 0.01, 0.02, 0.01, 0.002, 0.01, 0.003)
STORM = Weather(0.3, 0.02, 0.05, 0.004, 0.05, 0.05, 0.03, 0.006, 0.02, 0.005)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How many take part, how time is told, and how bad the weather is."""

    tenant: str
    processes: int
    agents: int
    steps: int
    clock: Literal["server", "hosts", "given"]
    weather: Weather
    commit_bytes: int
    futures: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSetting(Setting):
    """The setting of a run with tasks."""

    tasks: int
    leases_ms: tuple[int, ...]
    limits: dict[str, int]


def draw(seed: int, chance: random.Random) -> TaskSetting:
    """The setting that belongs to a seed."""
    many_agents = seed % MANY_AGENTS_EVERY == 0
    limited = chance.random() < 0.5
    agents = chance.randint(200, 400) if many_agents else chance.randint(3, 30)
    limits = {
        "max_concurrent_claims": chance.choice((2, 5, 20, 1000)),
        "max_active_sessions": chance.choice((2, 6, 500)),
        "max_generations_per_task": chance.choice((4, 12, 1000)),
        "min_lease_duration_seconds": 1,
    }
    return TaskSetting(
        tenant="acme" if limited else "local",
        processes=chance.randint(2, 6),
        agents=agents,
        tasks=chance.randint(20, 60) if many_agents else chance.choice((1, 2, 4, 8, 16)),
        steps=chance.randint(3000, 4500) if many_agents else chance.randint(500, 1500),
        clock=chance.choice(("server", "hosts", "given")),
        weather=chance.choice((BUSY, ROUGH, ROUGH, STORM)),
        commit_bytes=chance.choice((8 << 20, 64_000)),
        futures=chance.choice((0.0, 0.3, 0.9)),
        leases_ms=chance.choice(((1_000, 5_000), (10_000, 30_000), (30_000, 600_000))),
        limits=limits if limited else {},
    )
