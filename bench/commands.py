"""Whole commands, from the start of a process to its end, beside `python -c pass` of the same interpreter.

Once in an environment with nothing but what coord needs, copied there and compiled, as an installation has
it; once in the environment of the bench. Commands and `pass` take turns; compared are the best of each,
since whatever else the machine does can only make one slower.
"""

import importlib.util
import shutil
import stat
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.figures import Figure
from bench.places import Places
from bench.repository import environment, make_repository
from bench.scale import Scale

PACKAGES = ("coord", "msgspec", "sortedcontainers", "tree_sitter", "tree_sitter_bash")
MOST_TIMES_PYTHON = 6.0
SCRIPT = """#!{python}
import re
import sys
from coord.transports.cli.main import run
if __name__ == "__main__":
    sys.argv[0] = re.sub(r"(-script\\.pyw|\\.exe)?$", "", sys.argv[0])
    sys.exit(run())
"""
"""What pip makes of the entry point."""


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield what a command takes, as a multiple of Python alone; the store of a repository is SQLite."""
    if store != "sqlite":
        return
    repository = make_repository(places.folder)
    with tempfile.TemporaryDirectory() as folder:
        for where, python in (
            ("installed", clean_python(Path(folder) / "clean")),
            ("with dev tools", Path(sys.executable)),
        ):
            script = write_script(Path(folder) / "coord", python)
            environ = {**command_environment(repository, Path(folder)), "COORD_SESSION_ID": "bench"}
            yield from _figures(where, python, script, repository, environ, scale.commands)


def command_environment(repository: Path, cache: Path) -> dict[str, str]:
    """Return what a command sees; its modules are compiled once, but not into this checkout."""
    return {**environment(repository), "PYTHONPYCACHEPREFIX": str(cache / "compiled")}


def clean_python(folder: Path) -> Path:
    """Make an environment with what coord needs and nothing else; return its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.submodule_search_locations
        source = spec.submodule_search_locations[0]
        shutil.copytree(source, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "bin" / "python"


def write_script(path: Path, python: Path) -> Path:
    path.write_text(SCRIPT.format(python=python))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _figures(
    where: str, python: Path, script: Path, repository: Path, environ: dict[str, str], times: int
) -> Iterator[Figure]:
    best: dict[str, float] = {}
    for number in range(times + 1):
        lines = {
            "pass": [str(python), "-c", "pass"],
            "coord lock --no-wait x": [
                str(script),
                "lock",
                "--no-wait",
                f"x-{python.parent.parent.name}-{number}",
            ],
            "coord check x": [str(script), "check", "x"],
        }
        for name, words in lines.items():
            took = _time(words, repository, environ)
            if number:  # the first one compiles
                best[name] = min(took, best.get(name, took))
    python_ms = best.pop("pass") * 1000
    for name, seconds in best.items():
        detail = {"command_ms": seconds * 1000, "python_ms": python_ms}
        value = seconds * 1000 / python_ms
        yield Figure(
            "commands", "sqlite", f"{name}, {where}", value, "× python", most=MOST_TIMES_PYTHON, detail=detail
        )


def _time(words: list[str], repository: Path, environ: dict[str, str]) -> float:
    began = perf_counter()
    done = subprocess.run(words, cwd=repository, env=environ, capture_output=True, check=False)
    took = perf_counter() - began
    assert done.returncode == 0, done.stderr.decode()
    return took
