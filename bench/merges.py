"""`coord merge` beside `git merge`, each from the start of its process to its end: one branch, eight at once.

What coord adds is a Python, the store (what was held when, one merge at a time), a merge in memory before
main moves, and the files of the worktree. Compared are the best of each; for eight branches git merges eight
times.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.commands import command_environment, write_script
from bench.commits import FILES, repository_in, timed
from bench.figures import Figure
from bench.places import Places
from bench.scale import TINY, Scale

BATCH = 8


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield what merges take, as a multiple of git's own; the store is SQLite."""
    if store != "sqlite":
        return
    repository = repository_in(places.folder / "merges")
    with tempfile.TemporaryDirectory() as folder:
        script = str(write_script(Path(folder) / "coord", Path(sys.executable)))
        environ = {**command_environment(repository, Path(folder)), "COORD_SESSION_ID": "bench"}
        timed([script, "lock", "--ttl", "1h", "src"], repository, environ)
        yard = _Yard(repository, environ, script)
        batch = 2 if scale is TINY else BATCH
        for count, times in ((1, scale.commands), (batch, max(1, scale.commands // 4))):
            best: dict[str, float] = {}
            for number in range(times + 1):
                for name, took in (("git", yard.git(count)), ("coord", yard.coord(count))):
                    if number:  # the first one compiles
                        best[name] = min(took, best.get(name, took))
            detail = {"command_ms": best["coord"] * 1000, "git_ms": best["git"] * 1000}
            what = "one branch" if count == 1 else f"{count} branches at once"
            name = f"coord merge of {what}, {FILES} files"
            yield Figure("merges", "sqlite", name, best["coord"] / best["git"], "× git merge", detail=detail)


class _Yard:
    """A repository in which branches are made and merged."""

    def __init__(self, repository: Path, environ: dict[str, str], script: str) -> None:
        self._repository = repository
        self._environ = environ
        self._script = script
        self._made = 0

    def git(self, count: int) -> float:
        """Return how long git takes for so many branches, one after the other."""
        branches = self._branches(count, "git", "commit", "--quiet", "--all")
        return sum(self._run("git", "merge", "--quiet", "--no-ff", "-m", "x", each) for each in branches)

    def coord(self, count: int) -> float:
        """Return how long coord takes for so many branches."""
        return self._run(self._script, "merge", *self._branches(count, self._script, "commit"))

    def _branches(self, count: int, *commit: str) -> list[str]:
        """Make branches from main, each with a commit on another file."""
        names = [f"b{self._made + number}" for number in range(count)]
        for name in names:
            self._made += 1
            self._run("git", "checkout", "--quiet", "-b", name, "main")
            (self._repository / f"src/f{self._made % FILES}.py").write_text(f"{name}\n")
            self._run(*commit, "-m", name)
        self._run("git", "checkout", "--quiet", "main")
        return names

    def _run(self, *words: str) -> float:
        return timed(list(words), self._repository, self._environ)
