"""The memory of a process with live claims and many finished tasks, and of one that opens the same store."""

import json
from collections.abc import Iterator

from bench.figures import Figure
from bench.fresh import open_in_fresh_process, run
from bench.places import Places
from bench.scale import FULL, Scale

MOST_MB = 250.0
OPENINGS = 3


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the memory of the process that made it all, then what opening it costs another one."""
    url = places.fresh_url(store)
    size = f"{scale.live_claims:,} live claims, {scale.finished_tasks:,} finished tasks"
    words = ["-m", "bench.holder", url, str(scale.live_claims), str(scale.finished_tasks)]
    made = json.loads(run(words).stdout)
    asked = MOST_MB if scale.finished_tasks >= FULL.finished_tasks else None
    yield Figure("memory", store, f"memory, {size}", made["rss_mb"], "MB", most=asked, detail=made)
    if store == "memory":
        return
    opened = [open_in_fresh_process(url) for _ in range(OPENINGS)]
    millis = [each["open_ms"] for each in opened]
    yield Figure.middle_of(millis, "memory", store, f"open, {size}", "ms", detail=opened[-1])
