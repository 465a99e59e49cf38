"""Requests and listings over everything: a glob among many locks, all locks, all tasks.

In this process on every store, and on SQLite as whole commands, from the start of a process to its end.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.checks import hold
from bench.commands import command_environment, write_script
from bench.figures import Figure
from bench.places import Places
from bench.repository import environment, make_repository, open_client
from bench.scale import Scale
from coord.sdk.client.client import Client, connect
from coord.sdk.validation.tasks import new_task

GLOB = "src/**/*.py"
STARTER = """
import os, sys, time
nothing = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, nothing, stream) for stream in (1, 2)]
began = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - began, usage.ru_maxrss)
"""
COMMAND_MS_MAX = 1000.0
MEMORY_MB_MAX = 100.0


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the times of broad requests among each number of locks, and of listing all tasks."""
    repository = make_repository(places.folder)
    with open_client(places.fresh_url(store), repository, "asker") as client:
        held = 0
        for wanted in scale.broad_locks:
            hold(client, held, wanted)
            held = wanted
            for name, act in _acts(client).items():
                took = [_time(act) for _ in range(scale.repetitions)]
                yield Figure.middle_of(took, "broad", store, f"{name} among {held:,} locks", "ms")
        _add_tasks(client, scale.broad_tasks)
        took = [_time(client.task_list) for _ in range(scale.repetitions)]
        yield Figure.middle_of(took, "broad", store, f"list {scale.broad_tasks:,} tasks", "ms")
    if store == "sqlite":
        yield from _commands(repository, scale)


def _acts(client: Client) -> dict[str, Callable[[], Any]]:
    return {
        "lock of a glob, denied": lambda: client.acquire(GLOB),
        "check of a glob": lambda: client.check(GLOB),
        "first page": lambda: next(client.lock_pages()),
        "list of all": client.locks,
    }


def _time(act: Callable[[], Any]) -> float:
    began = perf_counter()
    act()
    return (perf_counter() - began) * 1000


def _add_tasks(client: Client, tasks: int) -> None:
    client.add_tasks([new_task(f"task-{number:06d}", description="one of many") for number in range(tasks)])


def _commands(repository: Path, scale: Scale) -> Iterator[Figure]:
    """Yield what whole commands take, and the memory that they need, with the largest numbers."""
    locks, tasks = scale.broad_locks[-1], scale.broad_tasks
    with connect(session="filler", cwd=str(repository), environ=environment(repository)) as client:
        hold(client, 0, locks)
        _add_tasks(client, tasks)
    lines = {
        f"coord lock '{GLOB}' --no-wait, {locks:,} locks": ["lock", GLOB, "--no-wait"],
        f"coord check '{GLOB}', {locks:,} locks": ["check", GLOB],
        f"coord locks, {locks:,} locks": ["locks"],
        f"coord task list, {tasks:,} tasks": ["task", "list"],
    }
    with tempfile.TemporaryDirectory() as folder:
        script = write_script(Path(folder) / "coord", Path(sys.executable))
        environ = {**command_environment(repository, Path(folder)), "COORD_SESSION_ID": "asker"}
        for name, words in lines.items():
            runs = [
                run_command([str(script), *words], repository, environ) for _ in range(scale.repetitions + 1)
            ]
            took = [ms for ms, _ in runs[1:]]  # the first one compiles
            memory_mb = max(mb for _, mb in runs)
            yield Figure.middle_of(
                took, "broad", "sqlite", name, "ms", most=COMMAND_MS_MAX, detail={"memory_mb": memory_mb}
            )
            yield Figure("broad", "sqlite", f"{name}, memory", memory_mb, "MB", most=MEMORY_MB_MAX)


def run_command(words: list[str], cwd: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Return how many milliseconds a command takes, and how many MB of memory it has at most.

    A small process starts it: what Linux counts for a new process includes the memory of its parent.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", STARTER, *words],
        cwd=cwd,
        env=environ,
        stdout=subprocess.PIPE,
        check=True,
    )
    exit_code, took_s, memory_kb = map(float, done.stdout.split())
    assert exit_code in (0, 1), f"{words} ended with {exit_code:.0f}"
    return took_s * 1000, memory_kb / 1024
