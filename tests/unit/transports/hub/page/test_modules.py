"""The modules of the page that compute are tested with Node's own runner, a file each."""

import ast
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import coord.core.why

HERE = Path(__file__).parent
FILES = sorted(each.name for each in HERE.glob("*.test.mjs"))
NODE = shutil.which("node") or ""
PATIENCE_S = 60


def remedies() -> list[list[str]]:
    """Return the command of every remedy that `core/why` offers; X stands for what it computes."""
    found = []
    for path in Path(coord.core.why.__path__[0]).glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                named = {
                    each.targets[0].id: each.value
                    for each in ast.walk(function)
                    if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
                }
                found += [words for each in ast.walk(function) if (words := offered(each, named))]
    return found


def offered(node: ast.AST, named: dict[str, ast.expr]) -> list[str]:
    """Return the words of a call `offer(rank, depth, text, *words)`."""
    if not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "offer"
    ):
        return []
    words: list[ast.expr] = []
    for each in node.args[3:]:
        starred = (
            named[each.value.id]
            if isinstance(each, ast.Starred) and isinstance(each.value, ast.Name)
            else None
        )
        words += starred.elts if isinstance(starred, ast.Tuple) else [each]
    return [str(each.value) if isinstance(each, ast.Constant) else spelled(each) for each in words]


def spelled(node: ast.expr) -> str:
    """Return a text with an X for each value that is put into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values)
    return "X"


def test_remedies_are_found() -> None:
    """The tests of Node get them; none may be missed because it is written in another way."""
    assert len(remedies()) == 13
    assert all(each[0].isidentifier() for each in remedies())


@pytest.mark.skipif(
    not NODE, reason="node is not installed: the package of your system, as for tools/setup agents"
)
@pytest.mark.parametrize("name", FILES)
def test_node_runs_the_tests_of(name: str) -> None:
    """Without `--test` a file runs in one process, which is twice as fast."""
    environ = {**os.environ, "REMEDIES": json.dumps(remedies())}
    done = subprocess.run(
        [NODE, str(HERE / name)], capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout.replace("ℹ", "#")
