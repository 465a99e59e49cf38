"""The pictures of a plan: in text, as SVG, and what a changed plan would change."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from coord.core.plans.commands import TaskInfo
from coord.transports.cli.main import main
from coord.transports.cli.plan_view.drawing import svg
from coord.transports.cli.plan_view.layout import lanes, steps
from coord.transports.cli.plan_view.text import picture
from coord.transports.cli.table import cells_wide
from tests.support.cli import Coord
from tests.support.terminals import Terminal

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</title><script>alert("1")</script> & \' \ufffe ]]> <!--'


def task(task_id: str, *depends_on: str, state: str = "pending", **fields) -> TaskInfo:
    texts = dict.fromkeys(("session_id", "agent", "note", "description", "type", "role"), "")
    numbers = dict.fromkeys(
        ("generation", "expires_ms", "retries", "retry_ms", "priority", "deadline_ms", "estimate_s"), 0
    )
    rest = {"track": task_id[0], "needs": [], "files": [], "requirements": {}, "retries_max": 3}
    given = {"task_id": task_id, "state": state, "depends_on": list(depends_on), "created_ms": 1}
    return TaskInfo(**{**texts, **numbers, **rest, **given, **fields})


SHOP = [
    task("A-001-core", state="done"),
    task("A-002-more", "A-001-core", state="in_progress", agent="ada"),
    task("B-001-schema", state="skipped"),
    task("B-002-tables", "B-001-schema", "A-002-more"),
    task("8.2", track="", description=HOSTILE),
]


def test_a_task_stands_one_step_after_the_last_it_depends_on() -> None:
    """Issue 4, part 2: columns are the order of the work; what is not there is passed over."""
    assert steps(SHOP) == {"A-001-core": 0, "A-002-more": 1, "B-001-schema": 0, "B-002-tables": 2, "8.2": 0}
    assert steps([task("A", "gone"), task("B", "A")]) == {"A": 0, "B": 1}
    assert steps([task("A", "B"), task("B", "A")]) == {"A": 0, "B": 0}, "it ends, whatever it is given"
    assert [(lane.track, lane.finished, len(lane.tasks)) for lane in lanes(SHOP)] == [
        ("", 0, 1),
        ("A", 1, 2),
        ("B", 1, 2),
    ]


def test_the_picture_has_a_row_per_track_and_a_column_per_step() -> None:
    """TID-14, TID-21: a sign per state, progress per track, dependencies across tracks by short ids."""
    assert picture(SHOP, 100).splitlines() == [
        "        step 1                  step 2                  step 3",
        "- 0 %   ○ 8.2",
        "A 50 %  ✔ A-001-core            ▶ A-002-more ada",
        "B 50 %  ↷ B-001-schema                                  ○ B-002-tables ⇠ A-002",
        "",
        "✔ 1 done  ↷ 1 skipped  ▶ 1 in_progress  ○ 2 pending",
    ]
    assert picture([], 100) == ""


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_the_picture_is_as_wide_as_the_terminal(width: int) -> None:
    """No line is wider than the terminal; steps that find no room stand below; no task is left out."""
    chain = [task(f"A-{n:03d}-x", *([f"A-{n - 1:03d}-x"] if n > 1 else [])) for n in range(1, 31)]
    shown = picture(chain, width)
    assert max(map(cells_wide, shown.splitlines())) <= max(width, 26)
    assert all(each.task_id in shown for each in chain)


def test_a_plan_of_ten_thousand_tasks_is_summed_up() -> None:
    """What nobody could see is counted: a line per track, at most a hundred of them."""
    many = [
        task(f"T{n % 150}-{n}", state="done" if n < 5000 else "ready", track=f"T{n % 150}")
        for n in range(10_000)
    ]
    lines = picture(many, 80).splitlines()
    assert len(lines) == 103
    assert lines[0] == "T0    ██████████░░░░░░░░░░  34 of 67  ✔ 34  ● 33"
    assert lines[100] == "… and 50 more tracks"
    assert lines[-1] == "✔ 5000 done  ● 5000 ready"
    assert len(ET.fromstring(svg(many)).findall(f"{SVG}g")) == 10_000


def test_the_drawing_is_valid_whatever_tasks_are_called() -> None:
    """Issue 4, part 2: an SVG with a box per task, an arrow per dependency, and every text escaped."""
    root = ET.fromstring(svg(SHOP))
    boxes = root.findall(f"{SVG}g")
    assert [box.findtext(f"{SVG}text") for box in boxes] == [
        *("8.2", "A-001-core", "A-002-more", "B-001-schema", "B-002-tables")
    ]
    assert boxes[0].findtext(f"{SVG}title") == f"8.2 · pending · {HOSTILE}".replace("\ufffe", "\ufffd")
    assert len(root.findall(f"{SVG}path[@class='edge']")) == 3
    assert root.find(f".//{SVG}script") is None
    assert ET.fromstring(svg([])).findall(f"{SVG}g") == []


def test_boxes_do_not_cover_each_other() -> None:
    """Every box has a place of its own within the drawing."""
    root = ET.fromstring(svg([*SHOP, task("A-003-third"), task("A-004-fourth")]))
    places = [
        (int(box.attrib["x"]), int(box.attrib["y"])) for box in root.iter(f"{SVG}rect") if box.get("fill")
    ]
    assert len(places) == len(set(places)) == 7
    assert max(x for x, _ in places) + 190 < int(root.attrib["width"])
    assert max(y for _, y in places) + 30 < int(root.attrib["height"])


def test_a_terminal_gets_colours_and_a_pipe_does_not(coord: Coord, capfd) -> None:
    """On a terminal the plan is drawn in colours; a pipe gets JSON, or plain text."""
    coord("ann task add A-001-core")
    program = ("-m", "coord.transports.cli.main", "plan", "show")
    terminal = Terminal(*program)
    terminal.wait_for("1 ready")
    assert terminal.exit_code() == 0
    assert "\x1b[36m● A-001-core" in terminal.shown
    assert coord("ann plan show").answer["tasks"][0]["task_id"] == "A-001-core"
    assert main(["plan", "show", "--picture"]) == 0
    assert capfd.readouterr().out.splitlines()[1] == "A 0 %  ● A-001-core"
    assert main(["plan", "show", "--svg"]) == 0
    assert capfd.readouterr().out.startswith("<svg ")


PLAN = """\
tracks:
  A:
    - {id: A-001-core, priority: 1}
    - {id: A-002-more, depends_on: [A-001-core]}
    - {id: A-003-last}
"""


def test_a_dry_run_tells_the_difference_and_loads_nothing(coord: Coord, repository: Path) -> None:
    """Issue 4, part 2: what is added, changed (from what to what), the same, and no longer in the plan."""
    path = repository / "plan.yaml"
    path.write_text(PLAN)
    code, answer, line = coord("ann plan load plan.yaml --dry-run")
    assert (code, answer["dry_run"], len(answer["added"])) == (0, True, 3)
    assert line == "Dry run: 3 would be added, 0 changed, 0 unchanged"
    assert coord("ann task list").answer["tasks"] == []
    assert coord("ann plan load plan.yaml").answer["dry_run"] is False
    path.write_text(PLAN.replace("priority: 1", "retries_max: 1").replace("A-003-last", "A-004-new"))
    _, answer, line = coord("ann plan load plan.yaml --dry-run")
    assert (answer["added"], answer["unchanged"], answer["not_in_plan"]) == (["A-004-new"], 1, ["A-003-last"])
    assert answer["changed"] == {"A-001-core": ["priority", "retries_max"]}
    assert [(each["before"], each["after"]) for each in answer["changes"]] == [(1, 0), (3, 1)]
    assert line.endswith("kept although not in the plan: A-003-last")
    assert coord("ann task show A-001-core").answer["task"]["priority"] == 1
    loaded = coord("ann plan load plan.yaml").answer
    assert loaded == {**answer, "dry_run": False}, "loading does what the dry run said"
    assert coord("ann task show A-003-last").answer["task"]["state"] == "ready", "nothing is removed"


def test_dependencies_that_change_keep_running_work(coord: Coord, repository: Path) -> None:
    """Issue 4, part 2: what runs goes on, what is done stays done, what waits follows the new plan."""
    path = repository / "plan.yaml"
    path.write_text(PLAN)
    coord("ann plan load plan.yaml")
    assert re.match("Claimed A-001-core", coord("ann task next").line)
    path.write_text(PLAN.replace("priority: 1", "depends_on: [A-003-last]").replace("[A-001-core]", "[]"))
    assert coord("ann plan load plan.yaml").answer["changed"] == {
        "A-001-core": ["priority", "depends_on"],
        "A-002-more": ["depends_on"],
    }
    states = {each["task_id"]: each["state"] for each in coord("ann task list").answer["tasks"]}
    assert states == {"A-001-core": "in_progress", "A-002-more": "ready", "A-003-last": "ready"}
    assert coord("ann task submit A-001-core 1").code == 0
    path.write_text(PLAN)
    coord("ann plan load plan.yaml")
    assert coord("ann task show A-001-core").answer["task"]["state"] == "done"
