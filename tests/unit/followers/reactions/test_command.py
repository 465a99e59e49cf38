"""A command runs without a shell, in nobody's name, in bounded time and output, and leaves nothing."""

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from coord.core.errors import Refused
from coord.followers.reactions.command import OUTPUT_CHARS_MAX, Failed, environment, run
from coord.followers.reactions.events import Delivery, Position
from coord.host.caller import shows_agent

DELIVERY = Delivery(Position(7, 1), "task.completed", 5, {"task": "$(touch owned)", "agent": "ada"}, hops=1)
AGENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/h",
    "XDG_STATE_HOME": "/s",
    "LC_ALL": "C",
    "COORD_SESSION_ID": "ada-1",
    "COORD_AGENT": "ada",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_SESSION_ID": "x",
    "COORD_TOKEN": "secret",
    "NPM_TOKEN": "npm",
    "LD_PRELOAD": "evil.so",
    "COORD_PROJECT": "p",
}


def ran(tmp_path: Path, *arguments: str, timeout_s: float = 60, stop: threading.Event | None = None) -> str:
    environ = environment(AGENT, ["NPM_TOKEN"], DELIVERY, "deploy")
    return run(arguments, str(tmp_path), environ, timeout_s, stop or threading.Event()).output


def test_it_gets_the_event_and_nobodys_name() -> None:
    """It is the session of its reaction: not the agent that caused the event, and not a person either."""
    environ = environment(AGENT, ["NPM_TOKEN"], DELIVERY, "deploy")
    event = json.loads(environ.pop("COORD_EVENT"))
    assert (event["task"], event["id"], event["event"]) == ("$(touch owned)", "7.1.deploy", "task.completed")
    assert environ == {
        **{name: AGENT[name] for name in ("PATH", "HOME", "XDG_STATE_HOME", "LC_ALL", "NPM_TOKEN")},
        "COORD_EVENT_NAME": "task.completed",
        "COORD_DELIVERY": "7.1.deploy",
        "COORD_HOPS": "2",
        "COORD_SESSION_ID": "reaction-deploy",
        "COORD_AGENT": "reaction",
    }
    assert shows_agent(environ)


def test_no_shell_reads_an_argument(tmp_path: Path) -> None:
    assert ran(tmp_path, "printf", "%s", "$(touch owned); `id`") == "$(touch owned); `id`"
    assert list(tmp_path.iterdir()) == []


def test_a_failure_says_what_the_command_said(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="ended with 3 two tests failed"):
        ran(tmp_path, "sh", "-c", "echo two tests failed; exit 3")
    with pytest.raises(Failed, match="No such file"):
        ran(tmp_path, "no-such-program")
    with pytest.raises(Failed, match="No such file"):
        run(["true"], f"{tmp_path}/gone", {}, 5, threading.Event())


def test_output_is_bounded_and_cannot_control_a_terminal(tmp_path: Path) -> None:
    output = ran(tmp_path, sys.executable, "-c", r"print('x' * 3_000_000 + '\x1b[2J' + 'end')")
    assert output.endswith(r"\x1b[2Jend")
    assert len(output) <= 2 * OUTPUT_CHARS_MAX


@pytest.mark.parametrize("stops", [True, False])
def test_what_takes_too_long_ends_with_all_that_it_started(tmp_path: Path, *, stops: bool) -> None:
    os.mkfifo(tmp_path / "fifo")
    stop = threading.Event()
    if stops:
        stop.set()
    with pytest.raises(Refused if stops else Failed, match="coord stops" if stops else "did not end within"):
        ran(tmp_path, "sh", "-c", "sleep 600 > fifo & wait", timeout_s=0.01, stop=stop)
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert os.read(reader, 1) == b"", "no process has the other end"
    finally:
        os.close(reader)
