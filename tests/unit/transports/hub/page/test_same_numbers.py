"""A report counts a log as the hub does, now and at an earlier time."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coord.core.page.state import PageState
from coord.sdk.log_reader import first_offset
from coord.sdk.page.numbers import MINUTE_MS, MINUTES_KEPT, Numbers
from coord.transports.hub.page.report import SERIES
from tests.simulation.plan_world import PlanWorld

SCRIPT = Path(__file__).with_name("count_log.mjs")
NODE = shutil.which("node") or ""
PATIENCE_S = 60


def by_time(values: list[Any], from_ms: int, width_ms: int) -> dict[int, Any]:
    """Return what is not zero: one side may begin with the first entry, the other with the first counted."""
    rounded = (round(each, 6) if isinstance(each, float) else each for each in values)
    return {from_ms + place * width_ms: each for place, each in enumerate(rounded) if each}


@pytest.mark.skipif(not NODE, reason="node is not installed: tools/setup agents")
def test_a_report_counts_as_the_hub_does(monkeypatch: pytest.MonkeyPatch) -> None:
    world = PlanWorld(5)
    world.run()
    log = world.store
    oldest = max(0, first_offset(log) - 1)
    entries = log.tail(oldest, 100_000)
    monkeypatch.setattr(type(log), "now", lambda _: entries[-1].at)
    since = entries[-1].at - MINUTES_KEPT * MINUTE_MS // 2
    recent = [entry.at for entry in entries if entry.at > since]
    times = [*recent[:: max(1, len(recent) // 5)], recent[-1]]
    queries = [{"since": since, "buckets": size, "until": until} for until in times for size in (400, 20)]
    raw = [
        {"offset": each.offset, "at": each.at, "events": [json.loads(event) for event in each.events]}
        for each in entries
    ]
    given = {"base": PageState(offset=oldest), "series": SERIES, "entries": raw, "queries": queries}
    done = subprocess.run(
        [NODE, str(SCRIPT)],
        input=msgspec.json.encode(given),
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr.decode()
    counted = 0
    for query, found in zip(queries, json.loads(done.stdout), strict=True):
        series, offset, whole = Numbers(log).read(query["since"], query["buckets"], query["until"])
        assert (whole, series.width_ms) == (True, found["width_ms"])
        for kind in ("counts", "spans", "levels"):
            ours, theirs = getattr(series, kind), found[kind]
            assert ours.keys() == theirs.keys()
            for name, values in ours.items():
                expected = by_time(values, series.from_ms, series.width_ms)
                assert by_time(theirs[name], found["from_ms"], found["width_ms"]) == expected, (query, name)
                counted += len(expected)
        ended = query["until"] // MINUTE_MS * MINUTE_MS
        left = [each for each in entries if found["offset"] < each.offset <= offset]
        assert all(each.at >= ended for each in left)
    assert counted > 50
