"""`python -m bench.holder URL LIVE FINISHED`: the process whose memory is measured; it prints JSON.

It imports what a program with coord imports and no more of the bench than it needs.
"""

import json
import sys
from pathlib import Path

from bench.workload import Workplace

BATCH = 1000


def resident_mb(field: str) -> float:
    """Return what this process has in memory (VmRSS), or had at its peak (VmHWM)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"/proc/self/status has no {field}")


def hold(url: str, live: int, finished: int) -> dict[str, float]:
    """Finish tasks and hold claims, as one long-lived process does; return what is in memory at the end."""
    empty = resident_mb("VmRSS")
    with Workplace(url) as place:
        for start in range(0, finished, BATCH):
            _, claimed = place.claim_batch(min(BATCH, finished - start))
            place.submit_batch(claimed)
        for start in range(0, live, BATCH):
            place.claim_batch(min(BATCH, live - start))
        return {"empty_mb": empty, "rss_mb": resident_mb("VmRSS"), "peak_mb": resident_mb("VmHWM")}


if __name__ == "__main__":
    print(json.dumps(hold(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
