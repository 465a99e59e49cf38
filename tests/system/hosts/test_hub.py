"""Clients on two hosts use a hub over HTTP; cables and the hub break in turn."""

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.support.hub.fleet import hubs_of, new_token
from tests.support.network import Network
from tests.support.process_group import process_group, release
from tests.support.programs.client import connect_as
from tests.support.servers.kinds import ON_SERVERS, Servers
from tests.system.hosts.test_load import LONG_S, TASKS, start_workers, wait_for_results
from tests.system.processes.test_drain import check_log, plan


@pytest.mark.timeout(3600 if SOAK else 400)
def test_two_hosts_drain_a_plan_through_a_hub(network: Network, far_servers: Servers, tmp_path: Path) -> None:
    """Issue 16, Proof: packets to the hub are lost, a cable is out, the hub and its server are killed: no
    task is lost, none is done twice, and all who were told "accepted" are right."""
    kind = ON_SERVERS["postgres"]
    server = far_servers.get(kind.server)
    east, west = network.hosts
    with (
        process_group(kind.fresh_url(server), tmp_path) as group,
        hubs_of(group.repository, tmp_path, 1, network.address) as (hub,),
    ):
        with connect_as(group.options("planner", own_pid=False)) as client:
            client.add_tasks(plan(TASKS))
        way = hub.way("http", new_token(group.repository))
        members = [start_workers(group, host, way) for host in network.hosts]
        release(members)
        wait_for_results(group, TASKS // 8)
        east.cut_off()
        wait_for_results(group, TASKS // 4)
        east.heal()
        west.unplug()
        hub.restart()
        wait_for_results(group, TASKS // 2)
        west.heal()
        server.kill()
        server.restart()
        wait_for_results(group, TASKS * 3 // 4)
        hub.restart()
        for member in members:
            assert member.receive(LONG_S) == "end"
        check_log(group.log, TASKS)
        answers = Counter((group.folder / "book").read_text().split())
        assert set(answers.values()) == {1}, "a result was accepted twice"
        workers = Counter(event["session"].split("-")[0] for event in group.log.events_of("task.completed"))
        assert min(workers["east"], workers["west"]) > 0
    print(f"the hub served again after {max(hub.recoveries_s):.2f} s at most")  # noqa: T201 - shown with -s
