"""A `coord lock` that waits and is told to end leaves the line before it goes."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.support.process_group import PATIENCE_S, Crew

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def command(crew: Crew, *words: str) -> "subprocess.Popen[str]":
    """Start a command line in the repository of the crew, free of what surrounds the test run."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(crew.repository), "USER": "tester"}
    return subprocess.Popen(
        [sys.executable, "-m", "coord.transports.cli.main", *words, "--url", crew.url],
        cwd=crew.repository,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("told", SIGNALS, ids=lambda each: each.name)
def test_a_command_in_line_withdraws_when_it_is_told_to_end(crew: Crew, told: signal.Signals) -> None:
    """DESIGN 6: SIGTERM and SIGINT withdraw, also right after the request was written; the exit code names
    the signal, and nothing goes to who is gone."""
    (holder,) = crew.players("holder")
    assert holder.ask("acquire", "src/a.py", ttl_s=3_600)["outcome"] == "granted"
    with command(crew, "lock", "src/a.py", "--session", "impatient") as waiting:
        try:
            crew.story.until("lock.waiting", session="impatient")
            waiting.send_signal(told)
            out, _ = waiting.communicate(timeout=PATIENCE_S)
        finally:
            waiting.kill()
    assert waiting.returncode == 128 + told
    assert json.loads(out)["error"]["code"] == "interrupted"
    assert crew.story.told("lock.withdrawn", session="impatient")
    holder.ask("unlock", "src/a.py")
    assert not crew.story.told("lock.acquired", session="impatient")
    assert holder.ask("locks") == []
