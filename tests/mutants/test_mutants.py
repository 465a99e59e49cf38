"""The tests notice when something is broken: each mutant of the source makes one of them fail."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, STORM
from tests.mutants.guard import WRONG_PACKAGE, WRONG_REASON
from tests.mutants.mutant import Mutant
from tests.mutants.nursery import TOLD, environment
from tests.simulation.replay import COMMAND

ROOT = Path(__file__).parents[2]
PASSED, FAILED = 0, 1
UNTOLD = ("CI", "COORD_SOAK", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "PYTEST_PLUGINS")
"""What concerns this run, and not those of the mutants."""


def copied(folder: Path) -> Path:
    """The package at another place, to be imported instead of the installed one: all of it by links."""
    package = folder / "copy" / "coord"
    package.parent.mkdir()
    package.symlink_to(ROOT / "src" / "coord")
    return package


def unlinked(path: Path) -> None:
    """Make a folder of its own out of a link to one: what is in it is linked one by one."""
    if path.is_symlink():
        source = path.readlink()
        path.unlink()
        path.mkdir()
        for each in source.iterdir():
            (path / each.name).symlink_to(each)


def apply(mutant: Mutant, package: Path) -> None:
    changes = [(mutant.file, mutant.old, mutant.new)]
    if mutant.also is not None:
        changes.append(mutant.also)
    for file, old, new in changes:
        path = package / file
        for folder in (*reversed(Path(file).parents), Path(file).parent / "__pycache__"):
            unlinked(package / folder)
        source = path.read_text()
        assert source.count(old) == 1, f"{old!r} is not exactly once in {file}: {mutant.name}"
        path.unlink()  # the link: the source stays as it is
        path.write_text(source.replace(old, new))
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()  # one of the same second and size would still be taken for current


class Nursery:
    """The warm process of this worker, and what its last run told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.told = ""

    def run(self, package: Path, *tests: str) -> int:
        """Run tests on a copy of the package; return the exit code of pytest."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        home = package.parent
        self._process.stdin.write(json.dumps([str(home), *tests]) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            asked, code = json.loads(line)
            if asked == str(home):  # one that nobody waited for to the end may still be answered
                self.told = (home / TOLD).read_text()
                return int(code)
        raise AssertionError("the nursery has ended")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    plain = {name: value for name, value in os.environ.items() if name not in UNTOLD}
    command = [sys.executable, "-m", "tests.mutants.nursery"]
    with subprocess.Popen(
        command, cwd=ROOT, env=plain, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Nursery(process)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant(mutant: Mutant, nursery: Nursery, tmp_path: Path) -> None:
    """A safety check that can be removed without a failing test is not tested."""
    package = copied(tmp_path)
    apply(mutant, package)
    code = nursery.run(package, *mutant.tests)
    if code == PASSED and " skipped" in nursery.told and " passed" not in nursery.told:
        pytest.skip("what would notice cannot run here")
    assert code != WRONG_REASON, nursery.told
    assert code == FAILED, f"nobody noticed: {mutant.name}\n{nursery.told[-2000:]}"


def test_the_same_tests_pass_without_a_mutant(nursery: Nursery, tmp_path: Path) -> None:
    """What notices mutants does not fail anyway: here one test of each file; elsewhere they all run."""
    of_file = {test.partition("::")[0]: test for mutant in MUTANTS for test in mutant.tests if "::" in test}
    assert nursery.run(copied(tmp_path), *of_file.values()) == PASSED, nursery.told[-2000:]


def test_the_copy_is_what_is_tested(nursery: Nursery, tmp_path: Path) -> None:
    """Tests that ran against the installed package would prove nothing."""
    package = copied(tmp_path)
    package.unlink()
    assert nursery.run(package, *STORM[:1]) == WRONG_PACKAGE


@pytest.mark.parametrize("new", ["if lost_name:\n", "import lost_module\n    if True:\n"])
def test_a_mutant_that_is_no_program_is_not_noticed(new: str, nursery: Nursery, tmp_path: Path) -> None:
    """A test that fails because a name is missing shows nothing about the check."""
    package = copied(tmp_path)
    apply(MUTANTS[0]._replace(new=new), package)
    assert nursery.run(package, *STORM[:1]) == WRONG_REASON


def test_a_failing_seed_says_how_to_see_it_again(nursery: Nursery, tmp_path: Path) -> None:
    """The command that a failing seed prints works, and shows the same violation at the end of its trace."""
    package = copied(tmp_path)
    apply(MUTANTS[0], package)
    assert nursery.run(package, "--tb=short", *STORM) == FAILED
    seen_again = re.search(re.escape(COMMAND) + r" (\d+)", nursery.told)
    assert seen_again is not None, nursery.told
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
    assert verdict.removeprefix("BROKEN: ") in nursery.told
