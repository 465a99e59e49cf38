"""Plans and races for tasks, through the library, on every store."""

import threading
from collections.abc import Callable

import pytest

from coord.core.errors import Invalid
from coord.core.plans.commands import AddTasksReply, Runnable
from coord.core.tasks.types import ClaimReason
from coord.sdk.client.client import Client
from coord.sdk.plans.check import check_plan
from coord.sdk.plans.file import parse_plan
from tests.support.client_harness import ClientHarness

PLAN = """\
project: shop
tracks:
  A:
    - {id: A-001-core-framework, depends_on: []}
    - {id: A-002-di-container, depends_on: [A-001-core-framework]}
  B:
    - {id: B-003-repositories, depends_on: [B-002-entity-models, A-002-di-container]}
    - {id: B-002-entity-models, depends_on: [B-001-schema-design, A-001-core-framework]}
    - {id: B-001-schema-design, depends_on: []}
"""


def load(client: Client) -> AddTasksReply:
    checked = check_plan(parse_plan(PLAN))
    assert checked.problems == []
    return client.add_tasks(checked.tasks)


def done(client: Client, task_id: str) -> None:
    reply = client.next_task(tracks=[task_id[0]])
    assert reply.task is not None, reply.waiting_for
    assert reply.claim is not None
    assert reply.task.task_id == task_id
    assert client.submit_task(task_id, reply.claim.generation, {}).accepted


def states(client: Client) -> dict[str, str]:
    return {task.task_id[:5]: task.state for task in client.task_list()}


def test_scn_7_cross_track_dependencies(clients: ClientHarness) -> None:
    """SCN-7: B-002 can neither be claimed nor come next before both B-001 and A-001 are done."""
    ann, bob = clients.client("ann", project="shop"), clients.client("bob", project="shop")
    assert len(load(ann).added) == 5
    pending = dict.fromkeys(["A-002", "B-002", "B-003"], "pending")
    assert states(bob) == {"A-001": "ready", "B-001": "ready", **pending}
    assert bob.claim_task("B-002-entity-models").reason is ClaimReason.DENIED_NOT_READY
    done(bob, "B-001-schema-design")
    assert bob.claim_task("B-002-entity-models").reason is ClaimReason.DENIED_NOT_READY
    waiting = bob.next_task(tracks=["B"])
    assert waiting.outcome is Runnable.BLOCKED
    assert waiting.waiting_for == ["A-001-core-framework waits for another agent"]
    done(ann, "A-001-core-framework")
    assert states(bob)["B-002"] == "ready"
    done(bob, "B-002-entity-models")
    assert bob.claim_task("B-003-repositories").reason is ClaimReason.DENIED_NOT_READY
    done(ann, "A-002-di-container")
    assert len(load(ann).same) == 5, "loading again changes nothing"
    done(bob, "B-003-repositories")
    assert bob.next_task().outcome is Runnable.DONE


def test_a_changed_plan_moves_what_follows(clients: ClientHarness) -> None:
    """Readiness follows a changed plan through all that depends on it; a circle is refused by its path."""
    ann = clients.client("ann", project="shop")
    for task_id, depends_on in (("a", []), ("b", ["a"]), ("c", ["b"]), ("z", [])):
        ann.add_task(task_id, depends_on=depends_on)
    with pytest.raises(Invalid, match="a -> c -> b -> a"):
        ann.add_task("a", depends_on=["z", "c"])
    with pytest.raises(Invalid, match="d -> d"):
        ann.add_task("d", depends_on=["d"])
    claim = ann.claim_task("z").claim
    assert claim is not None
    ann.fail_task("z", claim.generation, final=True)
    assert ann.add_task("a", depends_on=["z"]).changed == ["a"]
    assert states(ann) == {"a": "blocked", "b": "blocked", "c": "blocked", "z": "failed"}
    ann.add_task("a")
    assert states(ann) == {"a": "ready", "b": "pending", "c": "pending", "z": "failed"}


def at_once(*acts: Callable[[], None]) -> None:
    """Do several things in threads that begin together."""
    gate = threading.Barrier(len(acts))

    def act(what: Callable[[], None]) -> None:
        gate.wait(30)
        what()

    threads = [threading.Thread(target=act, args=(what,)) for what in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_scn_30_two_agents_race_for_one_task(clients: ClientHarness) -> None:
    """Two agents reach for one task at the same moment; one has it, the other is told who.

    SCN-30, CLM-10, DED-7, PRB-3.
    """
    racers = [clients.client(name, project="shop") for name in ("ann", "bob")]
    racers[0].add_task("task-123", description="fix the login", type="code_gen", priority=5)
    outcomes: dict[str, Runnable] = {}

    def take(client: Client) -> None:
        outcomes[client.caller.session] = client.next_task().outcome

    at_once(*(lambda client=client: take(client) for client in racers))
    assert sorted(outcomes.values()) == [Runnable.BLOCKED, Runnable.TASK]
    (winner,) = [name for name, outcome in outcomes.items() if outcome is Runnable.TASK]
    (loser,) = [client for client in racers if client.caller.session != winner]
    assert loser.next_task().waiting_for == [f"task-123 is in progress ({winner})"]
    assert racers[0].show_task("task-123").generation == 1


def test_no_claim_is_lost_among_many(clients: ClientHarness) -> None:
    """Agents that claim at the same moment all find their claims recorded, each task once.

    CLM-10, CLM-23.
    """
    racers = [clients.client(f"agent-{number}", project="shop") for number in range(4)]
    for number in range(12):
        racers[0].add_task(f"8.{number}")
    taken: dict[str, list[str]] = {client.caller.session: [] for client in racers}

    def take_three(client: Client) -> None:
        for _ in range(3):
            reply = client.next_task()
            assert reply.task is not None, reply
            taken[client.caller.session].append(reply.task.task_id)

    at_once(*(lambda client=client: take_three(client) for client in racers))
    recorded: dict[str, list[str]] = {}
    for task in racers[0].task_list(state="in_progress"):
        recorded.setdefault(task.session_id, []).append(task.task_id)
    assert {session: sorted(names) for session, names in taken.items()} == recorded
    assert sum(map(len, recorded.values())) == 12
