"""Real processes drain a plan, some of them are killed: every task comes to one accepted result."""

from collections import Counter
from typing import Any

import pytest

from coord.core.plans.commands import NewTask
from tests.conftest import SOAK
from tests.support.process_group import PATIENCE_S, LogReader, ProcessGroup, release
from tests.support.programs.client import connect_as

TASKS = 2_000 if SOAK else 120
PROCESSES = (8, 32) if SOAK else (8,)
KILLS = 24 if SOAK else 6
CHAINS = 40
"""So many tasks are ready at first; each of the others waits for the one so many before it."""
LEASE_S = 2.0
"""What a killed worker had comes back after it; also a slow worker may lose its task, and is refused."""
RETRIES = 100


def plan(tasks: int = TASKS) -> list[NewTask]:
    names = [f"t{number:04d}" for number in range(tasks)]
    return [
        NewTask(task_id=name, depends_on=(names[at - CHAINS],) if at >= CHAINS else (), retries_max=RETRIES)
        for at, name in enumerate(names)
    ]


def check_log(log: LogReader, tasks: int = TASKS) -> dict[str, int]:
    """One accepted result each, and none begun before what it depends on; return their generations."""
    done: dict[str, int] = {}
    for event in log.read():
        name = event.get("task", "")
        if event["event"] == "task.claimed":
            assert name not in done, f"{name} was claimed after its result"
            number = int(name[1:])
            assert number < CHAINS or f"t{number - CHAINS:04d}" in done, f"{name} was claimed too early"
        elif event["event"] == "task.completed":
            assert name not in done, f"{name} was done twice"
            done[name] = event["generation"]
    assert len(done) == tasks
    return done


@pytest.mark.timeout(3600 if SOAK else 400)
@pytest.mark.parametrize("processes", PROCESSES)
def test_a_plan_is_drained(group: ProcessGroup, processes: int, record_property: Any) -> None:
    """Issue 4, Proof: kill -9 or not, no task is lost, none is done twice, none before its dependencies.

    PRB-8, CLM-15.
    """
    book = group.folder / "book"
    with connect_as(group.options("planner", own_pid=False)) as client:
        client.add_tasks(plan())
        more = {
            "processes": processes,
            "kills": KILLS,
            "tasks": TASKS,
            "book": str(book),
            "lease_s": LEASE_S,
            "doom": str(group.folder / "doom"),
        }
        (member,) = group.start("drainer", [group.options("", more)])
        release([member])
        assert member.receive(within_s=PATIENCE_S * (50 if SOAK else 1.5)) == "end"
        seconds = member.receive()
        record_property("tasks_per_s", TASKS / seconds)
        print(f"{processes} processes: {TASKS / seconds:.0f} tasks/s")  # noqa: T201 - shown with -s
        generations = check_log(group.log)
        assert max(generations.values()) > 1, "what the killed had in hand was done by others"
        tasks = client.task_list()
        assert Counter(task.state for task in tasks) == {"done": TASKS}
        answers = Counter(book.read_text().split())
        assert set(answers.values()) == {1}, "a result was accepted twice"
        assert TASKS - KILLS <= len(answers) <= TASKS
        for task in (tasks[0], tasks[-1]):
            assert client.task_state(task.task_id).result is not None
