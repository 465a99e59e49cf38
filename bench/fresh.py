"""Fresh processes: what a store costs somebody who has just come."""

import json
import subprocess
import sys
from pathlib import Path

from bench.workload import TENANT

ROOT = Path(__file__).resolve().parent.parent

OPEN = """
import json, sys, time
from coord import TaskCoordinator
url, tenant = sys.argv[1:]
began = time.perf_counter()
coordinator = TaskCoordinator.open(url)
coordinator.get_task_state(tenant, "shop", "A-001-nobody-knows-it")
took = time.perf_counter() - began
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
megabytes = {name: int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}
coordinator.close()
print(json.dumps({"open_ms": took * 1000, "rss_mb": megabytes["VmRSS"], "peak_mb": megabytes["VmHWM"]}))
"""


def run(words: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process from the root of the project; a failure shows what it said."""
    done = subprocess.run(
        [sys.executable, *options, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{words[:2]} failed:\n{done.stderr[-2000:]}")
    return done


def open_in_fresh_process(url: str) -> dict[str, float]:
    """Open a store and ask one question; return how long that took, and the memory it left in use."""
    answer: dict[str, float] = json.loads(run(["-c", OPEN, url, TENANT]).stdout)
    return answer
