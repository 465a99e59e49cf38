"""Every mutant still has its place in the source and its tests; this says at once which one has lost them."""

import ast
import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.anchors import LostAnchorError, changed
from tests.mutation.catalogue import MUTANTS

ROOT = Path(__file__).parents[2]
SOURCE = """\
LIMIT = 3


class Door:
    OPEN = "open"

    @property
    def state(self):
        def inner():
            return LIMIT
        return inner() + LIMIT


def other():
    return LIMIT
"""


def test_every_mutant_has_its_place_in_the_source() -> None:
    lost = []
    for mutant in MUTANTS:
        for anchor, old, new in mutant.changes:
            try:
                file, source = changed(anchor, old, new, ROOT / "src" / "coord")
                compile(source, file, "exec")
            except (LostAnchorError, SyntaxError) as error:
                lost.append(f"{mutant.name}: {error}")
    assert not lost, "\n".join(lost)


def test_every_mutant_uses_names_that_exist(tmp_path: Path) -> None:
    """One that fails for a name that is nowhere would fail any test, and show nothing about the check."""
    for number, mutant in enumerate(MUTANTS):
        for place, change in enumerate(mutant.changes):
            _, source = changed(*change, ROOT / "src" / "coord")
            (tmp_path / f"mutant_{number}_{place}.py").write_text(f"# {mutant.name}\n{source}")
    assert undefined_names(tmp_path) == []
    (tmp_path / "mutant.py").write_text("def check() -> int:\n    return lost_name\n")
    assert undefined_names(tmp_path) == ["mutant.py"]


def undefined_names(folder: Path) -> list[str]:
    """Return the files below a folder that use a name that nothing defines."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        "F821,F822,F823",
    ]
    done = subprocess.run(
        [*command, "--output-format", "json", str(folder)], capture_output=True, text=True, check=False
    )
    return sorted({Path(each["filename"]).name for each in json.loads(done.stdout)})


def test_every_mutant_names_tests_that_exist() -> None:
    lost = [
        f"{mutant.name}: there is no {test}"
        for mutant in MUTANTS
        for test in mutant.tests
        if test.startswith("tests/") and not exists(test)
    ]
    assert not lost, "\n".join(lost)


def exists(test: str) -> bool:
    """Tell whether a test file has a test of that name."""
    path, _, name = test.partition("::")
    return (ROOT / path).is_file() and (not name or name.partition("[")[0] in names_in(ROOT / path))


@functools.cache
def names_in(file: Path) -> frozenset[str]:
    """Return the names of the test functions of a file, and of those that it imports."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.alias))


def test_names_of_mutants_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package of one module, `coord.house.door`."""
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "door.py").write_text(SOURCE)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "line"),
    [
        ("LIMIT", "3", "LIMIT = 4"),
        ("Door.OPEN", '"open"', "    OPEN = 4"),
        ("Door.state", "+ LIMIT", "        return inner() 4"),
        ("Door.state.inner", "LIMIT", "            return 4"),
        ("other", "LIMIT", "    return 4"),
    ],
)
def test_a_change_stays_inside_its_anchor(name: str, old: str, line: str, package: Path) -> None:
    source = changed(f"coord.house.door:{name}", old, "4", package)[1]
    assert set(source.splitlines()) - set(SOURCE.splitlines()) == {line}


@pytest.mark.parametrize(
    ("anchor", "old", "message"),
    [
        ("coord.house.door:another", "LIMIT", "no module has another"),
        ("coord.house.gate:other", "LIMIT", "other is in coord.house.door"),
        ("coord.house.door:other", "3", "'3' 0 times"),
        ("coord.house.door:Door.state", "LIMIT", "'LIMIT' 2 times"),
    ],
)
def test_a_lost_anchor_says_what_is_missing(anchor: str, old: str, message: str, package: Path) -> None:
    with pytest.raises(LostAnchorError, match=message):
        changed(anchor, old, "4", package)
