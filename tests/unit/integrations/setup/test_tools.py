"""The hook command before a call refuses the call itself if the program of coord cannot."""

import subprocess
import sys
from pathlib import Path

import pytest

from coord.integrations.setup import tools
from coord.integrations.setup.tools import CLAUDE, TOOLS, Tool, hooks_of
from tests.support.setup_folders import write
from tests.support.shells import installed_shell

PROGRAM = tools.program("integrations/hooks/main.py")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the shell wait for one second only."""
    monkeypatch.setenv("COORD_HOOK_DEADLINE", "0.05")
    monkeypatch.setattr(tools, "ANSWER_S", 1)


def played(tool: Tool, shell: str = "/bin/sh", **changes: str) -> tuple[int, str, str]:
    """Run the command of a tool before a call, with other words in it; return its exit code and output."""
    command = hooks_of(tool, shared=False)[tool.before]["hooks"][0]["command"]
    for old, new in changes.items():
        command = command.replace({"python": sys.executable, "program": PROGRAM}[old], new)
    done = subprocess.run(
        [shell, "-c", command], input="{}", capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])
@pytest.mark.parametrize(("gone", "shell"), [("python", "sh"), ("program", "sh"), ("program", "fish")])
def test_a_program_that_is_gone(tool: Tool, gone: str, shell: str) -> None:
    """Issue 15: a cache was cleaned, or an environment removed; no tool takes that for a permission."""
    code, out, errors = played(tool, installed_shell(shell), **{gone: "/nowhere/hooks/main.py"})
    assert (code, out) == (2, "")
    assert errors.startswith("coord: the hook cannot run, ")
    assert errors.endswith("is gone. Nothing was changed. A person has to run coord doctor --fix\n")


@pytest.mark.parametrize("code", [1, 3, 126, 127, 139])
@pytest.mark.parametrize("tool", TOOLS[:2], ids=[tool.name for tool in TOOLS[:2]])
def test_a_program_that_fails(tmp_path: Path, code: int, tool: Tool) -> None:
    """A broken Python ends with codes that tools take for a permission."""
    write(tmp_path / "python", f"#!/bin/sh\nexit {code}\n", 0o755)
    found = played(tool, python=str(tmp_path / "python"))
    assert (found[0], found[2].startswith("coord: the hook failed")) == (2, True)


def test_the_shell_of_the_user(tmp_path: Path) -> None:
    """A tool may run its hooks by a shell that knows no `$?`: what fails there is refused as well."""
    write(tmp_path / "python", "#!/bin/sh\nexit 1\n", 0o755)
    code, _, errors = played(CLAUDE, installed_shell("fish"), python=str(tmp_path / "python"))
    assert (code, errors.startswith("coord: the hook failed")) == (2, True)


@pytest.mark.parametrize("code", [0, 2])
def test_an_answer_is_passed_on(tmp_path: Path, code: int) -> None:
    """The shell changes neither the input, nor the output, nor the code of an answer."""
    write(tmp_path / "python", f"#!/bin/sh\ncat\necho said >&2\nexit {code}\n", 0o755)
    assert played(TOOLS[2], python=str(tmp_path / "python")) == (code, "{}", "said\n")


def test_a_hook_that_is_frozen(tmp_path: Path) -> None:
    """Issue 15: a stopped process answers nothing; the shell kills it and refuses in time."""
    write(tmp_path / "python", "#!/bin/sh\nkill -STOP $$\n", 0o755)
    code, _, errors = played(TOOLS[1], python=str(tmp_path / "python"))
    assert (code, "coord: the hook failed, or did not answer within 1 s" in errors) == (2, True)
