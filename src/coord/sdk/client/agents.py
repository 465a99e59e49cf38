"""What a program does about agents: list them, take one out of the pool, ask whom a task is for."""

from typing import TYPE_CHECKING

import msgspec

from coord.core.errors import Invalid
from coord.core.ids import check_id
from coord.core.plans.commands import NewTask
from coord.core.routing.commands import AgentInfo, EnableAgent, GetAgents
from coord.core.tasks.spec import Spec
from coord.host.config import configuration_file, read_configuration
from coord.host.presets import agents_by_type
from coord.sdk.client.tasks import TaskCalls
from coord.sdk.validation import arguments as given

if TYPE_CHECKING:
    from coord.core.routing.router import Routing


class AgentCalls(TaskCalls):
    """Agents, enable, disable, route."""

    def agents(self, name: str = "") -> list[AgentInfo]:
        """Return the agents of this project: what they have in hand, how they did, why one gets nothing."""
        return self.call(GetAgents(self.project, check_id("agent", name) if name else ""))

    def enable_agent(self, name: str, *, reason: str = "") -> AgentInfo:
        """Take an agent back into the pool of this project; its failures and limits are forgotten."""
        return self._enable(name, reason, enabled=True)

    def disable_agent(self, name: str, *, reason: str = "") -> AgentInfo:
        """Take an agent out of the pool of this project: it gets nothing until it is enabled."""
        return self._enable(name, reason, enabled=False)

    def route_task(self, task: str | NewTask) -> "Routing":
        """Return whom a task is for (one that is there, or one that is described), and why."""
        from coord.core.routing.router import Declared, agent_as, route, rules_from  # noqa: PLC0415 - only here

        spec = self._spec(task)
        file = configuration_file(self.location.repository)
        configuration = read_configuration(file)
        rules = rules_from(configuration, file, agents_by_type(configuration))
        here = {name: AgentInfo(name=name) for name in rules.agents}
        here |= {agent.name: agent for agent in self.agents()}
        agents = [agent_as(agent, rules.agents.get(name, Declared())) for name, agent in here.items()]
        now = self.log.now() if self._clock is None else self._clock()
        return route(spec, agents, now, rules.matrix)

    def _enable(self, name: str, reason: str, *, enabled: bool) -> AgentInfo:
        agent, why = check_id("agent", name), given.line("reason", reason)
        return self.call(EnableAgent(self.project, agent, enabled, why))

    def _spec(self, task: str | NewTask) -> Spec:
        """Return what a task is: as it was added, or as it is described."""
        if isinstance(task, NewTask):
            if not task.description and not task.type:
                raise Invalid("nothing is said of the task", hint="name it, or describe it: --description")
            fields = msgspec.structs.asdict(task)
        else:
            fields = msgspec.structs.asdict(self.show_task(task))
        names = set(Spec.__struct_fields__) & fields.keys()
        return msgspec.convert({name: fields[name] for name in names}, Spec)
