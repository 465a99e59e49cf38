"""Priority ages: how long a task can be overtaken is bounded, whatever comes after it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coord.core.identity import Caller
from coord.core.plans.commands import AddTasks, ClaimNext, NewTask
from coord.core.tasks.commands import SubmitResult
from coord.core.tasks.schema import PRIORITY_STEP_MS
from coord.engine.engine import Engine
from coord.stores.open import open_store

START_MS = 1_700_000_000_000
MOST = 9
"""The highest priority in these plans."""
ANN = Caller("ann", agent="ann")

arrivals = st.lists(st.tuples(st.integers(0, 400_000), st.integers(0, MOST)), min_size=2, max_size=40)
"""How long after the one before each task is added, in ms, and its priority."""


class SingleAgent:
    """One agent that takes and finishes one task at a time, on a clock in hand."""

    def __init__(self) -> None:
        self.now = START_MS
        self.engine = Engine(open_store("memory:"), "local", clock=lambda: self.now)

    def add(self, name: str, priority: int) -> None:
        self.engine.call(AddTasks("p", (NewTask(task_id=name, priority=priority),)))

    def serve(self) -> str:
        """Take the first and finish it; return its name."""
        reply = self.engine.call(ClaimNext(caller=ANN, tenant="local", project="p", lease_ms=60_000))
        if reply.task is None:
            return ""
        name = str(reply.task.task_id)
        done = SubmitResult("local", "p", name, "ann", int(reply.claim.generation), b"{}", "wp")
        assert self.engine.call(done).accepted
        return name


@settings(max_examples=60)
@given(arrivals, st.integers(1, 4))
def test_nobody_is_overtaken_by_what_comes_much_later(coming: list[tuple[int, int]], every: int) -> None:
    """Issue 4, Fairness: q goes before p only if it was added less than (q's - p's priority) minutes later.

    So a task of priority p is overtaken by none that is added more than (most - p) steps after it, and waits
    at most for those that were there or came within that time: adding more work later never delays it.
    """
    harness = SingleAgent()
    added: dict[str, tuple[int, int]] = {}
    served: list[str] = []
    for number, (pause_ms, priority) in enumerate(coming):
        harness.now += pause_ms
        name = f"t{number:02d}"
        harness.add(name, priority)
        added[name] = (harness.now, priority)
        if number % every == 0:
            served.append(harness.serve())
    while name := harness.serve():
        served.append(name)
    assert sorted(served) == sorted(added), "everybody had a turn, once"
    for place, name in enumerate(served):
        since, priority = added[name]
        bound_ms = since + (MOST - priority) * PRIORITY_STEP_MS
        for earlier in served[:place]:
            assert added[earlier][0] <= bound_ms, f"{earlier} came too late to go before {name}"


def test_a_stream_of_urgent_work_does_not_starve_the_rest() -> None:
    """Issue 4, Fairness: one low task, and an urgent one more each minute for ever: it waits nine turns.

    DLK-17.
    """
    harness = SingleAgent()
    harness.add("low", 0)
    turns = []
    for number in range(30):
        harness.add(f"urgent-{number:02d}", MOST)
        turns.append(harness.serve())
        harness.now += PRIORITY_STEP_MS
    assert turns.index("low") == MOST
    assert turns[:MOST] == [f"urgent-{number:02d}" for number in range(MOST)]
