"""A whole call of the hook as an agent's tool sees it, beside `python -c pass` of the same interpreter.

In an environment with nothing but what coord needs. Calls and `pass` take turns; the best are compared.
The parts tell where the time of a writing call goes: what has to be imported, and the rest.
Calls through a hub are compared with the least that a program in Python can take: `python -I -S -c pass`.
"""

import json
import os
import posix
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter
from unittest.mock import patch

from bench.commands import clean_python, command_environment
from bench.figures import Figure
from bench.http_hooks import http_hooks
from bench.places import Places
from bench.repository import make_repository
from bench.scale import TINY, Scale
from coord.integrations.hooks import hub_client

MOST_TIMES_PYTHON = 3.5
MOST_TIMES_BARE_PYTHON = 1.4
MOST_SERVER_MS = 1.0
CALLS_MIN = 20
"""On a shared machine the best of a few says little."""
THROUGH_HUB = "through a hub: "
BARE = "bare python"
NO_TYPING_EXTENSIONS = "import sys; sys.modules['typing_extensions'] = None; "
PARTS = {
    "part: importing msgspec": f"import gc; gc.disable(); {NO_TYPING_EXTENSIONS} import msgspec",
    "part: importing sqlite3": "import gc; gc.disable(); import sqlite3",
}
SHELL_LINE = "cd src && make test 2>&1 | tail -5"
READ = "read.txt"
SHELL = "a shell command"
"""Git scans the worktree around it, so it has no limit in starts of Python."""
INIT = "import os; from coord.sdk.client.open import initialise; initialise(os.getcwd(), os.environ)"


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield what a call of the hook takes, as a multiple of Python alone; a repository's store is SQLite."""
    if store != "sqlite":
        return
    repository = make_repository(places.folder)
    (repository / READ).write_text("what an agent reads\n")
    with tempfile.TemporaryDirectory() as folder:
        python = clean_python(Path(folder) / "clean")
        environ = {
            **command_environment(repository, Path(folder)),
            "COORD_HOOK_DEADLINE": "60",
            "COORD_HUB": "off",
        }
        subprocess.run([str(python), "-c", INIT], cwd=repository, env=environ, check=True)
        (program,) = Path(folder).glob("clean/lib/python*/site-packages/coord/integrations/hooks/main.py")
        best: dict[str, float] = {}
        calls = scale.commands if scale is TINY else max(scale.commands, CALLS_MIN)
        with _hub(python, repository, environ) as (hub, url, pid):
            for number in range(calls + 1):
                for name, (words, told) in _calls(str(python), str(program), repository, number).items():
                    seen = hub if name.startswith(THROUGH_HUB) else environ
                    took = _time(words, told, repository, seen)
                    if number:  # the first one compiles
                        best[name] = min(took, best.get(name, took))
            spent = _cpu_us(pid)
            exchanges = _exchanges(python, repository, hub, calls * 20)
            spent = (_cpu_us(pid) - spent) / len(exchanges)
            by_http = http_hooks(url, repository, hub, calls * 20)
    python_ms, bare_ms = best.pop("pass") * 1000, best.pop(BARE) * 1000
    for name in [name for name in best if name.startswith(THROUGH_HUB)]:
        took_ms = best.pop(name) * 1000
        most = None if name.endswith(SHELL) else MOST_TIMES_BARE_PYTHON
        detail = {"hook_ms": took_ms, "python_ms": bare_ms}
        yield Figure("hooks", "sqlite", name, took_ms / bare_ms, "× bare python", most=most, detail=detail)
    for name, value in (("p50", median(exchanges)), ("best", min(exchanges))):
        most = MOST_SERVER_MS if name == "p50" else None
        detail = {"cpu_us_per_op": spent} if name == "p50" else {}
        part = f"the hub's part before an edit, {name}"
        yield Figure("hooks", "sqlite", part, value, "ms", most=most, detail=detail)
    yield Figure(
        "hooks", "sqlite", "http hook before an edit, p50", median(by_http), "ms", most=MOST_SERVER_MS
    )
    for name, seconds in best.items():
        most = None if name.startswith("part") or name.endswith(SHELL) else MOST_TIMES_PYTHON
        detail = {"hook_ms": seconds * 1000, "python_ms": python_ms}
        yield Figure(
            "hooks", "sqlite", name, seconds * 1000 / python_ms, "× python", most=most, detail=detail
        )


def _calls(python: str, program: str, repository: Path, number: int) -> dict[str, tuple[list[str], bytes]]:
    def told(event: str, tool: str, name: str = "") -> bytes:
        given = {"file_path": f"{repository}/{name or number}"}
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": "c"}
        return json.dumps(
            {"session_id": "bench", "cwd": str(repository), "hook_event_name": event, **call}
        ).encode()

    def typed(event: str) -> bytes:
        call = {"tool_name": "Bash", "tool_input": {"command": SHELL_LINE}, "tool_use_id": "s"}
        return json.dumps(
            {"session_id": "bench", "cwd": str(repository), "hook_event_name": event, **call}
        ).encode()

    hook = [python, "-I", "-S", program, "claude"]
    return {
        "pass": ([python, "-c", "pass"], b""),
        BARE: ([python, "-I", "-S", "-c", "pass"], b""),
        f"{THROUGH_HUB}before a tool that reads": (hook, told("PreToolUse", "Read")),
        f"{THROUGH_HUB}after a tool that reads": (hook, told("PostToolUse", "Read", READ)),
        f"{THROUGH_HUB}before an edit": (hook, told("PreToolUse", "Write")),
        f"{THROUGH_HUB}after an edit": (hook, told("PostToolUse", "Write")),
        f"{THROUGH_HUB}before a shell command": (hook, typed("PreToolUse")),
        "before a tool that reads": (hook, told("PreToolUse", "Read")),
        "after a tool that reads": (hook, told("PostToolUse", "Read", READ)),
        "before an edit": (hook, told("PreToolUse", "Write")),
        "after an edit": (hook, told("PostToolUse", "Write")),
        "before a shell command": (hook, typed("PreToolUse")),
        "after a shell command": (hook, typed("PostToolUse")),
        **{name: ([python, "-I", "-c", code], b"") for name, code in PARTS.items()},
    }


@contextmanager
def _hub(
    python: Path, repository: Path, environ: dict[str, str]
) -> Iterator[tuple[dict[str, str], str, int]]:
    """Run a hub of the clean environment with this one's server; yield what hooks see, its URL and pid."""
    libraries = (
        str(Path(hub_client.__file__).parents[3]),
        *(path for path in sys.path if "site-packages" in path),
    )
    code = f"import sys; sys.path += {libraries!r}; from coord.transports.cli.main import run; run()"
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        found = {**environ, "XDG_RUNTIME_DIR": folder}
        found.pop("COORD_HUB", None)
        words = [str(python), "-c", code, "serve", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(words, cwd=repository, env=found, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                ready = json.loads(process.stdout.readline())
                yield found, str(ready["listen"]), process.pid
            finally:
                process.terminate()


def _cpu_us(pid: int) -> float:
    """Return the processor time of all threads of a process."""
    return (
        sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e3
    )


def _exchanges(python: Path, repository: Path, environ: dict[str, str], times: int) -> list[float]:
    """Return what the hub takes for an edit in ms, as a process sees it that runs already."""
    path = f"{environ['XDG_RUNTIME_DIR']}/coord/hub.sock"
    call = {"tool_name": "Write", "tool_input": {"file_path": f"{repository}/1"}, "tool_use_id": "c"}
    event = {"session_id": "bench", "cwd": str(repository), "hook_event_name": "PreToolUse", **call}
    payload = json.dumps(event).encode()
    seen = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    found: list[float] = []
    with patch.object(sys, "executable", str(python)), patch.dict(posix.environ, seen, clear=True):
        for _ in range(times):
            began = perf_counter()
            until = monotonic() + 60
            answer = hub_client.ask_hub(path, ("claude", "", os.getppid()), payload, until, until)
            found.append((perf_counter() - began) * 1000)
            assert answer is not None, "the hub answers"
            answer.close()
    return found


def _time(words: list[str], told: bytes, repository: Path, environ: dict[str, str]) -> float:
    began = perf_counter()
    done = subprocess.run(words, input=told, cwd=repository, env=environ, capture_output=True, check=False)
    took = perf_counter() - began
    assert (done.returncode, done.stdout) == (0, b""), done
    return took
