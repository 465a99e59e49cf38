"""What git's gates cost: a rebase of twenty commits by a session that holds their files, with and without."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.figures import Figure
from bench.places import Places
from bench.repository import environment, open_client
from bench.scale import TINY, Scale
from coord.integrations.git.gate import main as gate_main
from coord.integrations.git.gate.stubs import LOCAL_HOOKS, stub_text
from coord.sdk.client.open import initialise

COMMITS = 20
SESSION = "bench"
NO_GATES = ("-c", "core.hooksPath=/dev/null")


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the time of a rebase, and what the gates add to each commit; the store is SQLite."""
    if store != "sqlite":
        return
    commits = 3 if scale is TINY else COMMITS
    folder = _repository(places.folder / "gated", commits)
    took: dict[str, list[float]] = {"without": [], "with": []}
    for turn in range(scale.repetitions + 1):
        for name, options in (("without", NO_GATES), ("with", ())):
            _git(folder, *NO_GATES, "checkout", "-q", "-B", "side", "kept")
            began = perf_counter()
            _git(folder, *options, "rebase", "-q", "main")
            if turn:  # the first one compiles
                took[name].append(perf_counter() - began)
    for name, values in took.items():
        yield Figure.middle_of(values, "gates", store, f"rebase of {commits} commits, {name} gates", "s")
    added_ms = (min(took["with"]) - min(took["without"])) / commits * 1000
    yield Figure("gates", store, "what the gates add to a commit", added_ms, "ms")


def _repository(folder: Path, commits: int) -> Path:
    """Make a repository with gates, in which a branch `kept` of so many commits is one commit behind main."""
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    _commit(folder, "first")
    _git(folder, "checkout", "-q", "-b", "kept")
    for number in range(commits):
        _commit(folder, f"file-{number}")
    _git(folder, "checkout", "-q", "main")
    _commit(folder, "second")
    for hook in LOCAL_HOOKS:
        file = folder / ".git/hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(stub_text(hook, sys.executable, gate_main.__file__))
        file.chmod(0o755)
    url = initialise(str(folder), environment(folder)).url
    with open_client(url, folder, SESSION) as client:
        client.acquire("file-*")
    return folder


def _commit(folder: Path, name: str) -> None:
    (folder / name).write_text(f"{name}\n")
    _git(folder, "add", name)
    _git(folder, "commit", "-q", "-m", name)


def _git(folder: Path, *arguments: str) -> None:
    environ = {
        **environment(folder),
        "COORD_SESSION_ID": SESSION,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "bench@example"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
