"""The modules of the page that compute are tested with Node's own runner, a file each."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(each.name for each in HERE.glob("*.test.mjs"))
NODE = shutil.which("node") or ""
PATIENCE_S = 60


@pytest.mark.skipif(
    not NODE, reason="node is not installed: the package of your system, as for tools/setup agents"
)
@pytest.mark.parametrize("name", FILES)
def test_node_runs_the_tests_of(name: str) -> None:
    """Without `--test` a file runs in one process, which is twice as fast."""
    done = subprocess.run(
        [NODE, str(HERE / name)], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout.replace("ℹ", "#")
