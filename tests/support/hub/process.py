"""A real hub: `coord serve` as a process of its own, in a private home."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE_S = 60


class RunningHub(NamedTuple):
    """A hub that has said that it is ready."""

    process: "subprocess.Popen[str]"
    ready: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.ready["listen"])

    @property
    def socket(self) -> str:
        return str(self.ready["socket"])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def stop(self) -> int:
        """Ask the hub to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@contextmanager
def private_home(folder: Path) -> Iterator[dict[str, str]]:
    """Yield an environment with its own home; the runtime folder has a short path, as sockets need it."""
    found = {}
    for name, below in (("HOME", "home"), ("XDG_STATE_HOME", "state")):
        path = folder / below
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found[name] = str(path)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ", "PYTHONPATH") if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="ch-", dir="/tmp") as run:
        yield {**kept, **found, "XDG_RUNTIME_DIR": run}


@contextmanager
def serving(
    repository: Path,
    environ: Mapping[str, str],
    *words: str,
    listen: str = "127.0.0.1:0",
    files: int = 0,
    program: str = "coord",
) -> Iterator[RunningHub]:
    """Run a hub in a repository until the block ends; `files` is how many files it may open."""
    command = [sys.executable, "-m", program, "serve", "--listen", listen, *words]
    if files:
        command = ["prlimit", f"--nofile={files}:{files}", *command]
    process = subprocess.Popen(
        command, cwd=repository, env=dict(environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            _, errors = process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"the hub did not start: {errors}")
        yield RunningHub(process, json.loads(line))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
