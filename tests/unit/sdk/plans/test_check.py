"""Check plans: ids, dependencies and their order, cycles, and files of parallel tasks."""

from typing import Any

import pytest

from coord.sdk.client.client import connect
from coord.sdk.plans.check import check_plan
from coord.sdk.plans.file import Plan, parse_plan
from coord.sdk.validation.tasks import new_task


def problems(text: str) -> list[str]:
    return check_plan(parse_plan(text)).problems


def test_a_cycle_is_reported_with_its_path() -> None:
    """Issue 4: a cycle is one problem, which names the path."""
    text = "tasks: [{id: a, depends_on: [b]}, {id: b, depends_on: [c]}, {id: c, depends_on: [b]}]"
    assert problems(text) == ["dependency cycle: b -> c -> b"]
    assert problems("tasks: [{id: a, depends_on: [a]}]") == ["dependency cycle: a -> a"]


def test_unknown_and_repeated_ids_are_problems() -> None:
    """Issue 4: unknown ids and duplicate ids; stored tasks of the project are known."""
    text = "tasks: [{id: a, depends_on: [zz]}, {id: b}, {id: b}]"
    assert problems(text) == ["b: the id is used 2 times", "a: depends on zz, which does not exist"]
    with connect("memory:", session="s", project="shop") as client:
        client.add_task("zz")
        client.add_task("yy", depends_on=["zz"])
        stored = client.task_list()
    assert check_plan(parse_plan("tasks: [{id: a, depends_on: [zz]}]"), stored).problems == []
    cycle = check_plan(parse_plan("tasks: [{id: a}, {id: zz, depends_on: [yy]}]"), stored).problems
    assert cycle == ["dependency cycle: zz -> yy -> zz"], (
        "also one that runs through tasks the plan does not name"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tracks: {A: [{id: A-1-x}]}", "A-1-x: looks like TRACK-SEQUENCE-DESCRIPTION but is not"),
        ("tracks: {A: [{id: A-000-x}]}", "A-000-x: looks like"),
        ("tracks: {B: [{id: A-001-x}]}", "A-001-x: is in track B, but its id names track A"),
    ],
)
def test_ids_follow_the_track_grammar(text: str, problem: str) -> None:
    """Issue 4: an id that almost follows the grammar is a problem, as is an id of another track."""
    assert any(problem in each for each in problems(text)), problems(text)


def warnings(*tasks: dict[str, Any], agents: dict[str, int] | None = None) -> list[str]:
    made = [new_task(**{"track": "", **task}) for task in tasks]
    return check_plan(Plan("", made, agents or {}, [])).warnings


def test_files_of_two_parallel_tasks_are_warnings() -> None:
    """Issue 4: files that two parallel tasks declare, by path or glob; not if one waits for the other."""
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
    """TID-12, TID-13: one agent of a track works on its tasks one after the other; several do not."""
    two = [{"task_id": name, "track": "Q", "files": ["src/x.py"]} for name in ("a", "b")]
    assert warnings(*two) == []
    assert len(warnings(*two, agents={"Q": 2})) == 1


def test_tasks_come_after_their_dependencies() -> None:
    """A plan may list tasks in any order; they are added in an order that works, close to the given one."""
    order = check_plan(
        parse_plan("tasks: [{id: a, depends_on: [c]}, {id: b}, {id: c, depends_on: [b]}]")
    ).tasks
    assert [task.task_id for task in order] == ["b", "c", "a"]


def test_a_long_chain_is_no_problem() -> None:
    """Ten thousand tasks in a chain do not exhaust the stack."""
    made = [new_task(f"t{n}", depends_on=[f"t{n + 1}"] if n < 9_999 else []) for n in range(10_000)]
    checked = check_plan(Plan("", made, {}, []))
    assert checked.problems == []
    assert checked.tasks[0].task_id == "t9999"
