"""A whole command through a hub beside the same one on the store itself, and a hub with nothing to do."""

import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter

import msgspec

from bench.commands import clean_python, write_script
from bench.figures import Figure
from bench.hub_load import process_cpu_s
from bench.mcp import OverSocket
from bench.places import Places
from bench.repository import make_repository
from bench.scale import Scale
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.sdk.remote import wire
from tests.support.hub.process import RunningHub, private_home, serving

SESSIONS = 200
IDLE_MB_MOST = 80.0
WAKEUPS_MOST = 0.5
"""A second; 0 reads of the store are asked, and a hub looks every 15 s whether it is still needed.

A look into a mapped file, as SQLite's, is no system call; but a thread has to wake up for it.
"""
MOST_TIMES_DIRECT = 1.0


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield a command as a multiple of the direct one, and what an idle hub uses."""
    repository = make_repository(places.folder)
    with tempfile.TemporaryDirectory() as folder, private_home(Path(folder)) as found:
        script = write_script(Path(folder) / "coord", clean_python(Path(folder) / "clean"))
        environ = {**found, "PYTHONPYCACHEPREFIX": f"{folder}/compiled", "COORD_SESSION_ID": "bench"}
        direct = {**environ, "COORD_HUB": "off"}
        _lock(script, "first", repository, direct)  # makes the store
        with serving(repository, environ) as hub:
            yield _command(store, script, repository, environ, direct, scale.commands)
            yield from _idle(store, repository, hub, max(0.5, scale.seconds * 20))


def _command(
    store: str,
    script: Path,
    repository: Path,
    environ: Mapping[str, str],
    direct: Mapping[str, str],
    times: int,
) -> Figure:
    best = {"hub": float("inf"), "direct": float("inf")}
    for number in range(times + 1):
        for way, given in (("hub", environ), ("direct", direct)):
            took = _lock(script, f"{way}-{number}", repository, given)
            if number:  # the first one compiles
                best[way] = min(best[way], took)
    return Figure(
        "hub",
        store,
        "coord lock --no-wait x, of direct",
        best["hub"] / best["direct"],
        "×",
        most=MOST_TIMES_DIRECT,
        detail={"command_ms": best["hub"] * 1000, "direct_ms": best["direct"] * 1000},
    )


def _lock(script: Path, name: str, repository: Path, environ: Mapping[str, str]) -> float:
    words = [str(script), "lock", "--no-wait", name]
    began = perf_counter()
    done = subprocess.run(words, cwd=repository, env=environ, capture_output=True, check=False)
    took = perf_counter() - began
    assert done.returncode == 0, done.stderr.decode()
    return took


def _idle(store: str, repository: Path, hub: RunningHub, seconds: float) -> Iterator[Figure]:
    """Register sessions, and look at the process of the hub for a while."""
    commands = [wire.raw(Register(caller=Caller(f"idle-{number}"))) for number in range(SESSIONS)]
    connection = OverSocket(hub.socket)
    body = wire.encode(wire.Call(wire.Target(str(repository)), commands))
    connection.request("POST", wire.CALL, body, {"Content-Type": wire.CONTENT_TYPE})
    response = connection.getresponse()
    answers = msgspec.msgpack.decode(response.read(), type=wire.Answers).answers
    assert [each.error for each in answers] == [None] * SESSIONS
    connection.close()
    process = Path(f"/proc/{hub.process.pid}")
    time.sleep(min(0.5, seconds))  # until the last answers are done
    before = usage(process)
    time.sleep(seconds)
    reads, wakeups, cpu_s = (now - then for now, then in zip(usage(process), before, strict=True))
    detail = {"reads_per_s": reads / seconds, "cpu_ms_per_min": cpu_s * 60_000 / seconds}
    name = f"idle with {SESSIONS} sessions"
    yield Figure("hub", store, f"{name}, memory", _rss_mb(process), "MB", most=IDLE_MB_MOST)
    woken = wakeups / seconds
    yield Figure("hub", store, f"{name}, wake-ups", woken, "/s", most=WAKEUPS_MOST, detail=detail)


def usage(process: Path) -> tuple[int, int, float]:
    """Return the reads of a process, how often its threads had to be woken, and its processor time."""
    reads = int((process / "io").read_text().split("syscr: ")[1].split()[0])
    wakeups = sum(
        int((task / "status").read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
        for task in (process / "task").iterdir()
    )
    return reads, wakeups, process_cpu_s(int(process.name))


def _rss_mb(process: Path) -> float:
    return int((process / "status").read_text().split("VmRSS:")[1].split()[0]) / 1024
