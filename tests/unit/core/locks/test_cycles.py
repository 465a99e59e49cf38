"""The search for cycles: waits with one way out and with several, and sessions with sub-agents."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.identity import Process, ProcessState
from coord.core.locks.commands import ListWaits
from coord.core.locks.cycles import CycleSearch, Node, Waiting, WayOut
from coord.core.locks.schema import LockRequest
from coord.core.locks.table import RequestAt
from tests.support.lock_harness import LockHarness

NODES = [Node(name, True) for name in "abcde"]
WAYS = st.lists(
    st.builds(WayOut, st.lists(st.sampled_from(NODES), max_size=3).map(tuple), st.booleans()), max_size=3
)
GRAPHS = st.fixed_dictionaries({node: st.lists(WAYS, max_size=2) for node in NODES})


class DrawnSearch(CycleSearch):
    """A search in a graph that a test has drawn."""

    def __init__(self, graph: dict[Node, list[list[WayOut]]]) -> None:
        self._graph = graph

    def waits_of(self, node: Node) -> list[Waiting]:
        return [RequestAt(f"{node.session}/{at}", LockRequest()) for at in range(len(self._graph[node]))]

    def ways_out(self, waiting: Waiting) -> list[WayOut]:
        name, _, at = waiting.key.partition("/")
        return self._graph[Node(name, True)][int(at)]


def finishing(graph: dict[Node, list[list[WayOut]]]) -> set[Node]:
    """Those that finish in the end: let everybody finish whose waits are over, again and again."""
    done: set[Node] = set()
    for _ in graph:
        for node, waits in graph.items():
            over = [not ways or any(_open(way, done) for way in ways) for ways in waits]
            if all(over):
                done.add(node)
    return done


def _open(way: WayOut, done: set[Node]) -> bool:
    if not way.nodes:
        return True
    return any(n in done for n in way.nodes) if way.one_is_enough else done.issuperset(way.nodes)


@given(GRAPHS)
def test_stuck_are_those_that_never_finish(graph: dict[Node, list[list[WayOut]]]) -> None:
    """DLK-3, DLK-20: whatever the others do, these cannot go on; everybody else can."""
    assert DrawnSearch(graph).stuck(set(NODES), denied=True) == set(NODES) - finishing(graph)


def family() -> LockHarness:
    harness = LockHarness()
    harness.parents |= {"kid": "ann", "grandkid": "kid"}
    harness.lock("ann", "file:a", ttl=3_600_000)
    harness.pass_time(1_000)
    harness.lock("bob", "file:b", ttl=3_600_000)
    harness.lock("kid", "file:k")
    return harness


def victims(harness: LockHarness) -> list[str]:
    return [event["victim"] for event in harness.events("lock.deadlock")]


def test_a_parent_waits_for_what_its_sub_agents_wait_for() -> None:
    """DLK-2, DLK-3: also two generations below; the parent does not release while they wait."""
    harness = family()
    harness.wait("grandkid", "file:b")
    assert harness.wait("bob", "file:a").outcome == "deadlock"
    assert victims(harness) == ["bob"]


def test_the_victims_sub_agent_is_refused_and_both_are_told() -> None:
    """DLK-14, DLK-15: the parent loses its lock, and the wait of its sub-agent ends."""
    harness = family()
    waiting = harness.wait("kid", "file:b", preemptible=True)
    assert harness.wait("bob", "file:a").ok
    refused = harness.confirm("kid", waiting)
    assert (refused.outcome, refused.lost, refused.lost_to) == ("deadlock", ["file:a"], "bob")
    for name in ("ann", "kid"):
        assert "you lost a to bob" in harness.told(name, "preempt")[0]


def parent_takes_it(harness: LockHarness) -> None:
    harness.release("zoe", "file:c")
    assert harness.lock("ann", "file:c", priority=9).ok, "she is ahead of bob"


def parent_waits_for_it(harness: LockHarness) -> None:
    harness.wait("ann", "file:c", priority=9)
    harness.release("zoe", "file:c")


def parent_steals_it(harness: LockHarness) -> None:
    harness.steal("ann", "file:c", force=True, reason="needed")


@pytest.mark.parametrize("gets", [parent_takes_it, parent_waits_for_it, parent_steals_it])
def test_a_lock_that_the_parent_gets_closes_a_cycle(gets: Callable[[LockHarness], None]) -> None:
    """DLK-2, DLK-3: no wait began; the sub-agent finds the cycle when it next confirms its wait."""
    harness = family()
    harness.lock("zoe", "file:c")
    harness.lock("dan", "file:d")
    waiting = harness.wait("kid", "file:b")
    harness.wait("bob", "file:c", "file:d")
    gets(harness)
    assert victims(harness) == []
    harness.confirm("kid", waiting)
    assert [event["cycle"] for event in harness.events("lock.deadlock")] == [["ann", "bob", "ann"]]
    assert harness.confirm("kid", waiting).outcome != "waiting"


def test_a_sub_agent_behind_its_parent_in_the_queue_is_no_cycle() -> None:
    """DLK-20: the parent gets its lock when bob is done, and the sub-agent goes on under it."""
    harness = family()
    assert harness.wait("ann", "file:b").outcome == "waiting"
    assert harness.wait("kid", "file:b").outcome == "waiting"
    assert victims(harness) == []


def test_a_sub_agent_that_stops_waiting_is_forgotten() -> None:
    """DLK-20: then its parent does not wait either."""
    harness = family()
    harness.withdraw("kid", harness.wait("kid", "file:b"))
    assert harness.wait("bob", "file:a").outcome == "waiting"


def test_a_cycle_through_a_denied_request_of_a_sub_agent_is_warned_first() -> None:
    """CFL-17, LCK-23: as for every denied request."""
    harness = family()
    reply: Any = harness.lock("kid", "file:b")
    assert reply.outcome == "held"
    harness.wait("bob", "file:a")
    (event,) = harness.events("lock.deadlock")
    assert (event["resolved"], set(event["cycle"])) == (False, {"ann", "bob"})


def waits(harness: LockHarness) -> dict[tuple[str, str], Any]:
    return {(each.session, each.kind): each for each in harness.engine.call(ListWaits())}


def test_the_graph_says_who_waits_behind_whom() -> None:
    """DLK-2: waiting and denied requests with their blockers, positions and times."""
    harness = family()
    harness.wait("cid", "file:b")
    harness.pass_time(5_000)
    harness.wait("dan", "file:b")
    harness.lock("eve", "file:b")
    found = waits(harness)
    cid, dan, eve = (found[name, "lock"] for name in ("cid", "dan", "eve"))
    assert [(each.session, each.by, each.what) for each in cid.blockers] == [("bob", "lock", "file:b")]
    assert [(each.session, each.by) for each in dan.blockers] == [("bob", "lock"), ("cid", "queue")]
    assert [each.position for each in (cid, dan, eve)] == [1, 2, 0]
    assert [each.denied for each in (cid, dan, eve)] == [False, False, True]
    assert (cid.waited_s, cid.wants, cid.cycle) == (5.0, ["file:b"], [])


def test_the_graph_marks_cycles_with_denied_requests() -> None:
    """DLK-3: such a cycle may end by itself; until then everybody can see it."""
    harness = family()
    harness.lock("kid", "file:b")
    harness.wait("bob", "file:a")
    found = waits(harness)
    assert {*found["bob", "lock"].cycle} == {"ann", "bob"} == {*found["kid", "lock"].cycle}
    assert found["kid", "lock"].parent == "ann"


def test_the_graph_leaves_out_who_is_gone() -> None:
    """A wait whose process has died, or whose time is over, is none."""
    harness = family()
    harness.wait("cid", "file:b", wait_ms=1_000)
    harness.life[7] = ProcessState.DEAD
    harness.wait("dan", "file:b", waiter=Process(7, 1))
    harness.pass_time(2_000)
    assert waits(harness) == {}


def test_the_graph_is_read_in_few_questions() -> None:
    """All waits are looked up together, however many there are."""
    harness = family()
    for number in range(40):
        harness.lock(f"s{number}", f"file:x{number}")
        harness.wait(f"w{number}", f"file:x{number}")
    harness.store.questions = 0
    assert len(waits(harness)) == 40
    assert harness.store.questions <= 12


@pytest.mark.parametrize("waiting", [2, 40])
def test_a_long_queue_is_searched_in_few_questions(waiting: int) -> None:
    """The search looks up everybody ahead together, when a wait begins and when a sub-agent confirms it."""
    harness = family()
    harness.lock("zoe", "file:z")
    for number in range(waiting):
        harness.wait(f"w{number}", "file:z")
    harness.store.questions = 0
    last = harness.wait("kid", "file:z")
    assert harness.store.questions <= 12
    harness.store.questions = 0
    assert harness.confirm("kid", last).outcome == "waiting"
    assert harness.store.questions <= 12
