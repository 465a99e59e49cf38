"""What one seed of a lock run is like."""

import random
from dataclasses import dataclass

from tests.simulation.resources import BRACES, RESOURCES
from tests.simulation.setting import BUSY, CALM, ROUGH, STORM, Setting, Weather

BREEZE = Weather(0.3, 0.004, 0.004, 0.0005, 0.004, 0.008, 0.004, 0.0008, 0.01, 0.003)
"""A command about locks calls its store often: at ROUGH few of them come to an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSetting(Setting):
    """The setting of a run with sessions, locks and messages."""

    resources: tuple[str, ...]
    ttls_ms: tuple[int, ...]
    patience_ms: tuple[int, ...]
    sub_agents: float
    mortality: float


def draw_lock_setting(chance: random.Random) -> LockSetting:
    """The setting that belongs to a seed."""
    few = chance.sample(RESOURCES, chance.randint(2, 5))
    return LockSetting(
        tenant="local",
        processes=chance.randint(2, 4),
        agents=chance.randint(3, 10),
        steps=chance.randint(120, 320),
        clock=chance.choice(("server", "hosts")),
        weather=chance.choice((CALM, BUSY, BREEZE, BREEZE, BREEZE, ROUGH, STORM)),
        commit_bytes=8 << 20,
        futures=chance.choice((0.0, 0.3, 0.9)),
        resources=tuple(chance.choice((few, few, [*RESOURCES, BRACES]))),
        ttls_ms=chance.choice(((0,), (5_000, 20_000), (20_000, 60_000, 400_000))),
        patience_ms=chance.choice(((10_000, 60_000), (100_000,), (20_000, 600_000))),
        sub_agents=chance.choice((0.0, 0.06, 0.15)),
        mortality=chance.choice((0.005, 0.02, 0.05)),
    )
