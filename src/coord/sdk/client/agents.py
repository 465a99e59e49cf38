"""List, enable and disable agents; recommend one for a task; say what they used, and why something waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from coord.core.errors import Invalid
from coord.core.ids import check_id, short_repr
from coord.sdk.client.tasks import TaskCalls
from coord.sdk.validation import arguments

if TYPE_CHECKING:
    from coord.core.messages.work_mode import WorkModeInfo
    from coord.core.plans.commands import NewTask
    from coord.core.routing.commands import AgentInfo
    from coord.core.routing.router import Routing
    from coord.core.tasks.schema import Spec
    from coord.core.usage.commands import SpentReply, UsageReply
    from coord.core.why.commands import WhyReply


class AgentCalls(TaskCalls):
    """The agent methods of a client."""

    def agents(self, name: str = "") -> list[AgentInfo]:
        """Return the agents of this project: their tasks, their record, and why one gets no task."""
        from coord.core.routing.commands import GetAgents

        return self.call(GetAgents(self.project, check_id("agent", name) if name else ""))

    def why_task(self, task: str) -> WhyReply:
        """Return why a task is not done yet, and what frees it."""
        from coord.core.why.commands import WhyTask

        return self.call(WhyTask(self.project, check_id("task", task)))

    def why_lock(self, resource: str) -> WhyReply:
        """Return who holds a resource, what these sessions wait for, and what frees it."""
        from coord.core.why.commands import WhyLock

        words = self.read_words([resource])
        client = self.store_for(words.texts)
        replies: list[WhyReply] = [
            client.call(WhyLock(client.location.repository_id, text)) for text in words.texts
        ]
        return next((each for each in replies if each.reasons), replies[0])

    def why_session(self, session: str = "") -> WhyReply:
        """Return why a session, or this one, does not go on, and what frees it."""
        from coord.core.sessions.commands import FindSession
        from coord.core.why.commands import WhySession

        name = check_id("session", session) if session else self.call(FindSession(self.caller)).session_id
        return self.call(WhySession(name))

    def enable_agent(self, name: str, *, reason: str = "") -> AgentInfo:
        """Let an agent get tasks of this project again; its failures and rate limits are forgotten."""
        return self._enable(name, reason, enabled=True)

    def disable_agent(self, name: str, *, reason: str = "") -> AgentInfo:
        """Give an agent no tasks of this project until it is enabled again."""
        return self._enable(name, reason, enabled=False)

    def work_mode(self) -> WorkModeInfo:
        """Return whether agents get work, and who says so."""
        from coord.core.messages.work_mode import GetWorkMode

        return self.call(GetWorkMode())

    def set_work_mode(self, mode: str, *, reason: str = "") -> WorkModeInfo:
        """Pause, drain or stop all agents of the store, or let them go on (`on`), as a person."""
        from coord.core.messages.work_mode import Mode, SetWorkMode

        if mode not in list(Mode):
            raise Invalid(f"{short_repr(mode)} is not a mode of work", hint=f"use {', '.join(Mode)}")
        why = arguments.one_line("reason", reason)
        return self.call(SetWorkMode(caller=self.caller, mode=Mode(mode), reason=why))

    def usage(self, by: str = "agent", *, since_ms: int = 0, all_projects: bool = False) -> UsageReply:
        """Return the tokens and the money used since the day of a time, the most expensive first."""
        from coord.core.usage.commands import GetUsage, UsageBy

        if by not in list(UsageBy):
            raise Invalid(f"usage is not added up by {short_repr(by)}", hint=f"use {', '.join(UsageBy)}")
        project = "" if all_projects else self.project
        return self.call(GetUsage(per=UsageBy(by), since_ms=since_ms, project=project))

    def spent(self, task: str) -> SpentReply:
        """Return what counts against the budgets of a task of this project, and of this session's crew."""
        from coord.core.usage.commands import GetSpent

        return self.call(
            GetSpent(project=self.project, task=check_id("task id", task), session=self.caller.session)
        )

    def route_task(self, task: str | NewTask) -> Routing:
        """Return the recommended agent for an existing task, or for a description, with the reasons."""
        from coord.core.routing.commands import AgentInfo
        from coord.core.routing.router import AgentConfig, agent_as, route, rules_from
        from coord.host.presets import agents_by_type

        spec = self._spec(task)
        configuration, file = self.configuration.tables, self.configuration.file
        rules = rules_from(configuration, file, agents_by_type(configuration))
        here = {name: AgentInfo(name=name) for name in rules.agents}
        here |= {agent.name: agent for agent in self.agents()}
        agents = [agent_as(agent, rules.agents.get(name, AgentConfig())) for name, agent in here.items()]
        now = self.log.now() if self._clock is None else self._clock()
        return route(spec, agents, now, rules.matrix)

    def _enable(self, name: str, reason: str, *, enabled: bool) -> AgentInfo:
        from coord.core.routing.commands import EnableAgent

        agent, why = check_id("agent", name), arguments.one_line("reason", reason)
        return self.call(EnableAgent(self.project, agent, enabled, why))

    def _spec(self, task: str | NewTask) -> Spec:
        """Return the description of a task: the stored one, or the given one."""
        from coord.core.plans.commands import NewTask
        from coord.core.tasks.schema import Spec

        if isinstance(task, NewTask):
            if not task.description and not task.type:
                raise Invalid("no task given", hint="pass an id or --description")
            fields = msgspec.structs.asdict(task)
        else:
            fields = msgspec.structs.asdict(self.show_task(task))
        names = set(Spec.__struct_fields__) & fields.keys()
        return msgspec.convert({name: fields[name] for name in names}, Spec)
