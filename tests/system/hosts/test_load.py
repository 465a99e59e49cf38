"""Both hosts drain one plan while a host is cut off and comes back, and the server dies and comes back."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.conftest import SOAK
from tests.support.network import Host, Network
from tests.support.process_group import PATIENCE_S, Member, ProcessGroup, release
from tests.support.programs.client import connect_as
from tests.support.servers.server import Server, poll_until
from tests.system.processes.test_drain import check_log, plan

TASKS = 2_000 if SOAK else 120
WORKERS = 8 if SOAK else 2
LEASE_S = 2.0
UNTOLD_MOST = 4 * WORKERS
"""Each may lose an answer whenever something breaks."""
LONG_S = PATIENCE_S * (50 if SOAK else 1.5)


def start_workers(group: ProcessGroup, host: Host, way: Mapping[str, Any] | None = None) -> Member:
    """Let some processes of a host carry out tasks, perhaps through a hub."""
    more = {
        "processes": WORKERS,
        "kills": 0,
        "far": True,
        "tasks": TASKS,
        "lease_s": LEASE_S,
        "book": str(group.folder / "book"),
        "doom": str(group.folder / "doom"),
        **(way or {}),
    }
    (member,) = group.start("drainer", [group.options(f"{host.name}-", more)], host.enter)
    return member


def wait_for_results(group: ProcessGroup, enough: int) -> None:
    """Wait until so many tasks are done."""

    def done() -> bool:
        return len(group.log.events_of("task.completed")) >= enough

    poll_until(done, LONG_S, f"{enough} results did not come")


@pytest.mark.timeout(3600 if SOAK else 400)
def test_two_hosts_drain_a_plan_whatever_breaks(
    group: ProcessGroup, network: Network, server: Server
) -> None:
    """SCN-15, STO-29: packets are lost, a cable is out, the server is killed and later stopped: no task is
    lost, none is done twice, none before what it depends on, and all who were told "accepted" are right."""
    east, west = network.hosts
    with connect_as(group.options("planner", own_pid=False)) as client:
        client.add_tasks(plan(TASKS))
        members = [start_workers(group, host) for host in network.hosts]
        release(members)
        wait_for_results(group, TASKS // 8)
        east.cut_off()
        wait_for_results(group, TASKS // 4)
        east.heal()
        west.unplug()
        wait_for_results(group, TASKS // 2)
        west.heal()
        server.kill()
        server.restart()
        wait_for_results(group, TASKS * 3 // 4)
        server.stop()
        server.restart()
        for member in members:
            assert member.receive(LONG_S) == "end"
        check_log(group.log, TASKS)
        answers = Counter((group.folder / "book").read_text().split())
        assert set(answers.values()) == {1}, "a result was accepted twice"
        assert TASKS - UNTOLD_MOST <= len(answers) <= TASKS
        assert Counter(task.state for task in client.task_list()) == {"done": TASKS}
        workers = Counter(event["session"].split("-")[0] for event in group.log.events_of("task.completed"))
        assert min(workers["east"], workers["west"]) > 0
    offsets = [event["offset"] for event in group.log.read()]
    assert offsets == sorted(offsets)
