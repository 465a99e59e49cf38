"""The tests notice when something is broken: each mutant of the source makes one of them fail."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, STORM
from tests.mutants.guard import WRONG_PACKAGE
from tests.mutants.lock_catalogue import LOCK_MUTANTS
from tests.mutants.mutant import Mutant
from tests.simulation.replay import COMMAND

ROOT = Path(__file__).parents[2]
PASSED, FAILED = 0, 1


def copied(folder: Path) -> Path:
    """A copy of the package, to be imported in place of the installed one."""
    package = folder / "copy" / "coord"
    shutil.copytree(ROOT / "src" / "coord", package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def apply(mutant: Mutant, package: Path) -> None:
    changes = [(mutant.file, mutant.old, mutant.new)]
    if mutant.also is not None:
        changes.append(mutant.also)
    for file, old, new in changes:
        source = (package / file).read_text()
        assert source.count(old) == 1, f"{old!r} is not exactly once in {file}: {mutant.name}"
        (package / file).write_text(source.replace(old, new))


def run(package: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests on a copy of the package."""
    home = package.parent
    options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-p", "tests.mutants.guard", "--basetemp", str(home / "tmp"), "--hypothesis-seed=0"]
    options += ["--timeout=60"]
    return run_python(package, "-m", "pytest", *options, *tests)


def run_python(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python so that it imports the copy."""
    home = package.parent
    environment = {
        **os.environ,
        "PYTHONPATH": str(home),
        "COORD_MUTANT_ROOT": str(home),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name in ("CI", "COORD_SOAK", "PYTEST_XDIST_WORKER"):
        environment.pop(name, None)
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant(mutant: Mutant, tmp_path: Path) -> None:
    """A safety check that can be removed without a failing test is not tested."""
    package = copied(tmp_path)
    apply(mutant, package)
    told = run(package, *mutant.tests)
    if told.returncode == PASSED and " skipped" in told.stdout and " passed" not in told.stdout:
        pytest.skip("what would notice cannot run here")
    assert told.returncode == FAILED, (
        f"nobody noticed: {mutant.name}\n{told.stdout[-2000:]}{told.stderr[-2000:]}"
    )


def test_the_same_tests_pass_without_a_mutant(tmp_path: Path) -> None:
    """What notices mutants does not fail anyway."""
    units = {test for mutant in LOCK_MUTANTS for test in mutant.tests if "::" in test}
    told = run(copied(tmp_path), *STORM, *sorted(units))
    assert told.returncode == PASSED, told.stdout[-2000:]


def test_the_copy_is_what_is_tested(tmp_path: Path) -> None:
    """Tests that ran against the installed package would prove nothing."""
    package = copied(tmp_path)
    shutil.rmtree(package)
    assert run(package, *STORM[:1]).returncode == WRONG_PACKAGE


def test_a_failing_seed_says_how_to_see_it_again(tmp_path: Path) -> None:
    """The command that a failing seed prints works, and shows the same violation at the end of its trace."""
    package = copied(tmp_path)
    apply(MUTANTS[0], package)
    told = run(package, "--tb=short", *STORM)
    assert told.returncode == FAILED
    seen_again = re.search(re.escape(COMMAND) + r" (\d+)", told.stdout)
    assert seen_again is not None, told.stdout
    replayed = run_python(package, "-m", "tests.simulation.replay", seen_again[1])
    assert replayed.returncode == FAILED
    *trace, verdict = replayed.stdout.splitlines()
    assert len(trace) > 10
    assert verdict.startswith("BROKEN: ")
    assert verdict.removeprefix("BROKEN: ") in told.stdout
