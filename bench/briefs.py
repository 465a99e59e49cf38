"""The brief of one agent among many: the query, its text, and a tool call that finds no news.

A call with and one without a look for news take turns, so that their ratio says what looking costs.
"""

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter

from bench.figures import Figure
from bench.places import Places
from bench.scale import TINY, Scale
from coord.core.brief.commands import GetBrief, RecordBrief
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks, BeginToolCall, EndToolCall
from coord.core.plans.commands import AddTasks, ClaimNamed, NewTask
from coord.engine.engine import Engine
from coord.sdk.brief.crew_update import crew_update
from coord.stores.open import open_store

AGENTS, TASKS = 200, 500
BRIEF_MS_MAX = 5.0
CALLS = 100
LEAD, REPOSITORY, PROJECT = "lead", "r", "p"
NEWS_EVERY_MS = 1


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield what briefs take among many agents that hold locks and tasks."""
    agents, tasks = (10, 20) if scale is TINY else (AGENTS, TASKS)
    database = open_store(places.fresh_url(store))
    engine = Engine(database, "local")
    try:
        _fill(engine, agents, tasks)
        for name, command in (
            ("a lead", GetBrief(_caller(LEAD))),
            ("a specialist", GetBrief(_caller("agent-0001"), health=False)),
        ):
            brief = engine.call(command)
            asked = [_time(partial(engine.call, command)) for _ in range(CALLS)]
            drawn = [_time(partial(crew_update, brief)) for _ in range(CALLS)]
            among = f"{name} among {agents} agents"
            both = [query + text for query, text in zip(asked, drawn, strict=True)]
            yield Figure.middle_of(both, "briefs", store, f"brief for {among}", "ms", most=BRIEF_MS_MAX)
            yield Figure.middle_of(asked, "briefs", store, f"its query for {among}", "ms")
            yield Figure.middle_of(drawn, "briefs", store, f"its text for {among}", "ms")
        yield from _calls(engine, store)
    finally:
        engine.close()
        database.close()


def _caller(name: str) -> Caller:
    return Caller(
        name, agent="claude", role="developer", project=PROJECT, parent="" if name == LEAD else LEAD
    )


def _fill(engine: Engine, agents: int, tasks: int) -> None:
    plan = [NewTask(task_id=f"t{number:04}", description="one of many") for number in range(tasks)]
    engine.call(AddTasks(PROJECT, tuple(plan)))
    names = [LEAD, *(f"agent-{number:04}" for number in range(agents))]
    engine.call_many([Register(caller=_caller(name), model="opus", peers=False) for name in names])
    engine.call_many([AcquireLocks(_caller(name), REPOSITORY, (f"file:src/{name}.py",)) for name in names])
    claims = zip(names[1 : agents // 2], plan, strict=False)
    engine.call_many(
        [
            ClaimNamed(
                caller=_caller(name),
                tenant="local",
                project=PROJECT,
                task=task.task_id,
                lease_ms=600_000,
                repository=REPOSITORY,
            )
            for name, task in claims
        ]
    )


def _calls(engine: Engine, store: str) -> Iterator[Figure]:
    """Yield what the end of a tool call takes if it looks for news, and how much more that is."""
    me = _caller("agent-0002")
    engine.call(EndToolCall(me, "-", REPOSITORY, NEWS_EVERY_MS))
    engine.call(RecordBrief(me, "digest", 1, 1))
    took: dict[int, list[float]] = {0: [], NEWS_EVERY_MS: []}
    for number in range(CALLS):
        for every_ms in (0, NEWS_EVERY_MS) if number % 2 else (NEWS_EVERY_MS, 0):
            engine.call(BeginToolCall(me, REPOSITORY, (), call="c", lease_ms=60_000))
            end = EndToolCall(me, "c", REPOSITORY, every_ms)
            took[every_ms].append(_time(partial(engine.call, end)))
    plain, looking = (sorted(each)[CALLS // 4] for each in took.values())
    yield Figure.middle_of(took[NEWS_EVERY_MS], "briefs", store, "end of a call without news", "ms")
    yield Figure("briefs", store, "the same, times one that does not look", looking / plain, "x")


def _time(act: Callable[[], object]) -> float:
    began = perf_counter()
    act()
    return (perf_counter() - began) * 1000
