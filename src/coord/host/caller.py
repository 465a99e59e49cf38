"""Find the caller of a command: a session of an agent tool, or a person at a terminal.

A process with signs of an agent tool is never taken for a person. The process of a session is never the
command itself, which ends at once, and never a pid that only stands in the environment: a sandbox or a
terminal multiplexer passes variables on to places where the same number means another process.
"""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from coord.core.errors import Invalid
from coord.core.identity import Caller, Process
from coord.core.ids import ID_CHARS_MAX, check_id, short_repr
from coord.host.processes import INIT, PID_MAX, Relative, describe, lineage, own_ancestors
from coord.host.repository import Repository

TENANT = "local"
HOPS_DIGITS = 3
PROJECT = "default"
"""The project of a caller outside of any repository."""


class Tool(NamedTuple):
    """An agent tool and the environment variables that it sets for the commands it runs."""

    name: str
    session: str = ""
    pid: str = ""
    signs: tuple[str, ...] = ()


TOOLS = (
    Tool("claude", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")),
    Tool("codex", "CODEX_THREAD_ID", signs=("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED")),
    Tool("gemini", "GEMINI_SESSION_ID", signs=("GEMINI_CLI",)),
    Tool("copilot", "COPILOT_AGENT_SESSION_ID", signs=("COPILOT_CLI", "COPILOT_AGENT")),
    Tool("cursor", signs=("CURSOR_AGENT",)),
    Tool("opencode", signs=("OPENCODE",)),
)


GENERIC = Tool("agent", signs=("AI_AGENT",))
"""A variable that some tools set besides their own."""


class Flags(NamedTuple):
    """The caller as the command line describes it; a flag wins over its environment variable."""

    session: str = ""
    agent: str = ""
    role: str = ""
    project: str = ""
    parent: str = ""
    pid: int | None = None


NO_FLAGS = Flags()


def find_caller(
    environ: Mapping[str, str],
    flags: Flags = NO_FLAGS,
    *,
    cwd: str = "",
    repository: Repository | None = None,
    project: str = "",
) -> Caller:
    """Return the caller; an empty session stands for a tool whose registered ancestor must be found.

    `project` is the one that is remembered for the repository.
    """
    line = lineage()
    process_ancestors = own_ancestors(line)
    tools = _tools(environ)
    session = _given(flags.session, "--session", environ, "COORD_SESSION_ID")
    agent = _given(flags.agent, "--agent", environ, "COORD_AGENT")
    person = not session and not tools and not agent
    terminal = not session and not tools
    process = None
    if terminal:
        session, process = _person(environ, line)
    elif not session:
        session, process = _session_of_tool(tools, environ, process_ancestors)
    if flags.pid is not None:
        process = _process_given(flags.pid)
    return Caller(
        session=session,
        agent=agent,
        role=_given(flags.role, "--role", environ, "COORD_ROLE"),
        user=_user_name(environ),
        project=_given(flags.project, "--project", environ, "COORD_PROJECT")
        or project
        or project_name(repository),
        parent=_given(flags.parent, "--parent", environ, "COORD_PARENT_SESSION"),
        host=os.uname().nodename,
        cwd=cwd.encode("utf-8", "backslashreplace").decode(),  # a folder name may be invalid UTF-8
        repository=repository.folder if repository else "",
        tool="+".join(tool.name for tool in tools),
        process=process,
        process_ancestors=tuple(process_ancestors),
        max_agents=max_agents(environ),
        person=person,
        terminal=terminal,
    )


def max_agents(environ: Mapping[str, str]) -> int:
    """Return how many agents MAX_AGENTS allows in a project; 0 if it is not set."""
    given = environ.get("MAX_AGENTS", "")
    if not given:
        return 0
    from coord.core.settings import AGENTS_MAX  # noqa: PLC0415 - few environments set it

    number = int(given) if given.isascii() and given.isdecimal() and len(given) <= len(str(AGENTS_MAX)) else 0
    if not 1 <= number <= AGENTS_MAX:
        raise Invalid(
            f"MAX_AGENTS is {short_repr(given)}",
            hint=f"use a whole number from 1 to {AGENTS_MAX}, or unset it",
        )
    return number


def hops_in(environ: Mapping[str, str]) -> int:
    """Return how many reactions one after another led to this process: COORD_HOPS, which reactions set."""
    given = environ.get("COORD_HOPS", "")
    return int(given) if given.isascii() and given.isdecimal() and len(given) <= HOPS_DIGITS else 0


def find_tenant(environ: Mapping[str, str], flag: str = "") -> str:
    """Return the tenant whose log the caller uses."""
    return _given(flag, "--tenant", environ, "COORD_TENANT") or TENANT


def shows_agent(environ: Mapping[str, str]) -> bool:
    """Return whether the environment shows that an agent runs the command."""
    return bool(environ.get("COORD_SESSION_ID")) or bool(_tools(environ))


def made_id(text: str, otherwise: str) -> str:
    """Return a valid id that resembles a text, such as the name of a folder or a user."""
    made = re.sub(r"[^A-Za-z0-9_.@+-]+", "-", text).strip("-.@+")[:ID_CHARS_MAX]
    return made or otherwise


def _tools(environ: Mapping[str, str]) -> list[Tool]:
    """Return the agent tools that left signs in the environment."""
    found = [tool for tool in TOOLS if any(environ.get(name) for name in (tool.session, *tool.signs))]
    return found or [GENERIC] * bool(environ.get("AI_AGENT"))


def _session_of_tool(
    tools: list[Tool], environ: Mapping[str, str], process_ancestors: list[Process]
) -> tuple[str, Process | None]:
    """Return the session that the tool names, and its process if that is among our ancestors."""
    naming = [tool for tool in tools if environ.get(tool.session)]
    if len(tools) != 1 or not naming:
        return "", None  # one tool runs inside another: only the ancestors show which of them calls
    (tool,) = naming
    pid = environ.get(tool.pid, "")
    process = next((each for each in process_ancestors if str(each.pid) == pid), None)
    return _given("", "", environ, tool.session), process


def _person(environ: Mapping[str, str], line: list[Relative]) -> tuple[str, Process | None]:
    """Return the session of a person: one per terminal, so that two terminals are two owners."""
    leader = os.getsid(0)
    process = describe(leader)
    if leader == 0:  # outside of our pid namespace: use the outermost process that we see
        process = line[-1].process if len(line) > 1 else None
        leader = process.pid if process else 0
    elif leader == os.getpid():  # ssh and cron start a session for one command: use its parent
        process = line[1].process if len(line) > 1 and line[1].process.pid != INIT else None
        leader = process.pid if process else 0
    if leader <= 0:
        raise Invalid(
            "the caller of this command cannot be identified",
            hint="set COORD_SESSION_ID, or pass --session",
        )
    host = made_id(os.uname().nodename, "host")
    session = f"{_user(environ)[:40]}@{host[:60]}:{leader}-{process.start if process else 0}"
    shared = any(each.manages and each.process.pid == leader for each in line)
    return session, None if shared else process


def _process_given(pid: int) -> Process | None:
    if not 0 < pid <= PID_MAX:
        raise Invalid(f"--pid {pid} is not a pid", hint="pass the pid of the session's own process")
    if pid == INIT:  # the first process of a container: everything in it descends from it and ends with it
        return None
    process = describe(pid)
    if process is None:
        try:
            os.kill(pid, 0)
        except ProcessLookupError as error:
            raise Invalid(
                f"--pid {pid}: no such process", hint="pass the pid of the session's own process"
            ) from error
        except OSError:
            pass  # it exists, but cannot be inspected
    return process


def _given(value: str, flag: str, environ: Mapping[str, str], variable: str) -> str:
    """Return the id from a flag or else from a variable; empty if neither is set."""
    if value:
        return check_id(f"valid {flag}", value)
    found = environ.get(variable, "")
    return check_id(f"valid {variable}", found) if found else ""


def _user(environ: Mapping[str, str]) -> str:
    return made_id(environ.get("USER") or environ.get("LOGNAME") or "", f"uid{os.getuid()}")


def _user_name(environ: Mapping[str, str]) -> str:
    """Return the name of the user; without the usual variables, that of its account.

    The id of a session never depends on the account: a directory server that is away would change it.
    """
    if environ.get("USER") or environ.get("LOGNAME"):
        return _user(environ)
    import pwd  # noqa: PLC0415 - few environments lack both variables

    try:
        return made_id(pwd.getpwuid(os.getuid()).pw_name, _user(environ))
    except KeyError:
        return _user(environ)


def project_name(repository: Repository | None) -> str:
    """Return the project of a repository that nobody has named: that of its folder."""
    return made_id(repository.name, PROJECT) if repository else PROJECT
