"""How light coming in is: imports, and a first claim on SQLite, each in fresh processes."""

import re
from collections.abc import Iterator

from bench.figures import Figure
from bench.fresh import run
from bench.places import Places
from bench.scale import Scale

TIMED = "import time; began = time.perf_counter()\n{}\nprint((time.perf_counter() - began) * 1000)"
STEPS = {
    "import coord": "import coord",
    "from coord import TaskCoordinator": "from coord import TaskCoordinator",
    "import, open SQLite, one claim": (
        "from coord import TaskCoordinator\n"
        "coordinator = TaskCoordinator.open({url!r})\n"
        "coordinator.claim_task('local', 'shop', 'A-001-login', 'agent-a', 'session-1')\n"
        "coordinator.close()"
    ),
}
SLOWEST = 8
_LINE = re.compile(r"import time:\s+(?P<self>\d+) \|\s+(?P<all>\d+) \|\s+(?P<name>\S+)")


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the time of each step; they concern SQLite alone."""
    if store != "sqlite":
        return
    for name, code in STEPS.items():
        millis = []
        for _ in range(scale.processes):
            timed = TIMED.format(code.format(url=places.fresh_url(store)))
            millis.append(float(run(["-c", timed]).stdout))
        yield Figure.middle_of(millis, "imports", store, name, "ms")
    timed = STEPS["import, open SQLite, one claim"].format(url=places.fresh_url(store))
    listing = run(["-c", timed], "-X", "importtime").stderr
    for module, own_ms in slowest_modules(listing):
        yield Figure("imports", store, f"  of which {module} itself", own_ms, "ms")


def slowest_modules(listing: str) -> list[tuple[str, float]]:
    """Return the modules that took longest by themselves, in ms, from what -X importtime printed."""
    own = [
        (found["name"], int(found["self"]) / 1000)
        for found in map(_LINE.match, listing.splitlines())
        if found
    ]
    return sorted(own, key=lambda item: -item[1])[:SLOWEST]
