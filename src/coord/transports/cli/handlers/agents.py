"""Agents, and which agent a task suits."""

from collections.abc import Sequence
from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.core.routing.commands import AgentInfo
from coord.core.routing.router import Choice, other_idle_agents
from coord.sdk.client.client import Client
from coord.sdk.validation.tasks import new_task
from coord.transports import arguments
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of, timestamp

COLUMNS = ("name", "liveness", "state", "claims", "done", "failed", "blocked_reason", "capabilities")
CHOICES = ("agent", "score", "position", "reason")


class ListArgs(Args, frozen=True):
    """The arguments of `coord agent list`."""

    agent: str


def list_(client: Client, args: ListArgs) -> Answer:
    """List the agents of this project."""
    found = client.agents(args.agent)
    held = sum(bool(agent.blocked_reason) for agent in found)
    line = f"{count(len(found), 'agent')}, {held} blocked"
    return Answer({"agents": fields_of(found)}, line, [_row(agent) for agent in found], COLUMNS)


class DisableArgs(Args, frozen=True):
    """The arguments of `coord agent disable`."""

    agent: str
    reason: str


def disable(client: Client, args: DisableArgs) -> Answer:
    """Give an agent no tasks until it is enabled."""
    reply = client.disable_agent(args.agent, reason=args.reason)
    return Answer({"agent": _agent_fields(reply)}, f"{reply.name} is disabled and gets no tasks")


class EnableArgs(Args, frozen=True):
    """The arguments of `coord agent enable`."""

    agent: str
    reason: str


def enable(client: Client, args: EnableArgs) -> Answer:
    """Give an agent tasks again."""
    reply = client.enable_agent(args.agent, reason=args.reason)
    return Answer({"agent": _agent_fields(reply)}, f"{reply.name} is enabled")


class WorkModeArgs(Args, frozen=True):
    """The arguments of `coord pause`, `coord drain`, `coord stop` and `coord resume`."""

    reason: str


def pause(client: Client, args: WorkModeArgs) -> Answer:
    """Give no agent a task."""
    return _set_mode(client, "paused", args, "Paused: no agent gets a task until coord resume")


def drain(client: Client, args: WorkModeArgs) -> Answer:
    """Give no agent a task any more, and let coord work end."""
    return _set_mode(client, "draining", args, "Draining: agents finish what they have")


def stop(client: Client, args: WorkModeArgs) -> Answer:
    """Stop all agents at once."""
    return _set_mode(client, "stopped", args, "Stopped: agents change nothing until coord resume")


def resume(client: Client, args: WorkModeArgs) -> Answer:
    """Let all agents go on."""
    before = client.work_mode()
    reply = client.set_work_mode("on", reason=args.reason)
    if reply.before == reply.mode:
        return Answer(fields_of(reply), "Nobody held the agents up")
    why = f": {before.reason}" if before.reason else ""
    return Answer(fields_of(reply), f"All agents go on ({before.by} had {before.mode} them{why})")


def _set_mode(client: Client, mode: str, args: WorkModeArgs, line: str) -> Answer:
    return Answer(fields_of(client.set_work_mode(mode, reason=args.reason)), line)


class TrackArgs(Args, frozen=True):
    """The arguments of `coord track`."""

    track: str
    agents: int


def track(client: Client, args: TrackArgs) -> Answer:
    """Set how many agents may work on a track."""
    agents = client.set_track(args.track, args.agents)
    return Answer(
        {"track": args.track, "agents": agents},
        f"Track {args.track}: at most {count(agents, 'agent')} at once",
    )


class RouteArgs(Args, frozen=True):
    """The arguments of `coord route`."""

    task: str
    explain: bool
    description: str
    type: str
    priority: int
    for_role: str
    needs: Sequence[str]
    estimate_s: float


def route(client: Client, args: RouteArgs) -> Answer:
    """Recommend an agent for a task."""
    if args.task and (args.description or args.type):
        raise Invalid(
            "a task id cannot be combined with --description or --type", hint="pass the id or the description"
        )
    described = new_task(
        "described",
        description=args.description,
        type=args.type,
        priority=args.priority,
        role=args.for_role,
        needs=args.needs,
        estimate_s=args.estimate_s,
    )
    routing = client.route_task(args.task or described)
    state, worker = _as_it_stands(client, args.task)
    fields: dict[str, Any] = {
        "state": state or None,
        "agent": routing.agent or None,
        "because": routing.because,
        "type": routing.kind.type or None,
        "size": routing.kind.size.value,
        "kind_because": routing.kind.because,
        "expected_at": timestamp(routing.expected_ms) if routing.expected_ms else None,
        "late_s": routing.late_s,
        "other_idle_agents": other_idle_agents(routing.agent, routing.choices),
    }
    rows = [_choice_row(choice) for choice in routing.choices] if args.explain else []
    if args.explain:
        fields["matrix"] = routing.rationale
        fields["choices"] = [
            {**msgspec.structs.asdict(choice), "reason": choice.reason} for choice in routing.choices
        ]
    now = f" (now {state}{f' by {worker}' if worker else ''})" if state not in ("", "ready") else ""
    late = f"; {arguments.span(routing.late_s)} late" if routing.late_s else ""
    kind = f"{routing.kind.type or 'any type'} ({routing.kind.because})"
    return Answer(fields, f"{routing.agent or 'queue'}: {routing.because}{now}{late}; {kind}", rows, CHOICES)


def _as_it_stands(client: Client, task_id: str) -> tuple[str, str]:
    """Return the state of an existing task, and the agent that works on it."""
    if not task_id:
        return "", ""
    task = client.show_task(task_id)
    return task.state, task.agent


def _choice_row(choice: Choice) -> dict[str, Any]:
    return {
        "agent": choice.agent,
        "score": "" if choice.refused else f"{choice.score:.0f}",
        "position": choice.position,
        "reason": choice.reason,
    }


def _row(agent: AgentInfo) -> dict[str, Any]:
    records = agent.track_record.values()
    return {
        **fields_of(agent),
        "done": sum(each.done for each in records),
        "failed": sum(each.failed for each in records),
        "capabilities": ", ".join(f"{name} {value:g}" for name, value in agent.capabilities.items()),
    }


def _agent_fields(agent: AgentInfo) -> dict[str, Any]:
    return {"name": agent.name, "enabled": agent.enabled, "blocked_reason": agent.blocked_reason}
