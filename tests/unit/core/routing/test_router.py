"""Routing: types by words, who is best, who is free, who gets nothing, and that it says why."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.limits import DAY_MS
from coord.core.plans.similarity import COMPARED_MAX, WARNINGS_MAX
from coord.core.routing.commands import AgentInfo
from coord.core.routing.router import (
    LIGHT,
    POSITION_WEIGHTS,
    POSITIONS,
    TRACK_RECORD_MAX,
    TRACK_RECORD_MIN,
    URGENT,
    Agent,
    AgentConfig,
    Choice,
    agent_as,
    declared,
    other_idle_agents,
    rank_agents,
    route,
    track_record_factor,
)
from coord.core.routing.specialties import Size, matrix_with
from coord.core.sessions.schema import Liveness
from coord.core.tasks.agent_record import (
    FAILURES_TO_BLOCK,
    FORGIVE_MS,
    KEPT_MS,
    TRACK_RECORD_TASKS_MAX,
    TYPES_MAX,
)
from coord.core.tasks.schema import Spec, TrackRecord
from coord.host.presets import AGENTS_BY_TYPE
from coord.sdk.client import tasks
from coord.sdk.validation.arguments import EFFICIENCY_MAX
from tests.support.docs.pages import rows_of, text_of

NOW = 1_700_000_000_000
MATRIX = matrix_with(AGENTS_BY_TYPE)
PAGE = "docs/reference/routing.md"
NEW_CODE = Spec(description="Create a signup form", type="code_gen")


def team(**changes: dict) -> list[Agent]:
    """The three agents of the first document, idle unless changed."""
    return [
        Agent(**{"name": name, "average_s": 45} | changes.get(name, {}))
        for name in ("rem", "otto", "beatrice")
    ]


def chosen(task: Spec, agents: list[Agent]) -> str:
    return route(task, agents, NOW, MATRIX).agent


def choice_of(name: str, task: Spec, agents: list[Agent]) -> Choice:
    return next(choice for choice in rank_agents(task, agents, NOW, MATRIX) if choice.agent == name)


# The matrix


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        ("code_gen", "beatrice otto rem"),
        ("review", "otto beatrice rem"),
        ("api", "rem otto beatrice"),
        ("doc", "otto beatrice rem"),
        ("testing", "beatrice rem otto"),
        ("script", "otto beatrice rem"),
    ],
)
def test_idle_agents_come_in_the_order_of_the_matrix(kind: str, order: str) -> None:
    """Six rows, each with its order and its rationale; the primary gets the task.

    RTE-2, RTE-3, RTE-4, RTE-5, RTE-6, RTE-7, RTE-8, RTE-9, RTE-10, RTE-11.
    """
    choices, names = rank_agents(Spec(type=kind), team(), NOW, MATRIX), order.split()
    assert [choice.agent for choice in choices] == names
    assert [choice.position for choice in choices] == list(POSITIONS)
    assert chosen(Spec(type=kind), team()) == names[0]
    assert all(name.title() in MATRIX[kind].because for name in names)
    assert len(MATRIX) == 6


def test_the_page_shows_the_matrix_and_the_numbers_as_they_are() -> None:
    """RTE-11: the reference page says what the data say, row by row."""
    rows = [
        [f"`{name}`", row.title, *row.agents, row.because, ", ".join(row.words), ", ".join(row.weak_words)]
        for name, row in MATRIX.items()
    ]
    assert rows_of(PAGE, "## The matrix") == rows
    weights = [[size.value, *(f"{weight:g}" for weight in POSITION_WEIGHTS[size])] for size in Size]
    assert rows_of(PAGE, "## Sizes") == weights
    text = " ".join(text_of(PAGE).split())
    assert f"from {TRACK_RECORD_MIN} to {TRACK_RECORD_MAX}" in text
    assert f"priority {URGENT} or more" in text
    assert f"{FAILURES_TO_BLOCK} failures in a row" in text
    assert f"{LIGHT:.0%} of the time" in text
    assert FORGIVE_MS == 60_000, "a minute"
    assert f"Above {TRACK_RECORD_TASKS_MAX} tasks of a type" in text
    assert f"A session counts {TYPES_MAX} types" in text
    assert f"after {KEPT_MS // DAY_MS} days without news" in text
    assert f"At most {COMPARED_MAX} unfinished tasks are compared" in text
    assert f"the first {tasks.COMPARED_MAX} tasks that are new" in text
    assert f"The {WARNINGS_MAX} most similar" in text
    assert f"from 0 to {EFFICIENCY_MAX}" in text
    fields = {row[0].strip("`") for row in rows_of(PAGE, "## Configuration")}
    assert fields == set(AgentConfig.__struct_fields__)


# Types and sizes


@pytest.mark.parametrize("estimate_s", [5e-324, -1.0, float("inf"), float("nan"), 1e308])
def test_odd_durations_do_no_harm(estimate_s: float) -> None:
    """RTE-15: an estimate that cannot be right drops no task; neither does an efficiency next to nothing."""
    agents = team(otto={"capabilities": {"code_gen": 5e-324}}, beatrice={"capabilities": {"code_gen": 10}})
    routing = route(Spec(type="code_gen", estimate_s=estimate_s), agents, NOW, MATRIX)
    assert routing.agent == "beatrice"
    assert routing.expected_ms > NOW
    assert routing.choices[-1].refused == "it declares that it cannot do code_gen"


def test_small_tasks_suit_nearly_anybody() -> None:
    """RTE-12: the larger a task, the more it matters who is best at it."""
    scores = [
        choice_of("rem", Spec(type="doc", requirements={"complexity": size}), team()).score for size in Size
    ]
    assert scores == pytest.approx([80, 60, 40])


# Load


def test_a_busy_primary_yields_to_an_idle_secondary() -> None:
    """SCN-31, RTE-14: Beatrice has a queue, Otto is idle: new code goes to Otto, and the answer says why."""
    routing = route(NEW_CODE, team(beatrice={"queue_depth": 3}), NOW, MATRIX)
    assert routing.agent == "otto"
    assert "secondary for code_gen and free" in routing.because
    assert "waits 135 s" in routing.because


def test_load_is_queue_depth_times_average_duration() -> None:
    """Many short tasks weigh as much as few long ones; an unknown duration is this task's.

    RTE-14, STA-8.
    """
    task = Spec(type="code_gen", estimate_s=100)
    waits = [
        choice_of("beatrice", task, team(beatrice=changes)).wait_s
        for changes in (
            {"queue_depth": 6, "average_s": 10},
            {"queue_depth": 2, "average_s": 30},
            {"queue_depth": 1, "average_s": 0},
            {"queue_depth": 1, "state": "working", "average_s": 10},
            {"state": "blocked", "average_s": 10},
        )
    ]
    assert waits == [60, 60, 100, 20, 10]


def test_the_primary_keeps_what_it_has_capacity_for() -> None:
    """RTE-13: with a free hand there is no wait; at capacity there is, shared among its hands."""
    busy = {"running": 1, "capacity": 2}
    assert chosen(NEW_CODE, team(beatrice=busy)) == "beatrice"
    assert chosen(NEW_CODE, team(beatrice=busy | {"running": 2})) == "otto"
    assert choice_of("beatrice", NEW_CODE, team(beatrice=busy | {"running": 3})).wait_s == 45


def test_a_lightly_loaded_primary_is_as_good_as_free() -> None:
    """RTE-13: a wait that is short against the task itself sends nobody to the second best."""
    task = Spec(type="code_gen", estimate_s=180)
    assert chosen(task, team(beatrice={"queue_depth": 1})) == "beatrice"
    assert chosen(msgspec.structs.replace(task, estimate_s=179), team(beatrice={"queue_depth": 1})) == "otto"


def test_the_tertiary_takes_what_both_others_cannot() -> None:
    """RTE-15: primary overloaded and secondary away: the third does it."""
    routing = route(NEW_CODE, team(beatrice={"queue_depth": 9}, otto={"enabled": False}), NOW, MATRIX)
    assert routing.agent == "rem"
    assert "otto: disabled" in routing.because


def test_who_is_free_comes_before_who_is_fast() -> None:
    """RTE-14, RTE-15: a busy primary keeps no routine work from a free hand, even if done sooner."""
    agents = team(beatrice={"queue_depth": 1, "average_s": 30}, otto={"enabled": False})
    task = Spec(type="code_gen", estimate_s=100)
    assert choice_of("beatrice", task, agents).score > choice_of("rem", task, agents).score
    assert chosen(task, agents) == "rem"


def test_all_busy_leaves_the_task_in_the_queue_unless_it_is_urgent() -> None:
    """RTE-16: nobody is loaded further with routine work; an urgent task goes where it is done first."""
    agents = team(beatrice={"queue_depth": 9}, otto={"queue_depth": 4}, rem={"queue_depth": 9})
    routing = route(NEW_CODE, agents, NOW, MATRIX)
    assert (routing.agent, "stays in the queue" in routing.because) == ("", True)
    assert chosen(msgspec.structs.replace(NEW_CODE, priority=URGENT - 1), agents) == ""
    assert chosen(msgspec.structs.replace(NEW_CODE, priority=URGENT), agents) == "otto"


def test_a_slightly_busy_specialist_wins_a_task_of_high_priority() -> None:
    """RTE-19: one task ahead is made up for by priority, a long line is not."""
    agents = team(beatrice={"queue_depth": 1})
    assert chosen(NEW_CODE, agents) == "otto"
    urgent = msgspec.structs.replace(NEW_CODE, priority=5)
    assert chosen(urgent, agents) == "beatrice"
    assert "priority makes up for 45 s" in choice_of("beatrice", urgent, agents).reason
    assert chosen(urgent, team(beatrice={"queue_depth": 3})) == "otto"


def test_waiting_counts_as_priority() -> None:
    """RTE-19: a task that has waited is treated as if it had been given the priority it aged to."""
    agents = team(beatrice={"queue_depth": 1})
    aged = msgspec.structs.replace(NEW_CODE, created_ms=NOW - 60_000)
    assert chosen(aged, agents) == "beatrice"
    assert chosen(msgspec.structs.replace(aged, priority=-1), agents) == "otto"


def test_before_a_large_task_an_agent_can_ask_who_is_idle() -> None:
    """RTE-24: the others who could begin at once, best first."""
    choices = rank_agents(NEW_CODE, team(rem={"queue_depth": 1}), NOW, MATRIX)
    assert other_idle_agents("beatrice", choices) == ["otto"]
    assert other_idle_agents("rem", choices) == ["beatrice", "otto"]
    lightly = rank_agents(
        Spec(type="code_gen", estimate_s=180), team(beatrice={"queue_depth": 1}), NOW, MATRIX
    )
    assert other_idle_agents("rem", lightly) == ["otto"]


def test_completion_is_expected_by_durations_or_else_by_the_deadline() -> None:
    """RTE-25: wait and work of whoever gets it; where no duration is known, the deadline; late is said."""
    task = Spec(type="code_gen", deadline_ms=NOW + 10_000)
    assert route(task, team(), NOW, MATRIX).expected_ms == NOW + 45_000
    assert route(task, team(), NOW, MATRIX).late_s == 35
    unknown = [Agent(name="beatrice")]
    assert route(task, unknown, NOW, MATRIX).expected_ms == NOW + 10_000
    assert route(Spec(type="code_gen"), unknown, NOW, MATRIX).expected_ms == NOW + 300_000


# Who gets nothing


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"enabled": False}, "disabled"),
        ({"capacity": 0}, "its capacity is 0"),
        ({"state": "crashed"}, "its state is crashed"),
        ({"state": "error"}, "its state is failed"),
        ({"liveness": Liveness.SUSPECT}, "its session is suspect"),
        ({"liveness": Liveness.ENDED}, "it has no session"),
        ({"blocked_reason": "rate limited for 1 s"}, "rate limited for 1 s"),
        ({"capabilities": {"api": 0}}, "it declares that it cannot do api"),
        ({"capabilities": {"api_integration": 0}}, "it declares that it cannot do api"),
    ],
)
def test_who_cannot_gets_nothing_and_another_does(changes: dict, reason: str) -> None:
    """Unavailable agents get nothing however urgent, and work goes to the next.

    SCN-28, RTE-20, RTE-21, RTE-22.
    """
    task = Spec(type="api", priority=URGENT)
    assert chosen(task, team()) == "rem"
    assert chosen(task, team(rem=changes)) == "otto"
    assert choice_of("rem", task, team(rem=changes)).reason == reason
    assert chosen(task, [agent for agent in team(rem=changes) if agent.name == "rem"]) == ""


def test_what_is_out_of_reach_for_one_type_is_no_matter_for_others() -> None:
    """RTE-21: Rem without its API gets no API tasks, but still the rest."""
    agents = team(rem={"capabilities": {"api": 0}}, otto={"queue_depth": 9}, beatrice={"queue_depth": 9})
    assert chosen(Spec(type="api"), agents) == ""
    assert chosen(Spec(type="doc"), agents) == "rem"


def test_needs_and_role_must_fit() -> None:
    """A task for a reviewer or one that needs the internet goes only to such an agent.

    RTE-27, CLM-3, CLM-75.
    """
    agents = team(rem={"capabilities": {"internet": 1}, "role": "developer"}, otto={"role": "reviewer"})
    assert chosen(Spec(type="code_gen", needs=("internet",)), agents) == "rem"
    assert choice_of("otto", Spec(type="doc", needs=("internet",)), agents).reason == "it lacks internet"
    by_role = Spec(type="doc", role="developer")
    assert choice_of("otto", by_role, agents).reason == "the task is for a developer, it is a reviewer"
    assert chosen(by_role, agents) == "beatrice"


# More agents, and what they have shown


def test_a_new_agent_joins_by_configuration() -> None:
    """SCN-32, RTE-26: Mallory brings a type of her own and one of the old ones; nothing else changes."""
    matrix = matrix_with(
        {
            "ui": {"agents": ["mallory", "beatrice"], "words": ["layout"]},
            "doc": {"agents": ["mallory", "otto"]},
        },
        matrix=MATRIX,
    )
    table = declared({"capabilities": ["testing"], "capacity": 2}, "mallory")
    mallory = agent_as(AgentInfo(name="mallory", liveness=Liveness.LIVE, claims=3), table)
    assert (mallory.running, mallory.queue_depth) == (2, 1)
    mallory = agent_as(AgentInfo(name="mallory", liveness=Liveness.LIVE), table)
    agents = [*team(), mallory]
    assert route(Spec(description="Create the layout"), agents, NOW, matrix).agent == "mallory"
    routing = route(Spec(description="Document it"), agents, NOW, matrix)
    assert routing.agent == "mallory"
    assert matrix["doc"].because == MATRIX["doc"].because
    assert "ui" not in MATRIX
    others = rank_agents(Spec(type="testing"), agents, NOW, matrix)
    assert [choice.agent for choice in others] == ["beatrice", "rem", "otto", "mallory"]
    assert choice_of("mallory", Spec(type="api"), agents).reason == "it does not declare api"


def test_two_agents_are_enough() -> None:
    """SCN-32: scaled down, every type still finds somebody."""
    for left_out in ("rem", "otto", "beatrice"):
        agents = [agent for agent in team() if agent.name != left_out]
        for kind in MATRIX:
            order = [name for name in MATRIX[kind].agents if name != left_out]
            assert chosen(Spec(type=kind), agents) == order[0]


def test_several_agents_of_one_kind_share_its_place() -> None:
    """RTE-26: two of Beatrice's kind are both primary; the free one gets the task."""
    twins = [Agent(name="b-1", kind="beatrice", queue_depth=2), Agent(name="b-2", kind="beatrice")]
    assert [choice.position for choice in rank_agents(NEW_CODE, twins, NOW, MATRIX)] == ["primary", "primary"]
    assert chosen(NEW_CODE, twins) == "b-2"


def test_declared_efficiency_counts() -> None:
    """RTE-17: who says it is much faster at a type than the primary gets it."""
    assert chosen(NEW_CODE, team(otto={"capabilities": {"code_gen": 1.2}})) == "beatrice"
    assert chosen(NEW_CODE, team(otto={"capabilities": {"code_generation": 1.3}})) == "otto"


@pytest.mark.parametrize(
    ("track_record", "factor"),
    [
        (None, 1.0),
        (TrackRecord(), 1.0),
        (TrackRecord(done=5, took_s=100, expected_s=100), 1.0),
        (TrackRecord(done=5, took_s=100, expected_s=140), 1.2),
        (TrackRecord(done=1, took_s=100, expected_s=160), 1.1),
        (TrackRecord(done=3, failed=2), 0.8),
        (TrackRecord(failed=100), TRACK_RECORD_MIN),
        (TrackRecord(done=100, took_s=1, expected_s=1000), TRACK_RECORD_MAX),
    ],
)
def test_the_past_adjusts_efficiency(track_record: TrackRecord | None, factor: float) -> None:
    """RTE-18: success and pace count, few tasks count little, and there are bounds."""
    assert track_record_factor(track_record) == pytest.approx(factor)


def test_the_past_decides_and_is_seen() -> None:
    """RTE-18: an agent that fails half of its tasks of a type loses them to the next, and one sees why."""
    agents = team(beatrice={"track_record": {"code_gen": TrackRecord(done=5, failed=5)}})
    assert chosen(NEW_CODE, agents) == "otto"
    assert "track record 0.67" in choice_of("beatrice", NEW_CODE, agents).reason
    assert chosen(Spec(type="testing"), agents) == "beatrice"


AGENTS = st.builds(
    Agent,
    name=st.sampled_from(["rem", "otto", "beatrice", "mallory"]),
    capabilities=st.dictionaries(st.sampled_from([*MATRIX, "internet"]), st.floats(0, 10)),
    capacity=st.integers(0, 3),
    enabled=st.booleans(),
    state=st.sampled_from(["idle", "working", "crashed"]),
    liveness=st.sampled_from(Liveness),
    queue_depth=st.integers(0, 5),
    average_s=st.floats(0, 1e6),
    blocked_reason=st.sampled_from(["", "it failed 3 times in a row"]),
)
TASKS = st.builds(
    Spec,
    description=st.text(max_size=40),
    type=st.sampled_from(["", *MATRIX, "juggling"]),
    priority=st.integers(-10, 10),
    estimate_s=st.floats(0, 1e6),
    needs=st.sampled_from([(), ("internet",)]),
)


@given(TASKS, st.lists(AGENTS, max_size=5, unique_by=lambda agent: agent.name), st.randoms())
def test_whatever_comes_nobody_unfit_is_chosen(task: Spec, agents: list[Agent], chance) -> None:
    """RTE-20, RTE-22: each agent has its reason, the order of asking does not matter, no unfit one wins."""
    routing = route(task, agents, NOW, MATRIX)
    shuffled = list(agents)
    chance.shuffle(shuffled)
    assert route(task, shuffled, NOW, MATRIX).choices == routing.choices
    assert {choice.agent for choice in routing.choices} == {agent.name for agent in agents}
    assert all(choice.reason for choice in routing.choices)
    winner = next((agent for agent in agents if agent.name == routing.agent), None)
    if winner is not None:
        assert (winner.enabled, winner.liveness) == (True, Liveness.LIVE)
        assert winner.state != "crashed"
        assert winner.blocked_reason == ""
    elif task.priority >= URGENT:
        assert all(choice.refused for choice in routing.choices)
