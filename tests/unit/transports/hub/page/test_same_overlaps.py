"""The page shows a holder beside whatever its lock covers: resources overlap there as they do in the core."""

import json
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from coord.core.locks.resources import parse_resource

SCRIPT = Path(__file__).with_name("compare_overlaps.mjs")
NODE = shutil.which("node") or ""
PATIENCE_S = 60
NAMES = ("name:src", "name:SRC", "name:src/a.py", "name:main", "project:shop", "project:Shop")
PATHS = (".", "a", "src", "SRC/A.py", "src/a.py", "src/b", "src/b/a.py", "srca", "src/test_x.py", "app/x")
GLOBS = (
    *("*", "*/a.py", "**/a.py", "src/*", "src/*.py", "src/**/*.py", "src/?.py", "src/b/*/x", "src/*/x.py"),
    *("src/a/*.py", "src/te*st_*.py", "a**b"),
)
VAGUE = (r"app/\[id\]/page.tsx", "app/[id]/page.tsx", "app/[!x]", "src/[ab].py", r"a\*b", "src/**")
"""Where the page may see an overlap too many: it does not read classes and escapes."""


@pytest.mark.skipif(not NODE, reason="node is not installed: tools/setup agents")
def test_resources_overlap_as_in_the_core() -> None:
    resources = [*NAMES, *(f"file:{each}" for each in (*PATHS, *GLOBS, *VAGUE))]
    pairs = list(product(resources, resources))
    done = subprocess.run(
        [NODE, str(SCRIPT)],
        input=json.dumps(pairs),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    vague = {f"file:{each}" for each in VAGUE}
    wrong = []
    for (one, other), shown in zip(pairs, json.loads(done.stdout), strict=True):
        (mine,), (theirs,) = parse_resource(one, "repo"), parse_resource(other, "repo")
        if shown != mine.overlaps(theirs) and not (shown and {one, other} & vague):
            wrong.append((one, other, shown))
    assert wrong == []
