"""The page says of each task what the core says: it works out from the log what waits and what is blocked."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from coord.core.errors import CoordError
from coord.core.page.state import PageState
from coord.core.plans.commands import GetTasks, RetryTask, SkipTask, SplitTask
from coord.sdk.page.snapshot import replay
from tests.support.plan_harness import PlanHarness

SCRIPT = Path(__file__).with_name("compare_tasks.mjs")
NODE = shutil.which("node") or ""
PATIENCE_S = 60
WORDS = {"pending": "waiting", "in_progress": "in progress"}
"""States that the page calls otherwise."""
PLANS, STEPS = 6, 40


def act(plan: PlanHarness, chance: random.Random, number: int) -> None:
    """Do something with a plan; what is refused changes nothing."""
    names = [task.task_id for task in plan.engine.call(GetTasks("p")).tasks]
    if len(names) < 3 or chance.random() < 0.25:
        plan.add(f"t{number}", *chance.sample(names, min(len(names), chance.randrange(3))), retries_max=0)
        return
    name = chance.choice(names)
    doing = chance.choice(("take", "fail", "fail", "leave", "skip", "retry", "reset", "split"))
    if doing in ("take", "fail", "leave"):
        task = plan.ask().task
        if task is not None and doing == "take":
            plan.submit(task.task_id, generation=task.generation)
        elif task is not None and doing == "fail":
            plan.fail(task.task_id, generation=task.generation, final=chance.random() < 0.5)
        return
    commands = {
        "skip": SkipTask("local", "p", name),
        "retry": RetryTask("local", "p", name),
        "split": SplitTask("local", "p", name, 2),
    }
    try:
        if doing == "reset":
            plan.reset(name)
        else:
            plan.engine.call(commands[doing])
    except CoordError:
        pass


@pytest.mark.skipif(not NODE, reason="node is not installed: tools/setup agents")
def test_tasks_wait_and_are_blocked_as_in_the_core() -> None:
    snapshots, expected = [], []
    for seed in range(PLANS):
        plan, chance, state = PlanHarness(), random.Random(seed), PageState()
        store = plan.database.log("local")
        for number in range(STEPS):
            act(plan, chance, number)
            if number % 4 == 3:
                replay(store, state, store.load(()).read_point.offset)
                snapshots.append(msgspec.to_builtins(state))
                found = plan.engine.call(GetTasks("p", limit=10_000)).tasks
                expected.append({each.task_id: WORDS.get(each.state, each.state) for each in found})
    done = subprocess.run(
        [NODE, str(SCRIPT)],
        input=json.dumps(snapshots),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert {"blocked", "waiting", "ready", "done"} <= {word for each in expected for word in each.values()}
    assert json.loads(done.stdout) == expected
