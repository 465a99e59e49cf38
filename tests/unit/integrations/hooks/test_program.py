"""The program of an agent tool, read from its process and its package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coord.core.identity import Process
from coord.integrations.hooks.program import Program, program_of


def running(*words: str | Path, cwd: Path) -> Program:
    """Return what is found out about a process that runs these words until its input ends."""
    with subprocess.Popen(
        [*map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        found = program_of(Process(child.pid, 1))
        child.communicate()
    return found


@pytest.mark.parametrize("version", ["2.1.0", ""])
def test_a_script_belongs_to_its_package(tmp_path: Path, version: str) -> None:
    """SES-6: not the interpreter but the tool, with the version of its package; relative paths, too."""
    script = tmp_path / "tool/bin/tool.py"
    script.parent.mkdir(parents=True)
    script.write_text("print('up', flush=True); input()")
    if version:
        (tmp_path / "tool/package.json").write_text(f'{{"name": "tool", "version": "{version}"}}')
    assert running(sys.executable, "-u", "tool/bin/tool.py", cwd=tmp_path) == Program(str(script), version)


def test_a_program_named_by_its_version(tmp_path: Path) -> None:
    """Installers keep several versions side by side; the file has the number as its name."""
    program = tmp_path / "versions/2.1.325"
    program.parent.mkdir()
    shutil.copy(shutil.which("cat") or "/bin/cat", program)
    with subprocess.Popen([str(program)], stdin=subprocess.PIPE) as child:
        assert program_of(Process(child.pid, 1)) == Program(str(program), "2.1.325")
        child.communicate()


def test_nothing_is_guessed(tmp_path: Path) -> None:
    """Neither without a process, nor of one that is gone, nor from a damaged package."""
    script = tmp_path / "tool.py"
    script.write_text("print('up', flush=True); input()")
    (tmp_path / "package.json").write_text("{")
    assert running(sys.executable, "tool.py", cwd=tmp_path) == Program(str(script))
    assert program_of(None) == program_of(Process(2**22 + 1, 1)) == Program()
