"""Both hosts drain one plan while a host is cut off and comes back, and the server dies and comes back."""

from collections import Counter

import pytest

from tests.conftest import SOAK
from tests.support.network import Host, Network
from tests.support.process_group import PATIENCE_S, Crew, Member, release
from tests.support.programs.client import connect_as
from tests.support.servers.server import Server, poll_until
from tests.system.processes.test_drain import check_log, plan

TASKS = 2_000 if SOAK else 120
WORKERS = 8 if SOAK else 2
LEASE_S = 2.0
UNTOLD_MOST = 4 * WORKERS
"""Each may lose an answer whenever something breaks."""
LONG_S = PATIENCE_S * (50 if SOAK else 1.5)


def start_workers(crew: Crew, host: Host) -> Member:
    """Let some processes of a host carry out tasks."""
    more = {
        "processes": WORKERS,
        "kills": 0,
        "far": True,
        "tasks": TASKS,
        "lease_s": LEASE_S,
        "book": str(crew.folder / "book"),
        "doom": str(crew.folder / "doom"),
    }
    (member,) = crew.start("drainer", [crew.options(f"{host.name}-", more)], host.enter)
    return member


def wait_for_results(crew: Crew, enough: int) -> None:
    """Wait until so many tasks are done."""

    def done() -> bool:
        return len(crew.story.told("task.completed")) >= enough

    poll_until(done, LONG_S, f"{enough} results did not come")


@pytest.mark.timeout(3600 if SOAK else 400)
def test_two_hosts_drain_a_plan_whatever_breaks(crew: Crew, network: Network, server: Server) -> None:
    """SCN-15, STO-29: packets are lost, a cable is out, the server is killed and later stopped: no task is
    lost, none is done twice, none before what it depends on, and all who were told "accepted" are right."""
    east, west = network.hosts
    with connect_as(crew.options("planner", own_pid=False)) as client:
        client.add_tasks(plan(TASKS))
        members = [start_workers(crew, host) for host in network.hosts]
        release(members)
        wait_for_results(crew, TASKS // 8)
        east.cut_off()
        wait_for_results(crew, TASKS // 4)
        east.heal()
        west.unplug()
        wait_for_results(crew, TASKS // 2)
        west.heal()
        server.kill()
        server.restart()
        wait_for_results(crew, TASKS * 3 // 4)
        server.stop()
        server.restart()
        for member in members:
            assert member.hear(LONG_S) == "end"
        check_log(crew.story, TASKS)
        told = Counter((crew.folder / "book").read_text().split())
        assert set(told.values()) == {1}, "a result was accepted twice"
        assert TASKS - UNTOLD_MOST <= len(told) <= TASKS
        assert Counter(task.state for task in client.task_list()) == {"done": TASKS}
        workers = Counter(event["session"].split("-")[0] for event in crew.story.told("task.completed"))
        assert min(workers["east"], workers["west"]) > 0
    offsets = [event["offset"] for event in crew.story.read()]
    assert offsets == sorted(offsets)
