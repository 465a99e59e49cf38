"""Plans in files: what is read, what is refused and where, and what is worth a second look."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import Invalid
from coord.sdk.client.client import connect
from coord.sdk.plans.check import check_plan
from coord.sdk.plans.file import Plan, parse_plan, read_plan
from coord.sdk.validation.tasks import new_task

SHOP = """\
project: shop
tracks:
  A:
    - id: A-001-core-framework
      description: >
        the framework
        of all
    - {id: A-002-di-container, depends_on: [A-001-core-framework], estimate: 30m, priority: 5}
  B:
    agents: 2
    tasks:
      - {id: B-001-schema-design, files: [src/schema.py], needs: [internet], role: architect}
      - id: B-002-entity-models
        depends_on: [B-001-schema-design, A-001-core-framework]
        deadline: 2026-03-01T12:00:00Z
        requirements: {coverage: 90}
tasks:
  - {id: "8.2", type: docs, retries_max: 0}
"""


def problems(text: str) -> list[str]:
    return check_plan(parse_plan(text)).problems


def test_a_plan_is_read_with_its_tracks() -> None:
    """TID-16, TID-17: project, tracks, tasks with what they depend on, also across tracks."""
    plan = parse_plan(SHOP)
    assert (plan.project, plan.problems, plan.agents) == ("shop", [], {"B": 2})
    by_id = {task.task_id: task for task in plan.tasks}
    assert [task.track for task in plan.tasks] == ["A", "A", "B", "B", ""]
    assert by_id["A-001-core-framework"].description == "the framework of all"
    assert by_id["A-002-di-container"].estimate_s == 1800
    assert by_id["A-002-di-container"].priority == 5
    assert by_id["B-001-schema-design"].needs == ("internet",)
    models = by_id["B-002-entity-models"]
    assert models.depends_on == ("B-001-schema-design", "A-001-core-framework")
    assert (models.deadline_ms, models.requirements) == (1_772_366_400_000, {"coverage": 90})
    assert (by_id["8.2"].type, by_id["8.2"].retries_max) == ("docs", 0)


def test_json_says_the_same(tmp_path: Path) -> None:
    """Issue 4: a plan may be JSON; what it means is the same."""
    data: dict[str, Any] = {
        "project": "shop",
        "tracks": {"A": [{"id": "A-001-x"}, {"id": "A-002-y", "depends_on": ["A-001-x"]}]},
    }
    (tmp_path / "plan.json").write_text(json.dumps(data))
    (tmp_path / "plan.yaml").write_text(json.dumps(data))  # YAML holds JSON
    assert read_plan(str(tmp_path / "plan.json")) == read_plan(str(tmp_path / "plan.yaml"))


def test_only_a_plan_in_yaml_imports_the_parser() -> None:
    """Decision 0038: PyYAML is always installed, and costs nothing before a plan in YAML is read."""
    lines = (
        "import sys",
        "from coord.sdk.plans.file import parse_plan",
        'parse_plan(\'{"tasks": [{"id": "x"}]}\', json=True)',
        "print('yaml' in sys.modules)",
        "parse_plan('tasks: [{id: x}]')",
        "print('yaml' in sys.modules)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_a_circle_is_named_by_its_path() -> None:
    """Issue 4: cycles are named by their path, and only by that."""
    text = "tasks: [{id: a, depends_on: [b]}, {id: b, depends_on: [c]}, {id: c, depends_on: [b]}]"
    assert problems(text) == ["dependency cycle: b -> c -> b"]
    assert problems("tasks: [{id: a, depends_on: [a]}]") == ["dependency cycle: a -> a"]


def test_unknown_and_double_ids_are_told() -> None:
    """Issue 4: unknown ids and duplicate ids; what the project has already is known."""
    text = "tasks: [{id: a, depends_on: [zz]}, {id: b}, {id: b}]"
    assert problems(text) == ["b: the id is used 2 times", "a: depends on zz, which does not exist"]
    with connect("memory:", session="s", project="shop") as client:
        client.add_task("zz")
        client.add_task("yy", depends_on=["zz"])
        stored = client.task_list()
    assert check_plan(parse_plan("tasks: [{id: a, depends_on: [zz]}]"), stored).problems == []
    circle = check_plan(parse_plan("tasks: [{id: a}, {id: zz, depends_on: [yy]}]"), stored).problems
    assert circle == ["dependency cycle: zz -> yy -> zz"], (
        "also one that runs through tasks the plan does not name"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tracks: {A: [{id: A-1-x}]}", "A-1-x: looks like TRACK-SEQUENCE-DESCRIPTION but is not"),
        ("tracks: {A: [{id: A-000-x}]}", "A-000-x: looks like"),
        ("tracks: {B: [{id: A-001-x}]}", "A-001-x: is in track B, but its id names track A"),
        ("tasks: [{id: 8.2}]", "put it in quotes"),
        ("tracks: {NO: [{id: x}]}", "put it in quotes"),
        ("tasks: [{id: a/b}]", "a/b: 'a/b' is not a task id"),
        ("tasks: [{id: a, priorty: 5}]", "a: 'priorty' is unknown"),
        ("tasks: [{id: a, priority: high}]", "a: 'high' is not a priority"),
        ("tasks: [{id: a, depends_on: b}]", "a: depends_on is 'b', not a list"),
        ("tasks: [{id: a, files: src/x.py}]", "a: files is 'src/x.py', not a list"),
        ("tasks: [{id: a, estimate: soon}]", "a: 'soon' is not a time estimate"),
        ("tasks: [{id: a, deadline: soon}]", "a: 'soon' is not a deadline"),
        ("tasks: [a]", "tasks, task 1: not a mapping"),
        ("tasks: {a: b}", "tasks: not a list"),
        ("tracks: [a]", "tracks: not a mapping"),
        ("tracks: {A: {agents: 0, tasks: []}}", "track A: agents is 0"),
        ("tracks: {A: [{id: x, track: B}]}", "x: a task under a track has a track: field"),
        ("owner: me", "the plan: 'owner' is unknown"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, told: str) -> None:
    """Issue 4, grammar and bad input: nothing is passed over, and each problem says where it is."""
    assert any(told in problem for problem in problems(text)), problems(text)


@pytest.mark.parametrize(
    "text",
    [
        "tracks: {A: []}\ntracks: {B: []}",
        "tasks: [{id: a, id: b}]",
        "- a",
        "tasks: [",
        "a: !!python/object/apply:os.getcwd []",
        "[" * 5000,
    ],
)
def test_a_text_that_is_no_plan_is_refused(text: str) -> None:
    """A key that occurs twice would lose tasks; only plain data is made; depth has an end."""
    with pytest.raises(Invalid) as refused:
        parse_plan(text)
    assert refused.value.hint


def test_keys_that_stand_twice_in_json_are_refused() -> None:
    """The same in JSON, whose readers take the last one."""
    with pytest.raises(Invalid, match="occurs twice"):
        parse_plan('{"tasks": [], "tasks": []}', json=True)


@pytest.mark.parametrize("data", [b"\xff", None])
def test_a_file_that_cannot_be_read_is_refused(data: bytes | None, tmp_path: Path) -> None:
    """Not there, or no text: said so."""
    if data is not None:
        (tmp_path / "plan.yaml").write_bytes(data)
    with pytest.raises(Invalid, match=r"plan\.yaml"):
        read_plan(str(tmp_path / "plan.yaml"))


def warnings(*tasks: dict[str, Any], agents: dict[str, int] | None = None) -> list[str]:
    made = [new_task(**{"track": "", **task}) for task in tasks]
    return check_plan(Plan("", made, agents or {}, [])).warnings


def test_files_of_two_parallel_tasks_are_told() -> None:
    """Issue 4: files that two parallel tasks declare, by path or glob; not where one waits for the other."""
    one: dict[str, Any] = {"task_id": "a", "files": ["src/x.py"]}
    assert warnings(one, {"task_id": "b", "files": ["src/x.py"]}) == [
        "a and b may run at once, and both declare src/x.py"
    ]
    assert len(warnings(one, {"task_id": "b", "files": ["src/*.py"]})) == 1
    assert warnings(one, {"task_id": "b", "files": ["docs/*.py"]}) == []
    assert warnings(one, {"task_id": "b", "files": ["src/x.py"], "depends_on": ["a"]}) == []
    through = [
        one,
        {"task_id": "b", "depends_on": ["a"]},
        {"task_id": "c", "files": ["src/x.py"], "depends_on": ["b"]},
    ]
    assert warnings(*through) == []


def test_tasks_of_one_agent_are_not_parallel() -> None:
    """TID-12, TID-13: one agent per track does one after the other; several do not."""
    two = [{"task_id": name, "track": "Q", "files": ["src/x.py"]} for name in ("a", "b")]
    assert warnings(*two) == []
    assert len(warnings(*two, agents={"Q": 2})) == 1


def test_tasks_come_after_what_they_depend_on() -> None:
    """A plan may name things in any order; they are added in one that works, as stable as can be."""
    order = check_plan(
        parse_plan("tasks: [{id: a, depends_on: [c]}, {id: b}, {id: c, depends_on: [b]}]")
    ).tasks
    assert [task.task_id for task in order] == ["b", "c", "a"]


def test_a_long_chain_is_no_problem() -> None:
    """Ten thousand tasks, each after the one before, without an end of the stack."""
    made = [new_task(f"t{n}", depends_on=[f"t{n + 1}"] if n < 9_999 else []) for n in range(10_000)]
    checked = check_plan(Plan("", made, {}, []))
    assert checked.problems == []
    assert checked.tasks[0].task_id == "t9999"
