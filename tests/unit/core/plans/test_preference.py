"""Routing mode `prefer`: near-equals go to the agent that is best at them, and nobody starves or idles."""

from typing import Any

import pytest

from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.plans.preference import Candidate, merge_preferred
from coord.core.tasks.schema import PRIORITY_STEP_MS
from coord.engine.engine import Engine
from tests.support.lock_harness import CountedDatabase
from tests.support.plan_harness import PlanHarness

TABLES = {
    "presets": {
        "code_gen": {"agents": ["beatrice", "otto"]},
        "doc": {"agents": ["otto", "beatrice"]},
    }
}


def prefer(harness: PlanHarness, agent: str, routing: dict[str, Any] | None = None, **options: Any) -> str:
    return harness.take(agent, mode="prefer", routing=TABLES if routing is None else routing, **options)


def test_everybody_gets_what_it_is_best_at() -> None:
    """RTE-1, RTE-13: whoever asks first, each gets the task for which the matrix ranks it first."""
    for order in (("beatrice", "otto"), ("otto", "beatrice")):
        harness = PlanHarness()
        harness.add("a-doc", type="doc")
        harness.add("b-code", type="code_gen")
        got = {agent: prefer(harness, agent) for agent in order}
        assert got == {"beatrice": "b-code", "otto": "a-doc"}


def test_nobody_idles() -> None:
    """RTE-14, RTE-15: the second choice takes what is left; no task is dropped, none is held back."""
    harness = PlanHarness()
    for number in range(3):
        harness.add(f"doc{number}", type="doc")
    harness.add("code", type="code_gen")
    assert [prefer(harness, "beatrice") for _ in range(5)] == ["code", "doc0", "doc1", "doc2", "blocked"]


@pytest.mark.parametrize("mode", ["", "advise", "prefer"])
def test_advise_changes_nothing(mode: str) -> None:
    """RTE-1: only `prefer` and `assign` let routing have a say."""
    harness = PlanHarness()
    harness.add("a-doc", type="doc")
    harness.add("b-code", type="code_gen")
    got = harness.take("beatrice", mode=mode, routing=TABLES)
    assert got == ("b-code" if mode == "prefer" else "a-doc")


@pytest.mark.parametrize(("later_ms", "first"), [(PRIORITY_STEP_MS - 1, "code"), (PRIORITY_STEP_MS, "doc")])
def test_only_near_equals_change_places(later_ms: int, first: str) -> None:
    """RTE-16: a task that was added a step of priority earlier comes first, whoever asks."""
    harness = PlanHarness()
    harness.add("doc", type="doc")
    harness.now += later_ms
    harness.add("code", type="code_gen")
    assert prefer(harness, "beatrice") == first


def test_priority_comes_before_preference() -> None:
    """RTE-16: one step of priority outweighs what an agent is best at."""
    harness = PlanHarness()
    harness.add("code", type="code_gen")
    harness.add("doc", type="doc", priority=1)
    assert prefer(harness, "beatrice") == "doc"


def test_what_an_agent_declares_counts() -> None:
    """RTE-13: capabilities of the session, by any name of the type; the configuration's, too."""
    harness = PlanHarness()
    harness.engine.call(Register(caller=Caller("ann", agent="ann"), capabilities={"tests": 1.5}))
    configured = {"agents": {"bob": {"capabilities": {"testing": 1.5}}}}
    for name in ("1-doc", "2-doc"):
        harness.add(name, type="doc")
    for name in ("3-test", "4-test"):
        harness.add(name, type="testing")
    assert prefer(harness, "ann", {}) == "3-test"
    assert prefer(harness, "bob", configured) == "4-test"
    assert prefer(harness, "bob", configured) == "1-doc"


def test_no_task_starves() -> None:
    """A task that its agents avoid is passed over only by those that came shortly after it."""
    harness = PlanHarness()
    harness.add("old-doc", type="doc")
    taken = []
    for number in range(10):
        harness.add(f"code{number}", type="code_gen")
        taken.append(prefer(harness, "beatrice", lease_ms=3_600_000))
        harness.now += PRIORITY_STEP_MS // 4
    assert taken.index("old-doc") == 4


def test_the_order_is_complete() -> None:
    """Every candidate comes once, in the order of ranks apart from near-equals."""
    ranks = [(0, "a"), (10, "b"), (PRIORITY_STEP_MS, "c"), (PRIORITY_STEP_MS + 5, "d"), (10**9, "e")]
    candidates = {name: Candidate(f"{rank:015d}", name) for rank, name in ranks}
    slow = iter([candidates["a"], candidates["c"]])
    fast = iter([candidates["b"], candidates["d"], candidates["e"]])
    merged = merge_preferred([(0.5, slow), (1.0, fast), (2.0, iter([]))])
    assert [each.task_id for each in merged] == ["b", "a", "d", "c", "e"]


def test_a_preference_costs_no_read() -> None:
    """DESIGN §3: a claim with preferences reads and asks as much as one without."""

    def cost(**options: Any) -> tuple[int, int, int]:
        database = CountedDatabase()
        harness = PlanHarness()
        harness.engine = Engine(database, "local", clock=lambda: harness.now)  # type: ignore[arg-type]
        harness.engine.call(Register(caller=Caller("beatrice", agent="beatrice")))
        for number in range(3):
            harness.add(f"doc{number}", type="doc")
            harness.add(f"code{number}", type="code_gen")
        store = database.store
        store.reads = store.questions = 0
        store.written.clear()
        assert harness.take("beatrice", **options).startswith(("doc", "code"))
        return store.reads, store.questions, len(store.written)

    plain = cost()
    assert cost(mode="prefer") == plain
    assert cost(mode="prefer", routing=TABLES) == plain
