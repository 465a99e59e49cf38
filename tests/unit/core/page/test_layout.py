"""Where the tasks of a plan are drawn: each once, never two in one place, dependencies to the right."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coord.core.page.layout import LOOSE_COLUMNS, Lane, plan_layout

Tasks = dict[str, dict[str, Any]]


@st.composite
def plans(draw: st.DrawFn) -> Tasks:
    """Return tasks with dependencies on any task, also themselves, on cycles and on nothing that exists."""
    names = [f"t{number}" for number in range(draw(st.integers(0, 30)))]
    known = st.sampled_from([*names, "gone"])
    return {
        name: {
            "track": draw(st.sampled_from(("", "A", "B"))),
            "depends_on": draw(st.lists(known, max_size=4)),
            "added_ms": draw(st.integers(0, 5)),
        }
        for name in names
    }


@settings(max_examples=150, deadline=None)
@given(plans())
def test_each_task_has_a_place_of_its_own_and_edges_point_forwards(tasks: Tasks) -> None:
    found = plan_layout(tasks)
    assert sorted(found.task) == sorted(tasks)
    places = list(zip(found.column, found.row, strict=True))
    assert len(set(places)) == len(places)
    assert all(0 <= column < found.columns for column in found.column)
    assert all(found.column[one] < found.column[other] for one, other in found.edges)
    assert all(one < other for one, other in found.edges), "the order is topological"
    assert sum(lane.tasks for lane in found.lanes) == len(tasks)
    top = 0
    for number, lane in enumerate(found.lanes):
        assert lane.top == top
        rows = [row for row, at in zip(found.row, found.lane, strict=True) if at == number]
        assert (min(rows), max(rows) + 1) == (top, top + lane.rows)
        top += lane.rows


@settings(max_examples=60, deadline=None)
@given(plans())
def test_without_a_cycle_no_dependency_is_left_out(tasks: Tasks) -> None:
    names = list(tasks)
    for number, name in enumerate(names):
        tasks[name]["depends_on"] = [
            each for each in tasks[name]["depends_on"] if each in names and names.index(each) < number
        ]
    found = plan_layout(tasks)
    edges = {(found.task[one], found.task[other]) for one, other in found.edges}
    assert edges == {(each, name) for name, task in tasks.items() for each in task["depends_on"]}


def test_a_chain_stays_in_its_row_and_loose_tasks_fill_the_lane_below() -> None:
    tasks: Tasks = {f"c{number}": {"track": "A", "depends_on": [f"c{number - 1}"]} for number in range(3)}
    tasks |= {f"x{number}": {"track": "A"} for number in range(LOOSE_COLUMNS + 1)}
    tasks["other"] = {}
    found = plan_layout(tasks)
    place = {
        name: (column, row) for name, column, row in zip(found.task, found.column, found.row, strict=True)
    }
    assert [place[f"c{number}"] for number in range(3)] == [(0, 0), (1, 0), (2, 0)]
    assert [place[f"x{number}"] for number in (0, 1, LOOSE_COLUMNS)] == [(0, 1), (1, 1), (0, 2)]
    assert found.lanes == [Lane("A", 0, 3, 3 + LOOSE_COLUMNS + 1), Lane("", 3, 1, 1)]


def test_a_cycle_begins_with_the_task_that_was_added_first() -> None:
    tasks: Tasks = {
        "b": {"depends_on": ["a"], "added_ms": 2},
        "a": {"depends_on": ["c"], "added_ms": 1},
        "c": {"depends_on": ["b"], "added_ms": 3},
    }
    found = plan_layout(tasks)
    assert (found.task, found.column) == (["a", "b", "c"], [0, 1, 2])
    assert found.edges == [(0, 1), (1, 2)]


def test_fields_of_another_type_count_as_absent() -> None:
    """An event may have been written by another program."""
    wrong: Tasks = {
        "a": {"added_ms": "late", "track": ["x"]},
        "b": {"added_ms": 1, "depends_on": [["a"], 3, "a"]},
        "c": {"depends_on": 5},
    }
    found = plan_layout(wrong)
    assert sorted(found.task) == ["a", "b", "c"]
    assert [(found.task[one], found.task[other]) for one, other in found.edges] == [("a", "b")]
