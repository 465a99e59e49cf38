"""Looking at what a shell command changed, beside `git status` of the same repository.

Both are asked by the same process in turns, on a repository whose index is fresh and with one changed file;
the best are compared. What a hook needs besides (to start, to open its store) is measured with hooks.
"""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from bench.figures import Figure
from bench.places import Places
from bench.scale import Scale
from coord.integrations.git.run import Git
from coord.integrations.shell_effects.worktree_state import changes, read_state, save_index

MOST_TIMES_STATUS = 2.0
FILES = {"full": (10_000, 100_000), "quick": (10_000,), "tiny": (20,)}
IN_A_FOLDER = 50
WATCHED = (".env",)
WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
BY_ITSELF = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")
"""Git would tidy up in the background, while it is measured and even while its folder is removed."""


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield what looking before and after a command takes, as a multiple of `git status`."""
    if store != "sqlite":
        return
    for count in FILES[scale.name]:
        with tempfile.TemporaryDirectory(dir=places.folder) as folder:
            yield from _figures(made(Path(folder), count), count, scale.commands)


def made(folder: Path, count: int) -> Git:
    """Make a repository with so many small files."""
    root = folder / "repository"
    for number in range(count):
        path = root / f"d{number // IN_A_FOLDER // 20}" / f"e{number // IN_A_FOLDER}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "all"), ("status",)):
        subprocess.run(["git", *WHO, *BY_ITSELF, *words], cwd=root, check=True, capture_output=True)
    return Git(str(root))


def _figures(git: Git, count: int, times: int) -> Iterator[Figure]:
    saved = f"{git.folder}.index"
    save_index(f"{git.folder}/.git", saved)
    state = read_state(git, saved, WATCHED)
    (Path(git.folder) / "d0/e0/f0.py").write_text("changed\n")
    asks: dict[str, Callable[[], object]] = {
        "git status": lambda: git.must("status", "--porcelain", "-z"),
        "before a shell command": lambda: read_state(git, saved, WATCHED),
        "after a shell command": lambda: changes(git, saved, state, WATCHED),
    }
    best: dict[str, float] = {}
    for _ in range(times + 1):
        for name, ask in asks.items():
            began = perf_counter()
            ask()
            took = perf_counter() - began
            best[name] = min(took, best.get(name, took))
    status_ms = best.pop("git status") * 1000
    for name, seconds in best.items():
        detail = {"look_ms": seconds * 1000, "status_ms": status_ms}
        yield Figure(
            "effects",
            "sqlite",
            f"{name}, {count} files",
            seconds * 1000 / status_ms,
            "× git status",
            most=MOST_TIMES_STATUS,
            detail=detail,
        )
