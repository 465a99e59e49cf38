"""Assigned tasks: who gets them, for how long, and what routing assigns by itself."""

from typing import Any

import pytest

from coord.core import keys
from coord.core.errors import CoordError, NotFound, Refused
from coord.core.identity import Caller, Evidence, Process, ProcessState
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.messages.commands import ReceiveMessages
from coord.core.plans.assignment import ASSIGNED_MS
from coord.core.plans.commands import AddTasks, AssignTask, ClaimNamed, NewTask
from coord.core.sessions.commands import Heartbeat
from coord.core.sessions.liveness import STALE_MS
from coord.engine.engine import Engine
from tests.support.lock_harness import CountedDatabase
from tests.support.plan_harness import LEASE_MS, PlanHarness

TABLES = {"presets": {"doc": {"agents": ["otto", "beatrice"]}, "code_gen": {"agents": ["beatrice", "otto"]}}}


class Crew(PlanHarness):
    """Agents that are registered in the project, with processes that a test may end."""

    def __init__(self, *agents: str) -> None:
        super().__init__()
        self.life: dict[int, ProcessState] = {}
        self.counted_database = CountedDatabase()
        self.engine = Engine(self.counted_database, "local", clock=lambda: self.now, probe=self._probe)  # type: ignore[arg-type]
        for agent in agents:
            self.engine.call(Register(caller=self.who(agent)))

    def _probe(self, process: Process) -> Evidence:
        return Evidence(self.life.get(process.pid, ProcessState.ALIVE), "probed")

    def who(self, agent: str) -> Caller:
        return Caller(agent, agent=agent, project="p", process=Process(sum(map(ord, agent)), 1))

    def next_command(self, agent: str, **options: Any) -> Any:  # type: ignore[override]
        command = PlanHarness.next_command(agent, **options)
        return type(command)(**{**_fields(command), "caller": self.who(agent)})

    def assign(self, task: str, agent: str, *, by: str = "lead", for_ms: int = ASSIGNED_MS) -> Any:
        command = AssignTask(
            caller=self.who(by), tenant="local", project="p", task=task, agent=agent, for_ms=for_ms
        )
        return self.engine.call(command)

    def told(self, agent: str) -> list[str]:
        received = self.engine.call(ReceiveMessages(self.who(agent), drain=True))
        return [message.subject for message in received.messages]


def _fields(command: Any) -> dict[str, Any]:
    return {name: getattr(command, name) for name in command.__struct_fields__}


def test_an_assigned_task_is_kept_for_its_agent() -> None:
    """RTE-1: others get the next task, or are told for whom it is kept; its agent hears of it and gets it."""
    crew = Crew("otto", "beatrice")
    crew.add("t1")
    crew.add("t2")
    shown = crew.assign("t1", "otto")
    assert shown.assignee == "otto"
    assert crew.take("beatrice") == "t2"
    nothing = crew.ask("beatrice")
    assert "t1: it is assigned to otto for 120 s more" in nothing.waiting_for
    assert any("t1 is assigned to you" in subject for subject in crew.told("otto"))
    assert crew.take("otto") == "t1"


@pytest.mark.parametrize("for_ms", [60_000, ASSIGNED_MS])
def test_an_assignment_is_bounded_by_time(for_ms: int) -> None:
    """RTE-16: afterwards everybody may take it, without a sweep."""
    crew = Crew("otto", "beatrice")
    crew.add("t1")
    crew.assign("t1", "otto", for_ms=for_ms)
    crew.now += for_ms - 1
    crew.engine.call(Heartbeat(crew.who("otto")))
    assert crew.take("beatrice") == "blocked"
    crew.now += 1
    assert crew.take("beatrice") == "t1"


@pytest.mark.parametrize("why", ["busy", "ended", "dead", "silent"])
def test_an_assignment_needs_an_agent_that_is_live_and_free(why: str) -> None:
    """RTE-14, RTE-15: if the agent is busy or gone, the task is for everybody at once."""
    crew = Crew("otto", "beatrice")
    crew.add("t1")
    crew.add("t2", priority=9)
    crew.assign("t1", "otto", for_ms=2 * STALE_MS)
    if why == "busy":
        assert crew.take("otto") == "t2"
    elif why == "ended":
        crew.engine.call(Deregister(crew.who("otto")))
    elif why == "dead":
        crew.life[sum(map(ord, "otto"))] = ProcessState.DEAD
    else:
        crew.now += STALE_MS
    got = [crew.take("beatrice"), crew.take("beatrice")]
    assert "t1" in got


def test_an_assignment_survives_a_change_of_the_task() -> None:
    """A plan that is loaded again does not know of it, and keeps it."""
    crew = Crew("otto", "beatrice")
    crew.add("t1")
    crew.assign("t1", "otto")
    crew.engine.call(AddTasks("p", (NewTask(task_id="t1", description="new"),)))
    assert crew.take("beatrice") == "blocked"
    assert crew.take("otto") == "t1"


def test_a_claim_by_name_passes_an_assignment() -> None:
    """Whoever names the task has decided."""
    crew = Crew("otto", "beatrice")
    crew.add("t1")
    crew.assign("t1", "otto")
    command = ClaimNamed(
        caller=crew.who("beatrice"), tenant="local", project="p", task="t1", lease_ms=LEASE_MS, repository="r"
    )
    assert crew.engine.call(command).success


@pytest.mark.parametrize(
    ("before", "task", "agent", "kind", "message"),
    [
        ("", "t1", "nobody", NotFound, "agent nobody has no live session"),
        ("", "t9", "otto", NotFound, "t9"),
        ("claim", "t1", "otto", Refused, "t1 is in progress"),
        ("done", "t1", "otto", Refused, "t1 is done"),
    ],
)
def test_what_cannot_be_assigned(
    before: str, task: str, agent: str, kind: type[CoordError], message: str
) -> None:
    """A refusal names the task, the problem and the next step."""
    crew = Crew("otto", "beatrice")
    crew.add("t1")
    if before:
        crew.take("beatrice")
    if before == "done":
        assert crew.submit("t1", "beatrice")
    with pytest.raises(kind, match=message) as refused:
        crew.assign(task, agent)
    assert refused.value.hint


def test_routing_assigns_to_the_best_free_agent() -> None:
    """RTE-1, RTE-13: in mode `assign` an agent leaves to a better one what that is free to do."""
    crew = Crew("otto", "beatrice")
    crew.add("doc", type="doc")
    crew.add("code", type="code_gen")
    assign = {"mode": "assign", "routing": TABLES}
    assert crew.take("beatrice", types=("doc",), **assign) == "blocked"
    assert any("doc is assigned to you" in subject for subject in crew.told("otto"))
    assert crew.take("beatrice", **assign) == "code"
    assert crew.take("otto", **assign) == "doc"


def test_routing_assigns_a_task_once() -> None:
    """RTE-16: a task that its agent did not take within the time is for everybody."""
    crew = Crew("otto", "beatrice")
    crew.add("doc", type="doc")
    assign = {"mode": "assign", "routing": TABLES}
    assert crew.take("beatrice", **assign) == "blocked"
    crew.now += ASSIGNED_MS
    crew.engine.call(Heartbeat(crew.who("otto")))
    assert crew.take("beatrice", **assign) == "doc"


@pytest.mark.parametrize("why", ["busy", "gone", "equal"])
def test_routing_leaves_a_task_to_whoever_asks(why: str) -> None:
    """RTE-14, RTE-15: nobody better is free, so the agent that asks gets the task at once."""
    crew = Crew("otto", "beatrice")
    crew.add("doc1", type="doc", priority=5)
    crew.add("doc2", type="doc" if why != "equal" else "")
    assign = {"mode": "assign", "routing": TABLES}
    if why == "gone":
        crew.engine.call(Deregister(crew.who("otto")))
    else:
        assert crew.take("otto", **assign) == "doc1"
    assert crew.take("beatrice", **assign) == ("doc1" if why == "gone" else "doc2")


def test_other_modes_do_not_look_at_agents() -> None:
    """DESIGN §3: without an assignment a claim reads no session but its own."""
    crew = Crew("otto", "beatrice")
    crew.add("doc", type="doc")
    assert crew.take("beatrice", mode="prefer") == "doc"
    assert keys.session("otto") not in crew.counted_database.store.expected
