"""`coord commit` beside `git commit`, each from the start of its process to its end, in turn on one file.

What coord adds is a Python, the store (who holds what, and the record), and git asked what is changed and
what was committed. Compared are the best of each.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.commands import command_environment, write_script
from bench.figures import Figure
from bench.places import Places
from bench.scale import Scale

FILES = 1000
FILE = "src/f0.py"


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield what a commit of one file takes, as a multiple of git's own; the store is SQLite."""
    if store != "sqlite":
        return
    repository = repository_in(places.folder / "commits")
    with tempfile.TemporaryDirectory() as folder:
        script = write_script(Path(folder) / "coord", Path(sys.executable))
        environ = {**command_environment(repository, Path(folder)), "COORD_SESSION_ID": "bench"}
        timed([str(script), "lock", "--ttl", "1h", FILE], repository, environ)
        best: dict[str, float] = {}
        for number in range(scale.commands + 1):
            for name, words in (
                ("git", ["git", "commit", "--quiet", "-m", "x", "--", FILE]),
                ("coord", [str(script), "commit", "-m", "x"]),
            ):
                (repository / FILE).write_text(f"{name} {number}\n")
                took = timed(words, repository, environ)
                if number:  # the first one compiles
                    best[name] = min(took, best.get(name, took))
    detail = {"command_ms": best["coord"] * 1000, "git_ms": best["git"] * 1000}
    value = best["coord"] / best["git"]
    yield Figure("commits", "sqlite", f"coord commit, {FILES} files", value, "× git commit", detail=detail)


def repository_in(folder: Path) -> Path:
    """Make a repository with many files and one commit."""
    (folder / "src").mkdir(parents=True)
    for number in range(FILES):
        (folder / f"src/f{number}.py").write_text("first\n")
    environ = command_environment(folder, folder)
    for words in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "bench"],
        ["config", "user.email", "bench@localhost"],
        ["add", "src"],
        ["commit", "--quiet", "-m", "first"],
    ):
        timed(["git", *words], folder, environ)
    return folder


def timed(words: list[str], folder: Path, environ: dict[str, str]) -> float:
    """Run a command, and return how many seconds it took."""
    began = perf_counter()
    done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, check=False)
    took = perf_counter() - began
    assert done.returncode == 0, done.stderr.decode()
    return took
