"""The caller of a hook: the session that the tool names, living in the process of the tool."""

import os
from collections.abc import Mapping

from coord.core.identity import Caller, Process
from coord.core.ids import check_id
from coord.host.caller import find_tenant, made_id, max_agents, project_name
from coord.host.processes import ancestors
from coord.host.repository import Repository
from coord.integrations.hooks.events import Event

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox", "env", "timeout"))
"""Programs that may run between a tool and its hook."""


def caller_of(
    event: Event, environ: Mapping[str, str], repository: Repository | None, project: str = ""
) -> Caller:
    """Return the caller: the session, or a sub-agent as a child session.

    `project` is the one that is remembered for the repository.
    """
    given = environ.get("COORD_SESSION_ID", "")
    session = check_id("session id", given or event.session)
    process_ancestors = ancestors()
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
        process=tool_process(environ, process_ancestors),
        process_ancestors=tuple(process_ancestors),
        max_agents=max_agents(environ),
    )


def owner_of(session: str, event: Event) -> str:
    """Return the id of the acting session."""
    return check_id("session id", f"{session}.{event.agent}") if event.agent else session


def tenant_of(environ: Mapping[str, str]) -> str:
    """Return the tenant whose log the hook uses."""
    return find_tenant(environ)


def tool_process(environ: Mapping[str, str], process_ancestors: list[Process]) -> Process | None:
    """Return the process of the tool: the one it names, or the nearest ancestor that is not a shell."""
    named = environ.get("CLAUDE_PID", "")
    for process in process_ancestors:
        if str(process.pid) == named:
            return process
    return next((process for process in process_ancestors if _name(process.pid) not in SHELLS), None)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""
