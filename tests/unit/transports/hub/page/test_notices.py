"""Every event goes through the page's table of notices: each gives one, or deliberately none."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coord.core.events import every_event
from coord.core.page.notices import NOTICES, SILENT, Notice
from tests.support.hub.page_events import EVERY_EVENT, sample_event

NODE = shutil.which("node") or ""
pytestmark = pytest.mark.skipif(not NODE, reason="node is not installed")
SCRIPT = Path(__file__).with_name("print_notices.mjs")
SAMPLES = {str(kind.__struct_config__.tag): sample_event(kind, 7) for kind in every_event()}
SNAPSHOT = {
    "offset": 9,
    "at": 9,
    "tables": {
        "sessions": {"ada": {"session": "ada"}, "ida": {"session": "ida", "person": True}},
        "tasks": {"p\nt": {"project": "p", "task": "t", "session": "ada", "state": "in_progress"}},
    },
}
READER = {"token": "t-ida", "session": "ida-t-ida"}
HOSTILE: tuple[Any, ...] = (
    None,
    5,
    True,
    [],
    {},
    [["x"]],
    {"a": 1},
    "",
    "\ud800",
    "__proto__",
    "<b>\u202e\u0000",
    {"toString": 1, "valueOf": 1},
)


def notices(tmp_path: Path, events: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Return the notice of each event, as the page makes it."""
    asked = {
        "table": msgspec.to_builtins(NOTICES),
        "snapshot": SNAPSHOT,
        "who": READER,
        "events": events,
    }
    file = tmp_path / "asked.json"
    file.write_text(json.dumps(asked))
    done = subprocess.run(
        [NODE, str(SCRIPT), str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any] | None] = json.loads(done.stdout)
    return found


def fitting(name: str, row: Notice) -> dict[str, Any]:
    """Return an event for which a row is made."""
    found = {**SAMPLES[name], **{field: values[0] for field, values in row.when.items()}}
    return {**found, "to": [READER["session"]]} if row.only == "me" else found


def test_every_row_fits_its_event(tmp_path: Path) -> None:
    """UI-2, UI-4: a crash and an alert are among them."""
    rows = [(name, row) for name, found in NOTICES.items() for row in found]
    told = notices(tmp_path, [fitting(name, row) for name, row in rows])
    for (name, row), found in zip(rows, told, strict=True):
        assert found is not None, (name, row)
        assert {each: found[each] for each in ("kind", "level", "tone", "shown", "event")} == {
            "kind": row.kind,
            "level": row.level,
            "tone": row.tone,
            "shown": row.title,
            "event": name,
        }
        assert found["path"].startswith("/")
        assert not found["path"].startswith("//")
    assert {
        "crashed",
        "alert",
        "question",
        "permission",
        "lost",
        "failed",
        "unmerged",
        "held",
        "emergency",
    } <= {row.kind for _, row in rows}


def test_everyday_work_and_own_acts_give_no_notice(tmp_path: Path) -> None:
    everyday = [SAMPLES[name] for name in sorted(SILENT)]
    own = [
        {**fitting(name, row), "origin": {"token": READER["token"]}}
        for name, found in NOTICES.items()
        for row in found
    ]
    assert {json.dumps(each) for each in notices(tmp_path, [*everyday, *own])} == {"null"}


def test_nothing_that_somebody_wrote_stops_the_page(tmp_path: Path) -> None:
    """Fields of other types than coord writes: a notice or none, and its link stays on the page."""
    events = [
        {**each, **{field: value for field in each if field not in ("event", *kept)}}
        for name, found in NOTICES.items()
        for row in found
        for each in (fitting(name, row),)
        for kept in ((), tuple(row.when))
        for value in HOSTILE
    ]
    told = [
        each
        for each in notices(tmp_path, [*events, *({"event": each} for each in HOSTILE[:-1]), *EVERY_EVENT])
        if each
    ]
    assert len(told) > 100
    assert {each["path"][0] for each in told} == {"/"}
    assert {each["path"][:2] for each in told} & {"//"} == set()
