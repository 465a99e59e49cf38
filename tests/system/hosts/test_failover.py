"""A server dies for good and another takes its place: what was lost is named, and no fence comes twice."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coord.core.plans.commands import NewTask
from coord.stores.database import EPOCH_BITS
from coord.stores.open import open_store
from tests.support.network import Network
from tests.support.process_group import PATIENCE_S, LogReader, Member, ProcessGroup, process_group, refusal
from tests.support.programs.client import connect_as
from tests.support.servers.nats import NatsCluster, NatsServer, cluster
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import poll_until, running
from tests.support.stores.redis_lives import catch_up, follow, stop_following, take_over

AWAY = ("Unavailable", "Unreachable", "Unknown")
LEASE_S = 3_600


class Fences:
    """The fences that all processes were given, in the order in which they were told."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._seen: set[int] = set()

    def granted(self, reply: Any) -> int:
        """Note a grant: its fence is above all before it for that lock, and new to everybody."""
        assert reply["outcome"] == "granted", reply
        (lock,) = reply["locks"]
        fence: int = lock["fence"]
        assert fence > self._newest.get(lock["resource"], 0)
        assert fence not in self._seen
        self._newest[lock["resource"]] = fence
        self._seen.add(fence)
        return fence


def acquire(member: Member, resource: str) -> Any:
    return patiently(lambda: member.ask("acquire", resource, ttl_s=LEASE_S))


def patiently(ask: Callable[[], Any]) -> Any:
    """Ask until there is an answer, as clients do while a store is away; asking twice does nothing twice."""
    answers = []

    def answered() -> bool:
        answers.append(ask())
        return refusal(answers[-1]) not in (*AWAY, "Busy")

    poll_until(answered, PATIENCE_S, "the store does not come back")
    return answers[-1]


def entries(log: LogReader) -> dict[int, list[dict[str, Any]]]:
    """Return the events of each offset that was seen."""
    found: dict[int, list[dict[str, Any]]] = {}
    for event in log.read():
        found.setdefault(event["offset"], []).append(event)
    return found


@pytest.fixture
def pair(network: Network, tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    """A Redis server and its replica."""
    with (
        running(RedisServer, None, network.address) as master,
        running(RedisServer, tmp_path, network.address) as replica,
    ):
        yield master, replica


def add_tasks(group: ProcessGroup, *names: str) -> None:
    with connect_as(group.options("planner", own_pid=False)) as client:
        client.add_tasks([NewTask(task_id=name) for name in names])


def test_a_replica_that_lacks_commits_takes_over(
    pair: tuple[RedisServer, RedisServer], network: Network, tmp_path: Path
) -> None:
    """DESIGN 3: two hosts go on at the replica. What was lost is named and refused, what was kept holds, and
    no offset that anybody ever saw is issued again."""
    master, replica = pair
    fences = Fences()
    with process_group(master.fresh_store_url(), tmp_path) as group:
        (ada,) = group.scripted_sessions("ada", under=network.hosts[0].enter)
        (bob,) = group.scripted_sessions("bob", under=network.hosts[1].enter)
        add_tasks(group, "t1", "t2")
        kept = fences.granted(acquire(ada, "src/kept.py"))
        assert ada.ask("next_task", lease_s=LEASE_S)["task"]["task_id"] == "t1"
        newest_kept = max(entries(group.log))
        follow(replica, master)
        catch_up(replica, master)
        stop_following(replica)
        lost = [fences.granted(acquire(who, f"src/{who.name}.py")) for who in (ada, bob)]
        assert ada.ask("submit_task", "t1", 1)["accepted"]
        assert bob.ask("next_task", lease_s=LEASE_S)["task"]["task_id"] == "t2"
        seen = entries(group.log)
        take_over(replica, master)
        again = patiently(lambda: ada.ask("renew", "src/kept.py", fence=kept))
        assert again["locks"], "what was kept is held as before"
        assert refusal(patiently(lambda: ada.ask("renew", "src/ada.py", fence=lost[0]))) == "NotFound"
        assert refusal(patiently(lambda: bob.ask("unlock", "src/bob.py", fence=lost[1]))) == "NotFound"
        for who, resource in ((ada, "src/bob.py"), (bob, "src/ada.py")):
            assert fences.granted(acquire(who, resource)) > max(lost)
        assert not bob.ask("renew_task", "t2", 1)["success"], "its claim is lost"
        token = ada.ask("next_task", lease_s=LEASE_S)["claim"]["generation"]
        assert (token["task_id"], token["generation"]) == ("t2", 1), "the task forgot that it was claimed"
        late = bob.ask("submit_task", "t2", 1)
        assert (late["accepted"], late["reason"]) == (False, "SESSION_MISMATCH")
        assert ada.ask("submit_task", "t1", 1)["accepted"], "its claim was kept, its result was not"
        with closing(open_store(group.url)) as database, closing(LogReader(group.url)) as now:
            assert database.epoch == 1
            (check,) = [check for check in database.checks() if check.name == "epoch"]
            assert f"the newest that was kept: {newest_kept} of local" in check.text
            left = entries(now)
        assert {offset for offset in left if offset <= newest_kept} == {o for o in seen if o <= newest_kept}
        assert min(offset for offset in left if offset > newest_kept) > max(seen)
        assert all(left[offset] == seen[offset] for offset in left.keys() & seen.keys())


@pytest.mark.timeout(180)
def test_a_cluster_goes_on_while_most_of_it_lives(network: Network, tmp_path: Path) -> None:
    """DESIGN 3: the leader of three and another one are killed: both hosts are refused. One comes back: two
    of three go on without the leader, nothing that was answered is lost, and no fence comes twice."""
    fences = Fences()
    with cluster(network.address) as three, process_group(three.url, tmp_path) as group:
        (ada,) = group.scripted_sessions("ada", under=network.hosts[0].enter)
        (bob,) = group.scripted_sessions("bob", under=network.hosts[1].enter)
        first = fences.granted(acquire(ada, "src/a.py"))
        dead = kill_majority(three)
        for who in (ada, bob):
            who.send("acquire", "src/c.py", ttl_s=LEASE_S)
        assert {refusal(ada.receive()), refusal(bob.receive())} <= {*AWAY}, "one of three decides nothing"
        dead[1].restart()
        again = patiently(lambda: ada.ask("renew", "src/a.py", fence=first))
        assert again["locks"], "it is held as before, although the leader is dead"
        assert acquire(bob, "src/a.py")["outcome"] == "held"
        winner = [who for who in (ada, bob) if acquire(who, "src/c.py")["outcome"] == "granted"]
        assert len(winner) == 1
        ada.ask("unlock", "src/a.py", fence=first)
        assert fences.granted(acquire(bob, "src/a.py")) > first
        assert refusal(ada.ask("renew", "src/a.py", fence=first)) in ("NotFound", "NotOwner", "LockLost")
        granted = group.log.events_of("lock.acquired")
        assert [event["resource"] for event in granted].count("file:src/c.py") == 1
        offsets = [event["offset"] for event in granted]
        assert offsets == sorted(set(offsets))
        assert all(offset < 2 << EPOCH_BITS for offset in offsets)


def kill_majority(three: NatsCluster) -> list[NatsServer]:
    """Kill the server that decides about the log, and another one; return both."""
    with closing(open_store(three.url)) as database:
        store: Any = database.log("local")
        store.load(["k"])
        leader = store._leader
    dead = sorted(three.servers, key=lambda server: server.server_name != leader)[:2]
    for server in dead:
        server.kill()
    return dead
