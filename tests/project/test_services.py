"""The examples that start a hub: systemd accepts the unit, and coord knows the commands in both."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import coord
from coord.transports.cli.parser import parse

EXAMPLES = Path(coord.__file__).parent / "examples"
UNIT, CONTAINER = EXAMPLES / "coord-hub.service", EXAMPLES / "Containerfile"


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """systemd-analyze names every key and value that it does not know, and only warns."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (docs/untested.md)")
    done = subprocess.run(
        [program, "verify", "--user", str(UNIT)],
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_commands_of_the_examples_are_known() -> None:
    lines = re.findall(r"^Exec\w+=/usr/bin/env (coord .+)$", UNIT.read_text(), re.MULTILINE)
    (words,) = re.findall(r"^CMD \[(.+)\]$", CONTAINER.read_text(), re.MULTILINE)
    lines.append(words.replace(",", ""))
    assert len(lines) == 3
    for line in lines:
        command = parse(shlex.split(line)[1:]).command
        assert command is not None
        assert command.name == "serve"
