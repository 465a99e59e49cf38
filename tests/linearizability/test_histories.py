"""Real processes on real stores: one order explains all that they were told (CLM-60, CLM-69)."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from coord.sdk.client.open import initialise
from coord.sdk.coordinator import TaskCoordinator
from coord.stores.open import install
from tests.linearizability import recorded
from tests.linearizability.actor import TENANT
from tests.linearizability.log_order import explain_all, read_log
from tests.linearizability.task_model import Op
from tests.linearizability.wing_gong import by_task, linearization, sweepers, timeless
from tests.support.fork_server import Process, end, start
from tests.support.git_folders import made_repository
from tests.support.hub.fleet import hubs_of, new_token

SOAK = bool(os.environ.get("COORD_SOAK"))
ACTORS = 5
ROUNDS = 400 if SOAK else 60
SEEDS = range(20 if SOAK else 1)
PATIENCE_S = 110


@contextmanager
def started(options: dict[str, object], under: tuple[str, ...] = ()) -> Iterator[Process]:
    """An actor, ready to begin."""
    process = start("tests.linearizability.actor", json.dumps(options), under=under, text=True)
    try:
        yield process
    finally:
        end(process, PATIENCE_S)


def expect(process: Process, word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


def record(
    url: str, folder: Path, seed: int, *, clock: str = "", ways: Sequence[dict[str, object]] = ()
) -> list[Op]:
    """Let several processes work on a few tasks at once, kill one in the middle; return what they noted.

    `ways` are those of hubs: the processes take them in turn.
    """
    if not ways:
        install(url)
    paths = [folder / f"history-{seed}-{n}" for n in range(ACTORS)]
    with ExitStack() as stack:
        processes = []
        for n, path in enumerate(paths):
            options = {"url": url, "name": f"actor-{n}", "seed": seed, "tasks": 2, "rounds": ROUNDS}
            options |= {"history": str(path), "clock": clock}
            options |= ways[n % len(ways)] if ways else {}
            processes.append(stack.enter_context(started(options)))
        for process in processes:
            expect(process, "ready")
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        victim, *others = processes
        expect(victim, "halfway")
        victim.kill()
        for process in others:
            expect(process, "halfway")
            expect(process, "done")
            assert process.wait(PATIENCE_S) == 0
    return recorded.read(paths)


def check_log_order(url: str, ops: list[Op]) -> dict[str, int]:
    with TaskCoordinator.open(url) as coordinator:
        return explain_all(read_log(coordinator.database.log(TENANT)), ops)


def assert_worked(ops: list[Op]) -> None:
    """A history in which little happened would prove little."""
    told = Counter(op.answer[0] for op in ops if op.answer)
    assert len(ops) > ROUNDS * (ACTORS - 1) // 2
    assert told["GRANTED"] >= 5, told
    assert told["RENEWED"] + told["RELEASED"] + told["ACCEPTED"] >= 5, told
    assert told["DENIED_ACTIVE_CLAIM"] + told["GENERATION_MISMATCH"] + told["SESSION_MISMATCH"] >= 5, told


@pytest.mark.parametrize("seed", SEEDS)
def test_histories_on_the_clock_of_the_store(shared_url: str, tmp_path: Path, seed: int) -> None:
    """CLM-60: where no lease runs out, one order explains every answer, and so does that of the log."""
    ops = record(shared_url, tmp_path, seed)
    assert_worked(ops)
    for task, history in by_task(timeless(op) for op in ops).items():
        assert linearization(history) is not None, f"no order explains what was told about {task}"
    check_log_order(shared_url, ops)


THROUGH_HUBS = [
    ("sqlite", ("http",)),
    ("sqlite", ("socket",)),
    ("postgres", ("http", "socket")),
    ("nats", ("socket", "http")),
]
"""A kind of store, and the way into each of its hubs."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "transports"), THROUGH_HUBS)
def test_histories_through_hubs(
    make_url: Callable[[str], str], tmp_path: Path, seed: int, kind: str, transports: tuple[str, ...]
) -> None:
    """Issue 16: what clients of one hub, or of two hubs on one server, were told has one order."""
    url, repository = make_url(kind), tmp_path / "repository"
    made_repository(repository)
    initialise(str(repository), {}, url=url)
    with hubs_of(repository, tmp_path, len(transports)) as hubs:
        token = new_token(repository)
        ways = [hub.way(transport, token) for hub, transport in zip(hubs, transports, strict=True)]
        ops = record(url, tmp_path, seed, ways=ways)
    assert_worked(ops)
    for task, history in by_task(timeless(op) for op in ops).items():
        assert linearization(history) is not None, f"no order explains what was told about {task}"
    check_log_order(url, ops)


@pytest.mark.parametrize("seed", SEEDS)
def test_histories_with_leases_that_run_out(shared_url: str, tmp_path: Path, seed: int) -> None:
    """CLM-69, CLM-70: on a clock that all share and that moves in steps, expiry is explained as well."""
    clock = tmp_path / "clock"
    clock.write_text("1700000000000")
    ops = record(shared_url, tmp_path, seed, clock=str(clock))
    assert_worked(ops)
    for task, history in by_task(ops).items():
        found = linearization(history, sweepers(ops))
        assert found is not None, f"no order explains what was told about {task}"
    check_log_order(shared_url, ops)
