"""A queue drained by workers: what each of them got, and when; the same for ours and for all others."""

from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, Protocol

from bench.children import together
from bench.figures import latency_ms


class Drained(NamedTuple):
    """The moments at which each worker had a task in its hands, and when the last one was finished."""

    moments: list[list[float]]
    ended: float


class Queue(Protocol):
    """Tasks that are added once and drained by several workers."""

    rounds: int
    """How many times as many tasks it gets as the slow ones, so that its run is not over at once."""
    one_process: bool
    """Whether all workers are in one process; else each has one of its own."""

    begins_slowly: bool
    """Whether its clock starts with its first task, and not when it is told to begin."""

    def fill(self, tasks: int) -> None: ...
    def drain(self, workers: int) -> Drained:
        """Take and finish one after the other until nothing is left."""

    def close(self) -> None: ...


class Run(NamedTuple):
    """What all workers of one queue did together."""

    began: float
    ended: float
    moments: list[list[float]]

    @property
    def rate(self) -> float:
        return sum(map(len, self.moments)) / (self.ended - self.began)

    def detail(self) -> dict[str, float]:
        """Return how long a worker waited from one task to its next, and what each got of its fair part."""
        waited = [after - before for own in self.moments for before, after in pairwise(own)]
        got = [len(own) for own in self.moments]
        fair = sum(got) / len(got)
        return {**latency_ms(waited), "least_share": min(got) / fair, "most_share": max(got) / fair}


def run(queue: type[Queue], name: str, url: str, repository: Path, workers: int) -> Run:
    """Let processes drain a queue that is filled; they are connected before the clock starts."""
    processes = 1 if queue.one_process else workers
    words = [name, url, str(repository), str(workers // processes)]
    began, answers = together("bench.drainer", ([*words, f"worker-{at}"] for at in range(processes)))
    found = [Drained(*answer) for answer in answers]
    moments = [own for each in found for own in each.moments]
    if queue.begins_slowly:
        began = min(own[0] for own in moments if own)
    return Run(began, max(each.ended for each in found), moments)


def run_here(queue: Queue, workers: int) -> Run:
    """Drain a queue that no other process can open."""
    began = perf_counter()
    moments, ended = queue.drain(workers)
    queue.close()
    return Run(began, ended, moments)
