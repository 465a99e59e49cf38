"""What the page counts over time, as data: the hub counts the log with it, the page what comes after.

`COUNTS`: an event adds one to a series, or the number in its `field`. `SPANS`: a field of an event is a
duration, in units of which `scale` are a second; a zero is none. `LEVELS`: how many things exist at a time;
an event begins one or ends it, and the named fields say which one. An event that has `unless` begins none.
"""

from typing import Any

COUNTS: dict[str, list[dict[str, str]]] = {
    "task.completed": [{"series": "tasks_done"}],
    "task.failed": [{"series": "tasks_failed"}],
    "task.errored": [{"series": "tasks_failed"}],
    "task.expired": [{"series": "leases_expired"}],
    "task.result_rejected": [{"series": "results_rejected"}],
    "git.committed": [{"series": "commits"}],
    "git.merged": [{"series": "merges"}],
    "git.merge_refused": [{"series": "merges_refused"}],
    "git.commit_refused": [{"series": "commits_refused"}],
    "file.edited": [{"series": "edits"}],
    "file.restored": [{"series": "files_restored", "field": "file_count"}],
    "lock.acquired": [{"series": "locks"}],
    "lock.denied": [{"series": "denied"}],
    "lock.deadlock": [{"series": "deadlocks"}],
    "message.sent": [{"series": "messages"}],
    "message.sent_to_group": [{"series": "messages"}],
    "usage.reported": [
        {"series": "cost", "field": "cost"},
        {"series": "cost", "field": "estimated"},
        {"series": "tokens", "field": "input"},
        {"series": "tokens", "field": "output"},
    ],
}
SPANS: dict[str, dict[str, Any]] = {
    "lock.acquired": {"series": "lock_wait", "field": "waited_ms", "scale": 1000},
    "lock.released": {"series": "lock_hold", "field": "held_s", "scale": 1},
    "task.completed": {"series": "claim_to_done", "field": "worked_ms", "scale": 1000},
}
_CLAIM, _WAIT = ["project", "task"], ["id"]
LEVELS: dict[str, dict[str, Any]] = {
    "agents": {
        "begins": {"session.registered": ["session"]},
        "ends": {"session.ended": ["session"]},
        "unless": "person",
    },
    "working": {
        "begins": {"task.claimed": _CLAIM},
        "ends": dict.fromkeys(
            ("task.completed", "task.released", "task.expired", "task.superseded", "task.reset"), _CLAIM
        ),
    },
    "waiting": {
        "begins": {"lock.waiting": _WAIT},
        "ends": {"lock.withdrawn": _WAIT, "lock.wait_ended": _WAIT},
    },
}
BOUNDS_S = (0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
"""Upper bounds of the classes that durations are counted in; the last class has none."""

COUNTED = tuple(dict.fromkeys(each["series"] for found in COUNTS.values() for each in found))
TIMED = tuple(dict.fromkeys(each["series"] for each in SPANS.values()))
EVENTS = frozenset(
    (
        *COUNTS,
        *SPANS,
        *(event for level in LEVELS.values() for part in ("begins", "ends") for event in level[part]),
    )
)
RULES: dict[str, Any] = {"counts": COUNTS, "spans": SPANS, "bounds_s": BOUNDS_S}
"""What the page needs to count later entries; its tables have the levels."""
