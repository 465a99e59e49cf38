"""Each mutant of the source makes one of the tests fail: the tests notice when a check is missing."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import SOAK
from tests.mutation.anchors import changed
from tests.mutation.catalogue import MUTANTS
from tests.mutation.catalogue.tasks import STALE_RESULT
from tests.mutation.guard import WRONG_PACKAGE, WRONG_REASON
from tests.mutation.mutant import STORM, Mutant
from tests.mutation.run_tests import OUTPUT, environment
from tests.simulation.replay import COMMAND
from tests.support.fork_server import Forked, end, plain_environment

ROOT = Path(__file__).parents[2]
PASSED, FAILED = 0, 1
RUN_S_MAX, KILL_S_MAX = 290, 10
HANGS = "--timeout=10"
"""What hangs because of a mutant has been noticed; without one the tests have a minute."""
ATTEMPTS = 3
"""A test that races threads may miss a mutant; one that misses it each time does not test it."""


class Outcome(NamedTuple):
    """The exit code of pytest, and its output."""

    code: int
    output: str


def linked_copy(folder: Path) -> Path:
    """Return another path of the package, from which it can be imported: a link to the source."""
    package = folder / "copy" / "coord"
    package.parent.mkdir()
    package.symlink_to(ROOT / "src" / "coord")
    return package


def unlink_folder(path: Path) -> None:
    """Replace a link to a folder by a folder of links to the files."""
    if path.is_symlink():
        source = path.readlink()
        path.unlink()
        path.mkdir()
        for each in source.iterdir():
            (path / each.name).symlink_to(each)


def apply(mutant: Mutant, package: Path) -> None:
    """Change the copy of the package; the source stays as it is."""
    for change in mutant.changes:
        file, source = changed(*change, package)
        inner = file.relative_to(package)
        for folder in (*reversed(inner.parents), inner.parent / "__pycache__"):
            unlink_folder(package / folder)
        file.unlink()
        file.write_text(source)
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
            compiled.unlink()  # Python takes one of the same second and size for current


def run_tests(package: Path, *tests: str) -> Outcome:
    """Run tests on a copy of the package."""
    home = package.parent
    process = Forked(
        "tests.mutation.run_tests",
        str(home),
        *tests,
        environ=plain_environment() | environment(home),
        preload="tests.mutation.preload_pytest",
    )
    process.stdin.close()
    try:
        code = process.wait(RUN_S_MAX)
    finally:
        end(process, KILL_S_MAX)
    return Outcome(code, (home / OUTPUT).read_text())


@pytest.mark.filterwarnings("default:attempt")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant(mutant: Mutant, tmp_path: Path) -> None:
    """A safety check that can be removed without a failing test is not tested."""
    package = linked_copy(tmp_path)
    apply(mutant, package)
    code, output = run_tests(package, HANGS, *mutant.tests)
    for attempt in range(2, ATTEMPTS + 1):
        if code != PASSED:
            break
        warnings.warn(f"attempt {attempt} to notice: {mutant.name}", stacklevel=1)
        code, output = run_tests(package, HANGS, *mutant.tests)
    if code == PASSED and " skipped" in output and " passed" not in output:
        pytest.skip("the tests that would notice cannot run here")
    assert code != WRONG_REASON, output
    assert code == FAILED, f"no test noticed: {mutant.name}\n{output[-2000:]}"


def test_the_same_tests_pass_without_a_mutant(tmp_path: Path) -> None:
    """Run a test of each package (in the soak of each file) that notices mutants; others run them all."""
    plain = [mutant.tests for mutant in MUTANTS if "-k" not in mutant.tests]
    files = {test.partition("::")[0]: test for tests in plain for test in tests if "::" in test}
    some = files if SOAK else {tuple(file.split("/")[:3]): test for file, test in files.items()}
    code, output = run_tests(linked_copy(tmp_path), *some.values())
    assert code == PASSED, output[-2000:]


def test_the_copy_is_what_is_tested(tmp_path: Path) -> None:
    """Tests that ran against the installed package would prove nothing."""
    package = linked_copy(tmp_path)
    package.unlink()
    assert run_tests(package, *STORM[:1]).code == WRONG_PACKAGE


@pytest.mark.parametrize("new", ["lost_name", "__import__('lost_module')"])
def test_a_mutant_that_is_no_program_is_not_noticed(new: str, tmp_path: Path) -> None:
    """A test that fails because a name is missing shows nothing about the check."""
    package = linked_copy(tmp_path)
    apply(STALE_RESULT._replace(new=new), package)
    assert run_tests(package, *STORM[:1]).code == WRONG_REASON


def test_a_failing_seed_says_how_to_see_it_again(tmp_path: Path) -> None:
    """The command that a failing seed prints works, and shows the same violation at the end of its trace."""
    package = linked_copy(tmp_path)
    apply(STALE_RESULT, package)
    code, output = run_tests(package, "--tb=short", *STORM)
    assert code == FAILED
    seen_again = re.search(re.escape(COMMAND) + r" (\d+)", output)
    assert seen_again is not None, output
    replayed = subprocess.run(
        [sys.executable, "-m", "tests.simulation.replay", seen_again[1]],
        cwd=ROOT,
        env={**os.environ, **environment(package.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert replayed.returncode == FAILED
    *trace, verdict = replayed.stdout.splitlines()
    assert len(trace) > 10
    assert verdict.startswith("BROKEN: ")
    assert verdict.removeprefix("BROKEN: ") in output
