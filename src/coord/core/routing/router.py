"""Recommend an agent for a task, with the reasons.

The matrix ranks agents for each type of task. The agents, their state and their load arrive as data; no
decision depends on chance or on a clock.

An agent's score is its speed in percent of an idle specialist: `100 · task / (wait + task / speed)`. The best
agent that is free or nearly free gets the task. If there is none, only an urgent task leaves the queue.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from coord.core.routing.commands import AgentInfo
from coord.core.routing.specialties import (
    Kind,
    Matrix,
    Row,
    Size,
    classify,
    convert_table,
    matrix_with,
    type_name,
)
from coord.core.sessions.schema import Liveness
from coord.core.sessions.state import STATE_ALIASES
from coord.core.tasks.agent_record import EFFICIENCY_MIN, UNAVAILABLE_STATES, add_records
from coord.core.tasks.schema import PRIORITY_STEP_MS, Spec, TrackRecord

TYPICAL_S = 300.0
"""The assumed duration of a task without an estimate."""
TASK_S_MIN, TASK_S_MAX = 1.0, 366 * 24 * 3600.0
LIGHT = 0.25
"""An agent is nearly free if it starts within this share of the task's duration."""
URGENT = 8
"""A task of at least this priority gets an agent even if all are busy."""
TRACK_RECORD_MIN, TRACK_RECORD_MAX = 0.5, 1.5
TRACK_RECORD_HALF = 5
"""The number of tasks after which the track record counts half."""
BUSY_STATES = {"working", "blocked"}
NOT_RECOMMENDED_STATES = UNAVAILABLE_STATES | {"completed"}
"""An agent that has completed its work may still ask for a task, but the router gives it none."""
POSITIONS = ("primary", "secondary", "tertiary")
FURTHER, ANY = "further", "any"
POSITION_WEIGHTS = {Size.SMALL: (1.0, 0.9, 0.8), Size.NORMAL: (1.0, 0.8, 0.6), Size.LARGE: (1.0, 0.7, 0.4)}
"""The factor of each position in the matrix; the last one is for all further agents."""

Efficiency = Annotated[float, Meta(ge=0, le=10)]


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of an agent; `kind` is its name in the matrix, if several agents are of one kind.

    `capacity` is the number of tasks it does at once.
    """

    kind: str = ""
    role: str = ""
    capabilities: dict[str, Efficiency] = {}
    capacity: Annotated[int, Meta(ge=0, le=1000)] = 1
    enabled: bool = True


class Agent(AgentConfig, frozen=True, kw_only=True):
    """An agent as the router sees it.

    `running` counts its tasks in progress, `queue_depth` those that wait for it; `blocked_reason` says why it
    gets none now.
    """

    name: str
    state: str = "idle"
    liveness: Liveness = Liveness.LIVE
    running: int = 0
    queue_depth: int = 0
    average_s: float = 0
    blocked_reason: str = ""
    track_record: dict[str, TrackRecord] = {}


class RoutingTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[routing]` of a configuration."""

    types: dict[str, Any] = {}
    mode: Literal["advise", "prefer", "assign"] = "prefer"


class Tables(msgspec.Struct, frozen=True):
    """The tables of a configuration that concern routing."""

    routing: RoutingTable = RoutingTable()
    agents: dict[str, Any] = {}


class RoutingConfig(NamedTuple):
    """The matrix and the agents of a repository."""

    matrix: Matrix
    agents: dict[str, AgentConfig]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's rating for a task; `refused` says why it cannot get the task."""

    agent: str
    position: str = ""
    score: float = 0
    efficiency: float = 0
    track_record: float = 1
    weight: float = 1
    wait_s: float = 0
    head_start_s: float = 0
    work_s: float = 0
    free: bool = False
    refused: str = ""

    @property
    def reason(self) -> str:
        """The rating in one line."""
        if self.refused:
            return self.refused
        factors = f"track record {self.track_record:.2f} × position {self.weight:g}"
        speed = f"efficiency {self.efficiency:g} × {factors}"
        wait = f"waits {self.wait_s:.0f} s" if self.wait_s else "no wait"
        passes = f" (its priority makes up for {self.head_start_s:.0f} s)" if self.head_start_s else ""
        return f"{self.position}: {speed}; {wait}{passes}, works {self.work_s:.0f} s"


class Routing(NamedTuple):
    """The recommended agent for a task; without one, the task stays in the queue.

    `late_s` is the time by which it misses its deadline, `rationale` the reason for the order in the matrix.
    """

    agent: str
    because: str
    expected_ms: int
    late_s: float
    kind: Kind
    choices: list[Choice]
    rationale: str


def rules_from(
    configuration: Mapping[str, Any], file: str, presets: Mapping[str, Mapping[str, Any]]
) -> RoutingConfig:
    """Return the matrix and the agents of a configuration; an error names its file and the field.

    `presets` are rows by task type that the configuration adds to and changes.
    """
    tables = convert_table(configuration, Tables, file)
    agents = {name: declared(table, f"{file}: [agents.{name}]") for name, table in tables.agents.items()}
    return RoutingConfig(matrix_with(tables.routing.types, file, matrix_with(presets)), agents)


def declared(table: Any, what: str) -> AgentConfig:
    """Return an agent from configuration; capabilities are a list, or a table with efficiencies."""
    listed = table.get("capabilities") if isinstance(table, dict) else None
    if isinstance(listed, list) and all(isinstance(each, str) for each in listed):
        table = {**table, "capabilities": dict.fromkeys(listed, 1.0)}
    return convert_table(table, AgentConfig, what)


def agent_as(shown: AgentInfo, table: AgentConfig) -> Agent:
    """Return an agent as it is now and as configuration has it; what it declares itself comes first."""
    count = sum(track_record.done for track_record in shown.track_record.values())
    took_s = sum(track_record.took_s for track_record in shown.track_record.values())
    running = min(shown.claims, table.capacity)
    return Agent(
        name=shown.name,
        kind=table.kind,
        role=shown.role or table.role,
        capabilities=table.capabilities | shown.capabilities,
        capacity=table.capacity,
        enabled=table.enabled,
        state=shown.state,
        liveness=shown.liveness,
        running=running,
        queue_depth=shown.claims - running,
        average_s=took_s / count if count else 0,
        blocked_reason=shown.blocked_reason,
        track_record=shown.track_record,
    )


def track_record_factor(track_record: TrackRecord | None) -> float:
    """Return the factor for an agent's track record: success and pace, weighted by the number of tasks."""
    count = track_record.done + track_record.failed if track_record is not None else 0
    if track_record is None or count == 0:
        return 1.0
    pace = (
        track_record.expected_s / track_record.took_s
        if track_record.took_s > 0 and track_record.expected_s > 0
        else 1.0
    )
    measured = pace * track_record.done / count
    return min(
        TRACK_RECORD_MAX, max(TRACK_RECORD_MIN, 1 + (measured - 1) * count / (count + TRACK_RECORD_HALF))
    )


def rank_agents(task: Spec, agents: Sequence[Agent], now: int, matrix: Matrix) -> list[Choice]:
    """Return the rating of each agent, best first; refused agents come last."""
    kind = classify(task, matrix)
    base_s = _base_s(task, agents)
    ranked = []
    for agent in agents:
        rank = _rank(agent, kind, matrix)
        refused = _unavailable(agent) or _incapable(agent, task, kind, matrix)
        choice = (
            Choice(agent=agent.name, position=_position(rank, kind), refused=refused)
            if refused
            else _choice(agent, task, kind, rank, base_s, now, matrix)
        )
        ranked.append((bool(refused), not choice.free, -choice.score, rank, agent.name, choice))
    return [choice for *_, choice in sorted(ranked, key=lambda entry: entry[:-1])]


def _choice(
    agent: Agent, task: Spec, kind: Kind, rank: int, base_s: float, now: int, matrix: Matrix
) -> Choice:
    weights = POSITION_WEIGHTS[kind.size]
    weight = weights[min(rank, len(weights) - 1)] if kind.type else 1.0
    efficiency = _declared(agent, matrix).get(kind.type, 1.0)
    track_record = track_record_factor(_track_record(agent, kind.type, matrix))
    work_s = base_s / (efficiency * track_record * weight)
    load = agent.queue_depth + max(agent.running, _state(agent) in BUSY_STATES)
    wait_s = max(0, load - agent.capacity + 1) * (agent.average_s or base_s) / agent.capacity
    waited_ms = max(0, now - task.created_ms) if task.created_ms else 0
    priority_s = max(0.0, (task.priority * PRIORITY_STEP_MS + waited_ms) / 1000)
    # At most the length of one task, or an agent with a long queue would win urgent tasks.
    head_start_s = min(wait_s, priority_s, base_s)
    counted_s = wait_s - head_start_s
    return Choice(
        agent=agent.name,
        position=_position(rank, kind),
        score=100 * base_s / (counted_s + work_s),
        efficiency=efficiency,
        track_record=track_record,
        weight=weight,
        wait_s=wait_s,
        head_start_s=head_start_s,
        work_s=work_s,
        free=counted_s <= LIGHT * work_s,
    )


def _base_s(task: Spec, agents: Sequence[Agent]) -> float:
    """Return the expected duration of the task for an ordinary specialist."""
    averages = [agent.average_s for agent in agents if agent.average_s > 0]
    known_s = task.estimate_s or (sum(averages) / len(averages) if averages else TYPICAL_S)
    return min(max(TASK_S_MIN, known_s), TASK_S_MAX)


def _rank(agent: Agent, kind: Kind, matrix: Matrix) -> int:
    """Return the agent's position in its row, from 0; an agent that is not listed comes last."""
    order, name = matrix.get(kind.type, Row()).agents, agent.kind or agent.name
    return order.index(name) if name in order else max(len(POSITIONS), len(order))


def _position(rank: int, kind: Kind) -> str:
    if not kind.type:
        return ANY
    return POSITIONS[rank] if rank < len(POSITIONS) else FURTHER


def _declared(agent: Agent, matrix: Matrix) -> dict[str, float]:
    return {type_name(name, matrix): value for name, value in agent.capabilities.items()}


def _track_record(agent: Agent, type_: str, matrix: Matrix) -> TrackRecord:
    """Return an agent's track record for a type, including the aliases of the type."""
    of_type = [
        track_record for name, track_record in agent.track_record.items() if type_name(name, matrix) == type_
    ]
    return functools.reduce(add_records, of_type, TrackRecord())


def _state(agent: Agent) -> str:
    return STATE_ALIASES.get(agent.state, agent.state)


def _unavailable(agent: Agent) -> str:
    """Return why an agent gets no task at all; empty if it may."""
    if not agent.enabled:
        return "disabled"
    if agent.blocked_reason:
        return agent.blocked_reason
    if agent.capacity < 1:
        return "its capacity is 0"
    if _state(agent) in NOT_RECOMMENDED_STATES:
        return f"its state is {_state(agent)}"
    if agent.liveness is Liveness.ENDED:
        return "it has no session"
    return "" if agent.liveness is Liveness.LIVE else f"its session is {agent.liveness.value}"


def _incapable(agent: Agent, task: Spec, kind: Kind, matrix: Matrix) -> str:
    """Return why an agent cannot do this task; empty if it can."""
    able = _declared(agent, matrix)
    missing = sorted(need for need in task.needs if not able.get(type_name(need, matrix)))
    if task.role and agent.role and task.role != agent.role:
        return f"the task is for a {task.role}, it is a {agent.role}"
    if missing:
        return f"it lacks {', '.join(missing)}"
    if able.get(kind.type, 1.0) < EFFICIENCY_MIN:
        return f"it declares that it cannot do {kind.type}"
    if (
        kind.type
        and kind.type not in able
        and (agent.kind or agent.name) not in matrix.get(kind.type, Row()).agents
    ):
        return f"it does not declare {kind.type}"
    return ""


def route(task: Spec, agents: Sequence[Agent], now: int, matrix: Matrix) -> Routing:
    """Return the best free agent for a task; an urgent task always gets one if any can do it."""
    kind, choices = classify(task, matrix), rank_agents(task, agents, now, matrix)
    best = choices[0] if choices and not choices[0].refused else None
    agent, because = _recommendation(task, kind, best, choices)
    expected_ms = _expected_ms(task, agents, best, now) if best is not None else 0
    late_s = max(0, expected_ms - task.deadline_ms) / 1000 if task.deadline_ms else 0
    rationale = matrix[kind.type].because if kind.type in matrix else ""
    return Routing(agent, because, expected_ms, late_s, kind, choices, rationale)


def _recommendation(
    task: Spec, kind: Kind, best: Choice | None, choices: Sequence[Choice]
) -> tuple[str, str]:
    """Return the recommended agent (empty: none yet) and the reason."""
    if best is None:
        return "", f"no agent can take {kind.type or 'it'} now; it stays in the queue"
    if best.free:
        load = "nearly free" if best.wait_s else "free"
        return (
            best.agent,
            f"{best.agent} is {_describe_position(best, kind)} and {load}{_passed_over(best, choices)}",
        )
    if task.priority >= URGENT:
        return best.agent, f"all are busy, but the task is urgent: {best.agent} is done with it first"
    nearest = f"({best.agent} comes nearest)"
    return "", f"all are busy and the task is not urgent: it stays in the queue {nearest}"


def agent_speeds(
    name: str, capabilities: Mapping[str, float], routing: Mapping[str, Any]
) -> Callable[[str], float]:
    """Return how fast an agent is with tasks of a type, in shares of a specialist.

    A type for which the matrix lists nobody is as good as any.
    """
    matrix, agents = _rules_of(routing)
    table = agents.get(name, AgentConfig())
    agent = Agent(name=name, kind=table.kind, capabilities={**table.capabilities, **capabilities})
    weights = POSITION_WEIGHTS[Size.NORMAL]

    def speed(type_: str) -> float:
        kind = Kind(type_name(type_, matrix), Size.NORMAL, "")
        listed = bool(type_) and bool(matrix.get(kind.type, Row()).agents)
        weight = weights[min(_rank(agent, kind, matrix), len(weights) - 1)] if listed else 1.0
        return weight * _declared(agent, matrix).get(kind.type, 1.0)

    return speed


def best_free_agent(
    task: Spec,
    agents: Sequence[AgentInfo],
    now: int,
    routing: Mapping[str, Any],
    own: str,
    given: Collection[str] = (),
) -> str:
    """Return the agent that should do a task: `own` unless a free agent is better; empty if none is free.

    The agents in `given` have got a task already.
    """
    rules = _rules_of(routing)
    known = [agent_as(each, rules.agents.get(each.name, AgentConfig())) for each in agents]
    choices = [
        choice
        for choice in rank_agents(task, known, now, rules.matrix)
        if choice.free and not choice.refused and choice.agent not in given
    ]
    if not choices:
        return ""
    best = choices[0].score
    return own if any(each.agent == own and each.score == best for each in choices) else choices[0].agent


def _rules_of(routing: Mapping[str, Any]) -> RoutingConfig:
    """Return the rules that a claim carries: the tables `types`, `agents` and `presets`."""
    tables = {"routing": {"types": routing.get("types", {})}, "agents": routing.get("agents", {})}
    return rules_from(tables, "coord.toml", routing.get("presets", {}))


def other_idle_agents(agent: str, choices: Sequence[Choice]) -> list[str]:
    """Return the other agents that could start at once, best first; an agent asks before a large task."""
    return [choice.agent for choice in choices if choice.free and not choice.wait_s and choice.agent != agent]


def _expected_ms(task: Spec, agents: Sequence[Agent], best: Choice, now: int) -> int:
    """Return the expected end of the task; without any known duration, its deadline."""
    if task.deadline_ms and not task.estimate_s and not any(agent.average_s for agent in agents):
        return task.deadline_ms
    return now + round((best.wait_s + best.work_s) * 1000)


def _describe_position(choice: Choice, kind: Kind) -> str:
    if choice.position in POSITIONS:
        return f"{choice.position} for {kind.type}"
    return f"able to do {kind.type}" if kind.type else "as good as any"


def _passed_over(best: Choice, choices: Sequence[Choice]) -> str:
    """Return why the agents that the matrix ranks higher are not recommended."""
    order = [*POSITIONS, FURTHER, ANY]
    before = [choice for choice in choices if order.index(choice.position) < order.index(best.position)]
    reasons = [
        f"{choice.agent}: {choice.refused or f'{choice.score:.0f} points, waits {choice.wait_s:.0f} s'}"
        for choice in before
    ]
    return f" ({'; '.join(reasons)})" if reasons else ""
