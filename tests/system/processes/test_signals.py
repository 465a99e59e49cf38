"""A `coord lock` that waits and is told to end leaves the line before it goes."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.support.process_group import PATIENCE_S, ProcessGroup

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def command(group: ProcessGroup, *words: str) -> "subprocess.Popen[str]":
    """Start a command in the repository of the group, without the environment of the test run."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(group.repository), "USER": "tester"}
    return subprocess.Popen(
        [sys.executable, "-m", "coord.transports.cli.main", *words, "--url", group.url],
        cwd=group.repository,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("sent_signal", SIGNALS, ids=lambda each: each.name)
def test_a_command_in_line_withdraws_when_it_is_told_to_end(
    group: ProcessGroup, sent_signal: signal.Signals
) -> None:
    """DESIGN 6: SIGTERM and SIGINT withdraw, also right after the request was written; the exit code names
    the signal, and nothing goes to who is gone."""
    (holder,) = group.scripted_sessions("holder")
    assert holder.ask("acquire", "src/a.py", ttl_s=3_600)["outcome"] == "granted"
    with command(group, "lock", "src/a.py", "--session", "impatient") as waiting:
        try:
            group.log.until("lock.waiting", session="impatient")
            waiting.send_signal(sent_signal)
            out, _ = waiting.communicate(timeout=PATIENCE_S)
        finally:
            waiting.kill()
    assert waiting.returncode == 128 + sent_signal
    assert json.loads(out)["error"]["code"] == "interrupted"
    assert group.log.events_of("lock.withdrawn", session="impatient")
    holder.ask("unlock", "src/a.py")
    assert not group.log.events_of("lock.acquired", session="impatient")
    assert holder.ask("locks") == []
