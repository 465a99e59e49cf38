"""What one seed of a run with a plan is like: the tasks, what each depends on, and who may take it."""

import random
from dataclasses import dataclass

from coord.core.plans.commands import NewTask
from tests.simulation.lock_setting import BREEZE
from tests.simulation.setting import BUSY, CALM, MANY_AGENTS_EVERY, ROUGH, Setting

PROJECT, REPOSITORY = "p", "r"
FILES = tuple(f"file:f{number}.py" for number in range(6))
TRACKS, TYPES, NEEDS = ("", "", "A", "B"), ("", "", "ui", "db"), ("", "", "", "gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSetting(Setting):
    """The setting of a run with a plan."""

    tasks: dict[str, NewTask]
    agents_max: dict[str, int]
    leases_ms: tuple[int, ...]
    luck: float
    """How often work succeeds."""


def draw_plan_setting(seed: int, chance: random.Random) -> PlanSetting:
    """The setting that belongs to a seed."""
    many_agents = seed % MANY_AGENTS_EVERY == 0
    return PlanSetting(
        tenant="local",
        processes=chance.randint(2, 5),
        agents=200 if many_agents else chance.randint(3, 20),
        steps=chance.randint(1_200, 1_600) if many_agents else chance.randint(200, 600),
        clock=chance.choice(("server", "hosts")),
        weather=chance.choice((CALM, BUSY, BREEZE, BREEZE, ROUGH)),
        commit_bytes=8 << 20,
        futures=chance.choice((0.0, 0.3, 0.9)),
        tasks=_draw_tasks(chance, chance.randint(30, 60) if many_agents else chance.randint(4, 24)),
        agents_max={"B": chance.choice((2, 50))},
        leases_ms=chance.choice(((5_000, 20_000), (20_000, 60_000), (400_000,))),
        luck=chance.choice((0.5, 0.8, 0.95)),
    )


def _draw_tasks(chance: random.Random, count: int) -> dict[str, NewTask]:
    """Draw a plan: chains, fans and diamonds, since each depends on up to three of those before it."""
    tasks: dict[str, NewTask] = {}
    reach = chance.choice((2, 6, 60))
    filed = chance.choice((0.0, 0.3, 0.9))
    for number in range(count):
        before = list(tasks)[-reach:]
        needs = chance.choice(NEEDS)
        name = f"t{number:02d}"
        tasks[name] = NewTask(
            task_id=name,
            type=chance.choice(TYPES),
            track=chance.choice(TRACKS),
            needs=(needs,) if needs else (),
            priority=chance.choice((0, 0, 0, 1, 3, 9)),
            files=tuple(chance.sample(FILES, chance.randint(1, 2))) if chance.random() < filed else (),
            depends_on=tuple(
                sorted(chance.sample(before, min(len(before), chance.choice((0, 0, 1, 1, 2, 3)))))
            ),
            retries_max=chance.choice((0, 1, 3)),
            repository=REPOSITORY,
        )
    return tasks
