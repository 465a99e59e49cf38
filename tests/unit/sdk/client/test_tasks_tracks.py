"""Tracks and ids of tasks (the TID group), through the library."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from coord.core.errors import Invalid
from coord.core.ids import work_product_ref
from coord.core.plans.plan import USUAL_TRACKS, track_title
from coord.sdk.client.client import Client, connect
from coord.sdk.plans.check import check_plan
from coord.sdk.plans.file import parse_plan
from coord.sdk.validation.tasks import new_task
from tests.support.client_harness import ClientHarness, open_client_harness
from tests.support.consent import write_configuration
from tests.support.docs.pages import rows_of

ALLOCATION = {"alpha": "A", "beta": "B", "gamma": "C", "delta": "D"}


@pytest.fixture
def clients(repository: Path, tmp_path: Path):
    with open_client_harness("memory:", repository, tmp_path / "state") as found:
        yield found


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "shop/.git/refs").mkdir(parents=True)
    (tmp_path / "shop/.git/objects").mkdir()
    (tmp_path / "shop/.git/HEAD").write_text("ref: refs/heads/main\n")
    return tmp_path / "shop"


def taken(client: Client, **choice) -> tuple[str, int]:
    reply = client.next_task(**choice)
    assert reply.task is not None, reply.waiting_for
    assert reply.claim is not None
    return reply.task.task_id, int(reply.claim.generation)


def test_the_usual_tracks_have_a_purpose() -> None:
    """TID-7: nine letters with what they are for, as the page says; any other name is a track too."""
    assert "".join(USUAL_TRACKS) == "ABCDEFGXZ"
    assert (track_title("A"), track_title("Z"), track_title("phase-8-admin")) == (
        "Core Architecture",
        "Maintenance",
        "",
    )
    told = {row[0].strip("`"): (row[1], row[2]) for row in rows_of("docs/reference/plan.md", "## Tracks")}
    assert told == USUAL_TRACKS


def test_the_documented_allocation_comes_true(clients: ClientHarness) -> None:
    """Four agents, each on its track, in order, two of them of one session.

    TID-8, TID-12, TID-25, TID-26.
    """
    plan = clients.client("planner", project="shop")
    plan.add_tasks(new_task(f"{track}-{n:03d}-part") for n in (3, 1, 2) for track in "DCBA")
    family = {"delta": "alpha"}
    agents = {
        name: clients.client(name, agent=name, project="shop", parent=family.get(name, ""))
        for name in ALLOCATION
    }
    for number in (1, 2, 3):
        held = {name: taken(client, tracks=[ALLOCATION[name]]) for name, client in agents.items()}
        assert held == {name: (f"{track}-{number:03d}-part", 1) for name, track in ALLOCATION.items()}
        assert {task.track: task.agent for task in plan.task_list(state="in_progress")} == {
            track: name for name, track in ALLOCATION.items()
        }, "TID-22: which agent is on which track"
        for name, (task_id, generation) in held.items():
            assert agents[name].submit_task(task_id, generation, {}).accepted
    assert agents["delta"].show().parent == "alpha"


def test_the_sequence_is_the_order_within_a_track(clients: ClientHarness) -> None:
    """TID-9: of tasks that came together, the lower sequence comes first, also past the ninth."""
    client = clients.client("ann", project="shop")
    client.add_tasks(new_task(f"A-{n:03d}-x") for n in (10, 2, 9, 1))
    assert [taken(client)[0][:5] for _ in range(4)] == ["A-001", "A-002", "A-009", "A-010"]


def test_generations_count_per_task(clients: ClientHarness) -> None:
    """TID-15: every task id has a clock of its own, also those that differ in the description only."""
    client = clients.client("ann", project="shop")
    client.add_tasks(new_task(name) for name in ("A-001-x", "A-001-y"))
    for generation in (1, 2, 3):
        assert taken(client) == ("A-001-x", generation)
        client.release_task("A-001-x", generation)
    assert taken(client) == ("A-001-x", 4)
    assert taken(client) == ("A-001-y", 1)


def test_ids_of_other_plans_are_welcome(clients: ClientHarness) -> None:
    """TID-28, TID-29, CFL-13: dotted ids in a parallel group, and tickets of other trackers, are tasks."""
    group = 'tracks: {phase-8-admin: {agents: 2, tasks: [{id: "8.1"}, {id: "8.2"}]}}'
    plan = parse_plan(f"{group}\ntasks: [{{id: TOD-406}}, {{id: task-101}}]")
    checked = check_plan(plan)
    assert checked.problems == []
    first, second = (
        clients.client(name, agent=name, project="shop") for name in ("subagent-8-1", "subagent-8-2")
    )
    first.add_tasks(checked.tasks)
    first.set_track("phase-8-admin", plan.agents["phase-8-admin"])
    tracks = ["phase-8-admin"]
    assert (taken(first, tracks=tracks), taken(second, tracks=tracks)) == (("8.1", 1), ("8.2", 1))
    assert str(second.submit_task("8.2", 1, {}).work_product_ref).startswith("wp-8.2-gen1-")
    assert first.register(task="TOD-406").session.current_task["ticket"] == "TOD-406"


def test_work_products_are_named_as_documented() -> None:
    """TID-18, TID-19, TID-20: `wp-`, the task, its generation, six characters of a UUID."""
    unique = "9c4e1d77-0000-4000-8000-000000000000"
    assert work_product_ref("B-003-repositories", 2, unique) == "wp-B-003-repositories-gen2-9c4e1d"


def test_a_project_may_ask_for_the_grammar(repository: Path) -> None:
    """CFL-13, AMB-14: `task_id_policy = "track"` takes ids of that grammar only; a wrong word is told."""
    environ = dict(os.environ)
    with ExitStack() as stack:
        client = stack.enter_context(
            connect("memory:", session="s", project="shop", cwd=str(repository), environ=environ)
        )
        client.add_task("8.2")
        write_configuration(repository, 'task_id_policy = "track"\n', environ)
        client.add_tasks([new_task("A-001-x"), new_task("A-001-x::1")])
        with pytest.raises(Invalid, match="TRACK-SEQUENCE-DESCRIPTION"):
            client.add_tasks([new_task("A-002-y"), new_task("8.3")])
        assert [task.task_id for task in client.task_list()] == ["8.2", "A-001-x", "A-001-x::1"]
        plan = parse_plan('tasks: [{id: "8.4"}, {id: A-003-z}]')
        assert check_plan(plan).problems == []
        (problem,) = check_plan(plan, strict=client.strict_ids).problems
        assert problem.startswith("8.4: not TRACK-SEQUENCE-DESCRIPTION")
        write_configuration(repository, 'task_id_policy = "odd"\n', environ)
        with pytest.raises(Invalid, match=r"task_id_policy in coord\.toml is 'odd'"):
            client.add_task("A-002-y")
