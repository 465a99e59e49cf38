"""The caller of a hook: the session that the tool names, living in the process of the tool."""

import os
from collections.abc import Mapping

from coord.core.identity import Caller
from coord.core.ids import check_id
from coord.host.caller import find_tenant, made_id, max_agents, project_name
from coord.host.repository import Repository
from coord.host.tool_process import OtherHook, ToolProcess, find_tool
from coord.integrations.hooks.events import Event


def caller_of(
    event: Event,
    environ: Mapping[str, str],
    repository: Repository | None,
    project: str = "",
    runs: ToolProcess | None = None,
) -> Caller:
    """Return the caller: the session, or a sub-agent as a child session.

    `project` is the one that is remembered for the repository; the tool `runs` this hook.
    """
    runs = runs or tool_process(event.tool, environ)
    given = environ.get("COORD_SESSION_ID", "")
    session = check_id("session id", given or event.session)
    agent = environ.get("COORD_AGENT", "") or event.tool
    user = made_id(environ.get("USER") or environ.get("LOGNAME") or "", f"uid{os.getuid()}")
    return Caller(
        session=owner_of(session, event),
        agent=made_id(event.agent_type, event.tool) if event.agent else check_id("valid COORD_AGENT", agent),
        role="" if event.agent else environ.get("COORD_ROLE", ""),
        user=user,
        project=environ.get("COORD_PROJECT", "") or project or project_name(repository),
        parent=session if event.agent else environ.get("COORD_PARENT_SESSION", ""),
        host=os.uname().nodename,
        cwd=event.cwd.encode("utf-8", "backslashreplace").decode(),
        repository=repository.folder if repository else "",
        tool=event.tool,
        process=runs.process,
        process_ancestors=runs.ancestors,
        max_agents=max_agents(environ),
    )


def owner_of(session: str, event: Event) -> str:
    """Return the id of the acting session."""
    return check_id("session id", f"{session}.{event.agent}") if event.agent else session


def tenant_of(environ: Mapping[str, str]) -> str:
    """Return the tenant whose log the hook uses."""
    return find_tenant(environ)


def tool_process(
    tool: str, environ: Mapping[str, str], parent: int = 0, hook: OtherHook | None = None
) -> ToolProcess:
    """Return the tool that runs this hook; Claude Code names its pid, also to the tools that run below it."""
    return find_tool(tool, environ.get("CLAUDE_PID", "") if tool == "claude" else "", parent, hook)
