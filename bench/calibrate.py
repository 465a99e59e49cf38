"""What the machine can do right now, and what it is: so that figures of two runs can be compared at all."""

import os
import platform
import sqlite3
import statistics
import subprocess
import time
from pathlib import Path

from bench.figures import Calibration, percentile

TURNS = 200_000
BLOCK = b"\xa5" * 4096


def calibrate(folder: Path, seconds: float) -> Calibration:
    """Measure the fixed loop and the disk, each for about so long."""
    syncs = sorted(_time_syncs(folder / "calibration", seconds))
    middle = statistics.median(syncs)
    return Calibration(
        loop_turns_per_s=TURNS / statistics.median(time_loops(seconds)),
        syncs_per_s=1 / middle,
        sync_ms_p50=middle * 1000,
        sync_ms_p99=percentile(syncs, 0.99) * 1000,
        load=os.getloadavg()[0],
    )


def time_loops(seconds: float) -> list[float]:
    """Return how long the fixed loop takes, again and again."""
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        began = time.perf_counter()
        _fixed_loop()
        times.append(time.perf_counter() - began)
    return times


def _fixed_loop() -> int:
    """A linear congruence, so that nothing can be left out or cached."""
    x = 1
    for _ in range(TURNS):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
    return x


def _time_syncs(path: Path, seconds: float) -> list[float]:
    """Append 4 KiB and sync, again and again, as a log does."""
    times: list[float] = []
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        while sum(times) < seconds or len(times) < 5:
            began = time.perf_counter()
            os.write(file, BLOCK)
            os.fdatasync(file)
            times.append(time.perf_counter() - began)
    finally:
        os.close(file)
        path.unlink()
    return times


def machine(folder: Path) -> dict[str, object]:
    """Return what was measured on."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgres": _first_line(["postgres", "--version"]),
        "mariadb": _first_line(["mariadbd", "--version"]),
        "redis": _first_line(["redis-server", "--version"]),
        "nats": _first_line(["nats-server", "--version"]),
        "filesystem": _first_line(["stat", "--file-system", "--format=%T", str(folder)]),
        "load_average": os.getloadavg(),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return done.stdout.strip().splitlines()[0]
