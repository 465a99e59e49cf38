"""What the kernel counts for a process and those below it."""

import os
import subprocess
import sys

from coord.core.alerts.commands import WatchedProcess
from coord.core.alerts.schema import Sample
from coord.core.alerts.stuck import is_busy
from coord.core.identity import Process
from coord.host.processes import describe
from coord.host.runtime.process_activity import take_samples

PROGRAM = """
import os, subprocess, sys
for line in sys.stdin:
    if line == "compute\\n":
        start = os.times()
        while sum(os.times()[:2]) - sum(start[:2]) < 0.2: pass
    elif line == "child\\n":
        child = subprocess.Popen(["sleep", "1000"])
    elif line == "read\\n":
        open("/dev/zero", "rb").read(200_000)
    print("done", flush=True)
    if line == "end\\n": child.kill(); child.wait(); break
"""


def test_what_a_process_and_its_children_do() -> None:
    """Computing, reading and starting a child all show; doing nothing shows nothing."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        process = describe(running.pid)
        assert process is not None
        assert running.stdin is not None
        assert running.stdout is not None

        def after(word: str) -> Sample:
            running.stdin.write(f"{word}\n")  # type: ignore[union-attr]
            running.stdin.flush()  # type: ignore[union-attr]
            assert running.stdout.readline() == "done\n"  # type: ignore[union-attr]
            (found,) = take_samples([WatchedProcess("s", process)])
            assert (found.session_id, found.process) == ("s", process)
            return found.sample

        first, second = after("nothing"), after("nothing")
        assert not is_busy(first, second, 60_000)
        computed = after("compute")
        assert computed.cpu_ms - second.cpu_ms >= 150
        read = after("read")
        assert read.read_bytes - computed.read_bytes >= 200_000
        assert is_busy(computed, read, 60_000)
        with_child = after("child")
        assert (with_child.processes, with_child.newest > read.newest) == (2, True)
        after_end = [WatchedProcess("s", process)]
        running.stdin.write("end\n")
        running.stdin.flush()
        running.wait()
    assert take_samples(after_end) == ()


def test_processes_that_are_not_the_ones_meant() -> None:
    """Another start time, another machine: nothing is known about those."""
    here = describe(os.getpid())
    assert here is not None
    other_start = Process(here.pid, here.start + 1, here.machine, here.boot, here.namespace)
    elsewhere = Process(here.pid, here.start, "another", here.boot, here.namespace)
    assert take_samples([WatchedProcess("a", other_start), WatchedProcess("b", elsewhere)]) == ()
