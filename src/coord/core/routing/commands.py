"""Commands about agents, and their replies: the API."""

from coord.core.commands import Command, Reply
from coord.core.sessions.schema import Liveness
from coord.core.tasks.schema import TrackRecord


class AgentInfo(Reply, frozen=True, kw_only=True):
    """An agent; `blocked_reason` says why it gets no task (`until_ms` 0: until it is enabled)."""

    name: str
    role: str = ""
    state: str = ""
    liveness: Liveness = Liveness.ENDED
    sessions: int = 0
    claims: int = 0
    enabled: bool = True
    blocked_reason: str = ""
    until_ms: int = 0
    limited_until_ms: int = 0
    recent_failures: int = 0
    capabilities: dict[str, float] = {}
    track_record: dict[str, TrackRecord] = {}


class EnableAgent(Command, frozen=True):
    """Enable or disable an agent in a project."""

    rule = "coord.core.routing.pool:enable_agent"
    reply = AgentInfo
    project: str
    agent: str
    enabled: bool
    reason: str = ""


class GetAgents(Command, frozen=True):
    """Return the agents of a project, or a single one."""

    rule = "coord.core.routing.pool:get_agents"
    reply = list[AgentInfo]
    reads_only = True
    project: str
    agent: str = ""
