"""A whole call of the hook as an agent's tool sees it, beside `python -c pass` of the same interpreter.

In an environment with nothing but what coord needs. Calls and `pass` take turns; the best are compared.
The parts tell where the time of a writing call goes: what has to be imported, and the rest.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.commands import clean_python, command_environment
from bench.figures import Figure
from bench.places import Places
from bench.repository import make_repository
from bench.scale import Scale

MOST_TIMES_PYTHON = 3.5
NO_TYPING_EXTENSIONS = "import sys; sys.modules['typing_extensions'] = None; "
PARTS = {
    "part: importing msgspec": f"import gc; gc.disable(); {NO_TYPING_EXTENSIONS} import msgspec",
    "part: importing sqlite3": "import gc; gc.disable(); import sqlite3",
}
SHELL_LINE = "cd src && make test 2>&1 | tail -5"
SHELL = "a shell command"
"""Git scans the worktree around it, so it has no limit in starts of Python."""
INIT = "import os; from coord.sdk.client.open import initialise; initialise(os.getcwd(), os.environ)"


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield what a call of the hook takes, as a multiple of Python alone; a repository's store is SQLite."""
    if store != "sqlite":
        return
    repository = make_repository(places.folder)
    with tempfile.TemporaryDirectory() as folder:
        python = clean_python(Path(folder) / "clean")
        environ = {**command_environment(repository, Path(folder)), "COORD_HOOK_DEADLINE": "60"}
        subprocess.run([str(python), "-c", INIT], cwd=repository, env=environ, check=True)
        (program,) = Path(folder).glob("clean/lib/python*/site-packages/coord/integrations/hooks/main.py")
        best: dict[str, float] = {}
        for number in range(scale.commands + 1):
            for name, (words, told) in _calls(str(python), str(program), repository, number).items():
                took = _time(words, told, repository, environ)
                if number:  # the first one compiles
                    best[name] = min(took, best.get(name, took))
    python_ms = best.pop("pass") * 1000
    for name, seconds in best.items():
        most = None if name.startswith("part") or name.endswith(SHELL) else MOST_TIMES_PYTHON
        detail = {"hook_ms": seconds * 1000, "python_ms": python_ms}
        yield Figure(
            "hooks", "sqlite", name, seconds * 1000 / python_ms, "× python", most=most, detail=detail
        )


def _calls(python: str, program: str, repository: Path, number: int) -> dict[str, tuple[list[str], bytes]]:
    def told(event: str, tool: str) -> bytes:
        call = {"tool_name": tool, "tool_input": {"file_path": f"{repository}/{number}"}, "tool_use_id": "c"}
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
        "before a tool that reads": (hook, told("PreToolUse", "Read")),
        "before an edit": (hook, told("PreToolUse", "Write")),
        "after an edit": (hook, told("PostToolUse", "Write")),
        "before a shell command": (hook, typed("PreToolUse")),
        "after a shell command": (hook, typed("PostToolUse")),
        **{name: ([python, "-I", "-c", code], b"") for name, code in PARTS.items()},
    }


def _time(words: list[str], told: bytes, repository: Path, environ: dict[str, str]) -> float:
    began = perf_counter()
    done = subprocess.run(words, input=told, cwd=repository, env=environ, capture_output=True, check=False)
    took = perf_counter() - began
    assert (done.returncode, done.stdout) == (0, b""), done
    return took
