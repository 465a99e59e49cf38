"""Which hub runs, as its state file and the kernel say."""

import os
import subprocess

from coord.host.processes import describe
from coord.sdk.remote.address import HubState, is_running


def test_a_zombie_is_no_hub() -> None:
    """A hub that was killed keeps its pid until its parent asks for it."""
    child = subprocess.Popen(["sleep", "60"])
    process = describe(child.pid)
    assert process is not None
    state = HubState(child.pid, process.start, "0.1.0", "/nowhere")
    assert is_running(state)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_running(state)
    child.wait()
    assert not is_running(state)
