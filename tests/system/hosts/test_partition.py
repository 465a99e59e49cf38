"""A host that is cut off in the middle of its work: the other takes over, and nothing of the first counts."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from coord.core.plans.commands import NewTask
from tests.conftest import SOAK
from tests.linearizability import recorded
from tests.linearizability.task_model import Op
from tests.linearizability.test_histories import assert_worked, check_log_order, expect, started
from tests.linearizability.wing_gong import by_task, linearization, sweepers
from tests.support.network import Network
from tests.support.process_group import PATIENCE_S, Member, ProcessGroup, refusal
from tests.support.programs.client import connect_as
from tests.support.servers.server import poll_until

LEASE_S = 60
GONE = ("NotFound", "NotOwner", "LockLost")
ROUNDS = 300 if SOAK else 40
SEEDS = range(10 if SOAK else 1)


def add_tasks(group: ProcessGroup, *names: str) -> None:
    with connect_as(group.options("planner", own_pid=False)) as client:
        client.add_tasks([NewTask(task_id=name) for name in names])


def next_task(member: Member) -> tuple[str, int]:
    """Let a session claim whatever comes next; return the task and the generation."""
    token = member.ask("next_task", lease_s=LEASE_S)["claim"]["generation"]
    return token["task_id"], token["generation"]


@pytest.mark.parametrize("break_off", ["cut_off", "unplug"] if SOAK else ["cut_off"])
def test_a_host_cut_off_past_its_leases_is_refused_everything(
    group: ProcessGroup, network: Network, break_off: str
) -> None:
    """REC-18, SCN-2, PRB-7: what was on its way when the network broke arrives after the other host took
    over, and is refused, as are renewals; one result is accepted, and the host works on with new claims."""
    east, west = network.hosts
    group.stop_time()
    add_tasks(group, "t1", "t2")
    (ada,) = group.scripted_sessions("ada", under=east.enter)
    (bob,) = group.scripted_sessions("bob", under=west.enter)
    fence = ada.ask("acquire", "src/a.py", ttl_s=LEASE_S)["locks"][0]["fence"]
    assert next_task(ada) == ("t1", 1)
    getattr(east, break_off)()
    ada.send("submit_task", "t1", 1, {"by": "ada"})
    assert bob.ask("acquire", "src/a.py")["outcome"] == "held"
    assert refusal(bob.ask("steal", "src/a.py", dead_owner=True)) == "NotStealable", "silence is no death"
    group.clock.move(LEASE_S * 1_000 + 1)
    granted = bob.ask("acquire", "src/a.py", ttl_s=LEASE_S)
    assert granted["outcome"] == "granted", granted
    assert granted["locks"][0]["fence"] > fence
    assert {next_task(bob), next_task(bob)} == {("t1", 2), ("t2", 1)}
    assert bob.ask("submit_task", "t1", 2, {"by": "bob"})["accepted"]
    assert ada.has_no_output(), "nothing has reached the host that is cut off"
    east.heal()
    late = ada.receive()
    assert (late["accepted"], late["reason"], late["work_lost"]) == (False, "STALE_GENERATION", True)
    assert not ada.ask("renew_task", "t1", 1)["success"]
    for attempt in ("renew", "unlock"):
        assert refusal(ada.ask(attempt, "src/a.py", fence=fence)) in GONE
    (done,) = group.log.events_of("task.completed")
    assert (done["task"], done["session"], done["generation"]) == ("t1", "bob", 2)
    assert group.log.until("task.result_rejected", session="ada")["generation"] == 1
    history = bob.ask("task_history", "t1")
    assert [(each["release_reason"], len(each["rejected"])) for each in history] == [
        ("EXPIRED", 1),
        ("COMPLETED", 0),
    ]
    group.clock.move(LEASE_S * 1_000 + 1)
    assert next_task(ada) == ("t2", 2), "and now it is bob who lost one"
    assert ada.ask("submit_task", "t2", 2)["accepted"]


def record(group: ProcessGroup, network: Network, seed: int) -> list[Op]:
    """Let two processes of each host work on the same tasks; a host is cut off and comes back, in turn."""
    clock = group.folder / "clock"
    group.stop_time()
    paths = [group.folder / f"history-{number}" for number in range(4)]
    with ExitStack() as stack:
        actors = []
        for number, path in enumerate(paths):
            options: dict[str, Any] = {"url": group.url, "name": f"actor-{number}", "seed": seed, "tasks": 2}
            options |= {"rounds": ROUNDS, "history": str(path), "clock": str(clock)}
            actors.append(stack.enter_context(started(options, network.hosts[number % 2].enter)))
        for actor in actors:
            expect(actor, "ready")
        for actor in actors:
            assert actor.stdin is not None
            actor.stdin.write("go\n")
            actor.stdin.flush()
        for turn, host in enumerate(network.hosts):
            wait_for_rounds(paths, ROUNDS * (2 * turn + 1) // 5)
            host.cut_off()
            wait_for_rounds(paths[1 - turn :: 2], ROUNDS * (2 * turn + 2) // 5)
            host.heal()
        for actor in actors:
            expect(actor, "halfway")
            expect(actor, "done")
            assert actor.wait(PATIENCE_S) == 0
    return recorded.read(paths)


def wait_for_rounds(paths: list[Path], rounds: int) -> None:
    """Wait until processes have begun so many operations, by what they wrote down."""

    def there() -> bool:
        return all(path.exists() and path.read_text().count('{"op"') >= rounds for path in paths)

    poll_until(there, PATIENCE_S, "nothing happens any more")


@pytest.mark.parametrize("seed", SEEDS)
def test_one_order_explains_what_both_hosts_were_told(
    group: ProcessGroup, network: Network, seed: int
) -> None:
    """CLM-60, SCN-15: hosts come and go, leases run out, and the log explains every answer on either."""
    ops = record(group, network, seed)
    assert_worked(ops)
    for task, history in by_task(ops).items():
        found = linearization(history, sweepers(ops))
        assert found is not None, f"no order explains what was told about {task}"
    check_log_order(group.url, ops)
