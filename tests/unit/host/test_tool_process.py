"""Which process is the tool: real tools, hooks, wrappers, adopted orphans and containers."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import tool_with_hook
from tests.support.servers.server import poll_until

PROGRAM = (sys.executable, tool_with_hook.__file__)
PR_SET_CHILD_SUBREAPER = 36
ADOPTS = (
    "import ctypes, signal, subprocess, sys\n"
    f"ctypes.CDLL(None).prctl({PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0)\n"
    "subprocess.run(sys.argv[1:])\n"
    "sys.stdin.read()\n"
)
"""A program that runs another one, adopts its orphans, and stays until its input ends."""
PASSES_ON = "import subprocess, sys; subprocess.run(sys.argv[1:])"
"""A wrapper of no known name, which passes its input and output on, as `uv run` and `npx` do."""


class ToolRun:
    """A tool with its hook below it."""

    def __init__(self, folder: Path, *before: str, **options: Any) -> None:
        self._result = folder / "result"
        self._tool = subprocess.Popen(
            [*before, *PROGRAM, "tool", json.dumps({"result": str(self._result), **options})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._tool.stdout is not None
        assert self._tool.stdout.readline() == "ready\n"
        own = "\0".join((*PROGRAM, "tool", json.dumps({"result": str(self._result)})[:-1])).encode()
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        (self.pid,) = [pid for pid in pids if command_line(pid).startswith(own)]

    def go_on(self) -> dict[str, Any]:
        """Let the hook finish while its tool lives."""
        assert self._tool.stdin is not None
        self._tool.stdin.write("\n")
        self._tool.stdin.flush()
        return self.found()

    def kill(self) -> dict[str, Any]:
        """Kill the tool while its hook waits for input."""
        os.kill(self.pid, 9)
        return self.found()

    def found(self) -> dict[str, Any]:
        poll_until(self._result.exists, 30, "the hook does not finish")
        found: dict[str, Any] = json.loads(self._result.read_text())
        return found

    def close(self) -> None:
        with self._tool:  # closes its streams: a tool that waits for input ends
            pass


def parents(pid: int) -> Iterator[int]:
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
        if pid:
            yield pid


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[Any]:
    """Return a function that starts a tool with its hook."""
    started: list[ToolRun] = []

    def start(*before: str, **options: Any) -> ToolRun:
        started.append(ToolRun(tmp_path, *before, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.mark.parametrize(
    "under",
    [
        (),
        ("sh", "-c", '"$0" "$@"; true'),
        ("sh", "-c", 'exec "$0" "$@"'),
        ("bash", "-c", 'env X=1 timeout 60 "$0" "$@"; true'),
        (sys.executable, "-c", PASSES_ON),
        ("sh", "-c", '"$0" "$@"; true', sys.executable, "-c", PASSES_ON),
    ],
    ids=["direct", "shell", "exec", "env and timeout", "a wrapper of any name", "shell and wrapper"],
)
def test_the_tool_is_found_behind_whatever_runs_its_hook(tool: Any, under: tuple[str, ...]) -> None:
    """Issue 15: a wrapper ends with its hook; its death would prove the tool dead while it works."""
    run = tool(under=under)
    assert run.go_on()["pid"] == run.pid


@pytest.mark.parametrize(
    "options", [{"stdin": "socket"}, {"detached": True}, {"names_itself": True}], ids=str
)
def test_a_tool_is_proven(tool: Any, options: dict[str, Any]) -> None:
    """The maker of our socket, the reader of our answer (also from a session of our own), a named pid."""
    run = tool(stdout="file" if "detached" not in options else "", tool="claude", **options)
    assert run.go_on() == {"pid": run.pid, "gone": False, "above": run.found()["above"]}


def test_the_named_pid_of_another_tool_is_not_ours(tool: Any) -> None:
    """A tool that runs below Claude Code inherits CLAUDE_PID, which names the outer one."""
    run = tool(env={"CLAUDE_PID": str(os.getpid())}, tool="codex")
    assert run.go_on()["pid"] == run.pid


def test_without_a_proof_there_is_no_process(tool: Any) -> None:
    """Nothing shows who started the hook: the session has no process, so its locks expire by time."""
    found = tool(stdout="file").go_on()
    assert (found["pid"], found["gone"]) == (0, False)


def test_a_tool_that_shares_its_output_proves_nothing(tool: Any) -> None:
    """It holds the same end of the pipe as its hook, as any process that inherited it does."""
    found = tool(stdout="inherited").go_on()
    assert (found["pid"], found["gone"]) == (0, False)


@pytest.mark.parametrize("under", [(), ("sh", "-c", '"$0" "$@"; true')], ids=["direct", "shell"])
@pytest.mark.parametrize("detached", [False, True], ids=["same session", "own session"])
def test_a_hook_whose_tool_was_killed_has_no_tool(tool: Any, detached: bool, under: tuple[str, ...]) -> None:
    """Issue 15, attack 1: the orphan's new parent, pid 1 or whoever adopts it, is never the tool."""
    found = tool(under=under, detached=detached).kill()
    assert (found["pid"], found["gone"]) == (0, True)


@pytest.mark.parametrize("stdout", ["pipe", "file"])
@pytest.mark.parametrize("detached", [False, True], ids=["same session", "own session"])
def test_whoever_adopts_an_orphan_is_not_its_tool(tool: Any, detached: bool, stdout: str) -> None:
    """A process that adopts orphans (`systemd --user`, a container's init) is an ancestor, never the tool."""
    run = tool(sys.executable, "-c", ADOPTS, detached=detached, stdout=stdout)
    found = run.kill()
    assert found["pid"] == 0
    assert found["gone"] or stdout == "file"


def test_an_orphan_without_its_session_was_adopted(tool: Any) -> None:
    """The parent is in another session, and the hook began none: only an orphan looks like that."""
    run = tool(sys.executable, "-c", ADOPTS, "setsid", "--wait", stdout="file")
    found = run.kill()
    assert (found["pid"], found["gone"]) == (0, True)


def test_a_tool_that_outlives_its_launcher_is_found(tool: Any) -> None:
    """The launcher of a tool may be killed: the tool was adopted, but its hook has the right parent."""
    run = tool("sh", "-c", '"$0" "$@"; true')
    launcher = next(iter(parents(run.pid)))
    assert launcher != os.getpid()
    os.kill(launcher, 9)
    poll_until(lambda: next(iter(parents(run.pid))) != launcher, 30, "the tool is not adopted")
    assert run.go_on()["pid"] == run.pid


@pytest.mark.parametrize("kind", ["the tool", "its init"])
def test_the_first_process_of_a_container(tool: Any, kind: str) -> None:
    """A tool that is pid 1 is no orphan's parent, but proves no death; below an init it is as anywhere."""
    inside = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    run = tool(*inside, *(("sh", "-c", '"$0" "$@"; true') if kind == "its init" else ()))
    found = run.go_on()
    assert (found["pid"] > 1, found["gone"]) == (kind == "its init", False)
    assert 1 not in found["above"]


@pytest.mark.parametrize("stdout", ["pipe", "file"])
def test_a_killed_tool_below_the_first_process_of_a_container(tool: Any, stdout: str) -> None:
    """In a container the orphan goes to its pid 1, whatever program that is."""
    inside = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    run = tool(
        *inside,
        sys.executable,
        "-c",
        "import subprocess, sys; subprocess.run(sys.argv[1:]); sys.stdin.read()",
        stdout=stdout,
    )
    found = run.kill()
    assert (found["pid"], found["gone"]) == (0, True)


def test_the_processes_of_a_service_manager_are_not_related(tmp_path: Path) -> None:
    """A session that an earlier version bound to `systemd --user` stands above nobody."""
    manager = tmp_path / "systemd"
    manager.write_text(f"#!{sys.executable}\nimport subprocess, sys\nsubprocess.run(sys.argv[1:])\n")
    manager.chmod(0o755)
    code = "from coord.host.processes import *; print(len(ancestors()), len(lineage()) > 2)"
    done = subprocess.run(
        [str(manager), sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("0 True")
