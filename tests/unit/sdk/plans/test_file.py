"""Read plans from files: fields, problems with their position, and files that are rejected."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import Invalid
from coord.sdk.plans.file import parse_plan, read_plan

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


def test_a_plan_is_read_with_its_tracks() -> None:
    """TID-16, TID-17: project, tracks, tasks and their dependencies, also across tracks."""
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


def test_json_and_yaml_give_the_same_plan(tmp_path: Path) -> None:
    """Issue 4: a plan may be JSON with the same meaning."""
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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
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
def test_a_problem_names_its_task_or_track(text: str, problem: str) -> None:
    """Issue 4, bad input: no invalid part is ignored, and each problem says where it is."""
    problems = parse_plan(text).problems
    assert any(problem in each for each in problems), problems


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
def test_a_text_that_is_no_plan_is_rejected(text: str) -> None:
    """A repeated key would lose tasks; only plain data is created; the depth is limited."""
    with pytest.raises(Invalid) as refused:
        parse_plan(text)
    assert refused.value.hint


def test_repeated_keys_in_json_are_rejected() -> None:
    """JSON readers usually keep the last value of a repeated key; a plan must not lose tasks."""
    with pytest.raises(Invalid, match="occurs twice"):
        parse_plan('{"tasks": [], "tasks": []}', json=True)


@pytest.mark.parametrize("data", [b"\xff", None])
def test_a_file_that_cannot_be_read_is_rejected(data: bytes | None, tmp_path: Path) -> None:
    """A missing file and a file that is not UTF-8: the error names the file."""
    if data is not None:
        (tmp_path / "plan.yaml").write_bytes(data)
    with pytest.raises(Invalid, match=r"plan\.yaml"):
        read_plan(str(tmp_path / "plan.yaml"))


def billion(levels: int) -> str:
    """A small text whose aliases name nine times nine times nine … values."""
    lines = ["tasks: []", "a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (billion(9), 2),
        ("tasks:\n  - {id: a, depends_on: &all [b]}\n  - {id: b, depends_on: *all}\n", 2),
        ("tasks:\n  - {id: a,\n     description: *gone}\n", 3),
    ],
)
def test_anchors_and_aliases_are_refused(text: str, line: int) -> None:
    """21 KB with aliases took 4 GB: they are refused before anything is built, and the line is named."""
    with pytest.raises(Invalid, match=f"anchor or alias at line {line}"):
        parse_plan(text)


@pytest.mark.parametrize(
    "text", ["tasks: " + "[" * 100_000, "a:\n" + "".join(" " * n + "- \n" for n in range(99))]
)
def test_deep_nesting_is_refused(text: str) -> None:
    """The parser in C ends the process at a depth that a small file reaches."""
    with pytest.raises(Invalid):
        parse_plan(text)


def test_quoted_texts_may_look_like_aliases() -> None:
    """Globs begin with an asterisk."""
    plan = parse_plan('tasks:\n  - {id: a, files: ["**/*.py", "src/*"]}\n')
    assert plan.tasks[0].files == ("**/*.py", "src/*")
