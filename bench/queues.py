"""The queue: `next` among how many, a plan, and fairness. Workers beside other queues: `bench/peers.py`."""

import statistics
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.figures import Figure, latency_ms
from bench.places import Places
from bench.repository import make_repository, open_client
from bench.scale import Scale
from coord import connect
from coord.core.plans.commands import AddTasks, NewTask
from coord.sdk.client.client import Client
from coord.sdk.plans.check import check_plan
from coord.sdk.plans.file import Plan
from coord.sdk.validation.tasks import new_task

LOG_SHAPE = ("memory", "files", "postgres-log")
LOG_SHAPE_MOST = 100_000
"""A store that keeps everything in memory is measured with fewer tasks."""
FILL = 1_000
FAIR_TASKS, FAIR_MOST = 200, 9


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the cost of `next` among many, and the loading of a plan."""
    repository = make_repository(places.folder)
    yield from _among_many(places, scale, store, repository)
    yield _plan(places, scale, store, repository)
    if store == "memory":
        yield _fairness()


def _among_many(places: Places, scale: Scale, store: str, repository: Path) -> Iterator[Figure]:
    """Yield what `next` costs with more and more waiting: it should not matter."""
    least = 0.0
    client = open_client(places.fresh_url(store), repository, "worker")
    filled = 0
    for size in scale.waiting:
        if store in LOG_SHAPE and size > LOG_SHAPE_MOST:
            continue
        while filled < size:
            names = range(filled, min(size, filled + FILL))
            client.call(AddTasks(client.project, tuple(NewTask(task_id=f"t{n:07d}") for n in names)))
            filled += len(names)
        took = [_timed_next(client) for _ in range(scale.nexts)]
        middle = statistics.median(took) * 1000
        least = least or middle
        detail = {"of_the_smallest": middle / least, **latency_ms(took)}
        yield Figure("queue", store, f"next among {size:,} waiting, p50", middle, "ms", detail=detail)
    client.close()


def _timed_next(client: Client) -> float:
    began = perf_counter()
    reply = client.next_task()
    took = perf_counter() - began
    assert reply.task is not None, "there is always one more"
    assert reply.claim is not None, "a task comes with its claim"
    client.release_task(reply.task.task_id, reply.claim.generation)
    return took


def _plan(places: Places, scale: Scale, store: str, repository: Path) -> Figure:
    """Check and load a plan on 26 tracks where each task waits for the one before it on its track."""
    names = [f"{chr(65 + at % 26)}-{at // 26 + 1:03d}-task" for at in range(scale.plan_tasks)]
    tasks = [new_task(name, depends_on=[names[at - 26]] if at >= 26 else []) for at, name in enumerate(names)]
    with open_client(places.fresh_url(store), repository, "planner") as client:
        began = perf_counter()
        checked = check_plan(Plan("", tasks, {}, []), [])
        assert not checked.problems, checked.problems[:3]
        added = client.add_tasks(checked.tasks, from_root=True).added
        took = perf_counter() - began
    assert len(added) == len(tasks), "all of them are new"
    return Figure("queue", store, f"plan of {scale.plan_tasks:,} tasks loaded", took, "s")


def _fairness() -> Figure:
    """Let one urgent task more come each minute, as many as are served: how long does a low one wait?"""
    now = 1_700_000_000_000
    with connect("memory:", session="fair", project="fair", environ={}, clock=lambda: now) as client:
        client.add_task("low")
        for turn in range(FAIR_TASKS):
            client.add_task(f"urgent-{turn:03d}", priority=FAIR_MOST)
            reply = client.next_task()
            assert reply.task is not None
            assert reply.claim is not None
            if reply.task.task_id == "low":
                break
            client.submit_task(reply.task.task_id, reply.claim.generation, {})
            now += 60_000
    name = f"turns of priority {FAIR_MOST} before one of 0, one a minute"
    return Figure("queue", "memory", name, float(turn), "", most=FAIR_MOST + 1)
