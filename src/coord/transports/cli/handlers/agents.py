"""Commands about agents, and whom a task is for."""

from types import SimpleNamespace
from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.core.replies import AgentInfo
from coord.core.routing.router import Choice, idle_others
from coord.sdk.client.client import Client
from coord.sdk.validation.tasks import new_task
from coord.transports.cli.output import Answer, fields_of, moment

COLUMNS = ("name", "liveness", "state", "claims", "done", "failed", "blocked_reason", "capabilities")
CHOICES = ("agent", "score", "place", "reason")


def list_(client: Client, given: SimpleNamespace) -> Answer:
    """List the agents of this project."""
    found = client.agents(given.agent)
    held = sum(bool(agent.blocked_reason) for agent in found)
    line = f"{len(found)} {'agent' if len(found) == 1 else 'agents'}, {held} of them held back"
    return Answer({"agents": fields_of(found)}, line, [_row(agent) for agent in found], COLUMNS)


def disable(client: Client, given: SimpleNamespace) -> Answer:
    """Take an agent out of the pool."""
    reply = client.disable_agent(given.agent, reason=given.reason)
    return Answer({"agent": _standing(reply)}, f"{reply.name} gets no task until it is enabled")


def enable(client: Client, given: SimpleNamespace) -> Answer:
    """Take an agent back into the pool."""
    reply = client.enable_agent(given.agent, reason=given.reason)
    return Answer({"agent": _standing(reply)}, f"{reply.name} gets tasks again")


def track(client: Client, given: SimpleNamespace) -> Answer:
    """Say how many agents may work on a track."""
    agents = client.set_track(given.track, given.agents)
    return Answer({"track": given.track, "agents": agents}, f"{agents} at once may work on {given.track}")


def route(client: Client, given: SimpleNamespace) -> Answer:
    """Say whom a task is for."""
    if given.task and (given.description or given.type):
        raise Invalid("a task that is there is described already", hint="leave --description and --type away")
    described = new_task(
        "described",
        description=given.description,
        type=given.type,
        priority=given.priority,
        role=given.for_role,
        needs=given.needs,
        estimate_s=given.estimate,
    )
    routing = client.route_task(given.task or described)
    state, worker = _as_it_stands(client, given.task)
    fields: dict[str, Any] = {
        "state": state or None,
        "agent": routing.agent or None,
        "because": routing.because,
        "type": routing.kind.type or None,
        "size": routing.kind.size.value,
        "kind_because": routing.kind.because,
        "expected_at": moment(routing.expected_ms) if routing.expected_ms else None,
        "late_s": routing.late_s,
        "idle_others": idle_others(routing.agent, routing.choices),
    }
    rows = [_choice_row(choice) for choice in routing.choices] if given.explain else []
    if given.explain:
        fields["matrix"] = routing.rationale
        fields["choices"] = [
            {**msgspec.structs.asdict(choice), "reason": choice.reason} for choice in routing.choices
        ]
    now = f" (it is {state}{f' with {worker}' if worker else ''})" if state not in ("", "ready") else ""
    late = f"; {routing.late_s:.0f} s after its deadline" if routing.late_s else ""
    kind = f"{routing.kind.type or 'any type'} ({routing.kind.because})"
    return Answer(fields, f"{routing.agent or 'queue'}: {routing.because}{now}{late}; {kind}", rows, CHOICES)


def _as_it_stands(client: Client, task_id: str) -> tuple[str, str]:
    """Return the state of a task that is there, and who works on it."""
    if not task_id:
        return "", ""
    task = client.show_task(task_id)
    return task.state, task.agent


def _choice_row(choice: Choice) -> dict[str, Any]:
    return {
        "agent": choice.agent,
        "score": "" if choice.refused else f"{choice.score:.0f}",
        "place": choice.place,
        "reason": choice.reason,
    }


def _row(agent: AgentInfo) -> dict[str, Any]:
    past = agent.past.values()
    return {
        **fields_of(agent),
        "done": sum(each.done for each in past),
        "failed": sum(each.failed for each in past),
        "capabilities": ", ".join(f"{name} {value:g}" for name, value in agent.capabilities.items()),
    }


def _standing(agent: AgentInfo) -> dict[str, Any]:
    return {"name": agent.name, "enabled": agent.enabled, "blocked_reason": agent.blocked_reason}
