"""Commands about agents, and their replies: the API."""

from coord.core.commands import Command, Reply
from coord.core.sessions.schema import Liveness
from coord.core.tasks.schema import TrackRecord


class AgentInfo(Reply, frozen=True, kw_only=True):
    """An agent as lists show it; `blocked_reason` says why it gets no task (`until_ms` 0: for good)."""

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
    """Take an agent out of a project's pool, or back into it."""

    rule = "coord.core.routing.pool:enable_agent"
    reply = AgentInfo
    project: str
    agent: str
    enabled: bool
    reason: str = ""


class GetAgents(Command, frozen=True):
    """Ask for the agents of a project; for one where it is named."""

    rule = "coord.core.routing.pool:get_agents"
    reply = list[AgentInfo]
    reads_only = True
    project: str
    agent: str = ""
