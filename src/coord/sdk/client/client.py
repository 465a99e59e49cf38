"""`coord.connect` and `Client`: a session's access to a store, for programs and the `coord` command.

Every method builds one command from its arguments and returns the reply. The methods are in `sessions.py`,
`locks.py`, `messages.py`, `questions.py`, `tasks.py`, `agents.py`, `tokens.py` and `maintenance.py`.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from coord.core.keys import digest
from coord.host.caller import Flags, find_caller, find_tenant
from coord.host.repository import Repository, current_folder, find_repository
from coord.host.store_location import find_location, user_location
from coord.sdk.client.agents import AgentCalls
from coord.sdk.client.blocks import LockBlock, SessionBlock
from coord.sdk.client.locks import LockCalls
from coord.sdk.client.maintenance import LimitCalls, MaintenanceCalls
from coord.sdk.client.messages import MessageCalls
from coord.sdk.client.open import (
    open_existing,
    open_for_use,
    open_timeout_s,
    open_url,
)
from coord.sdk.client.questions import QuestionCalls
from coord.sdk.client.sessions import SessionCalls
from coord.sdk.client.tokens import TokenCalls

if TYPE_CHECKING:
    from coord.core.lifecycle.commands import Overview


def connect(
    url: str | None = None,
    *,
    session: str = "",
    agent: str = "",
    role: str = "",
    project: str = "",
    tenant: str = "",
    parent: str = "",
    pid: int | None = None,
    cwd: str | None = None,
    environ: Mapping[str, str] | None = None,
    clock: Callable[[], int] | None = None,
    timeout: float | None = None,
    create: bool = True,
) -> "Client":
    """Open the store of the current repository, or any store by its URL, in the name of a session.

    A server that cannot be reached is tried again for `timeout` seconds (COORD_CONNECT_TIMEOUT, or 5).
    Without `create`, a store that does not exist yet shows as empty, nothing is created or pinned, and
    commands that write are refused.
    """
    environ = os.environ if environ is None else environ
    cwd = current_folder() if cwd is None else os.path.abspath(cwd)
    timeout = open_timeout_s(environ) if timeout is None else timeout
    repository = find_repository(cwd)
    flags = Flags(session, agent, role, project, parent, pid)
    log = find_tenant(environ, tenant)
    if url is None:
        location = find_location(cwd, environ)
    else:
        pinned = find_location(cwd, {}) if repository is not None else user_location(environ)
        location = pinned._replace(url=url, repository_id=pinned.repository_id or _unpinned_id(repository))
    caller = find_caller(environ, flags, cwd=cwd, repository=repository, project=location.project)
    writes = create or location.pinned
    if url is None and writes:
        direct = {**environ, "COORD_HUB": "off"} if clock is not None else environ
        database, location = open_for_use(location, timeout, direct, log)
    elif not writes:
        database, location = open_existing(location, timeout)
    else:
        database = open_url(location, timeout)
        location = location._replace(repository_id=database.repository_id or location.repository_id)
    client = Client(
        database, location, caller, tenant=log, cwd=cwd, environ=environ, clock=clock, timeout=timeout
    )
    client.reads_only = not writes
    client.project_given = bool(project or environ.get("COORD_PROJECT"))
    return client


def _unpinned_id(repository: Repository | None) -> str:
    """Return an id for a repository without a pin, derived from its path."""
    return "" if repository is None else digest(repository.commondir)


class Client(
    SessionCalls,
    LockCalls,
    MessageCalls,
    QuestionCalls,
    AgentCalls,
    LimitCalls,
    TokenCalls,
    MaintenanceCalls,
):
    """A session's access to an open store; use it in a `with` block.

    >>> with connect("memory:", session="s1", project="shop") as client:
    ...     with client.lock("name:release", ttl_s=300) as held:
    ...         held.locks[0].resource
    'name:release'
    """

    def lock(
        self,
        *resources: str,
        mode: str = "",
        ttl_s: float | None = None,
        wait_s: float | None = None,
        reason: str = "",
        **options: Any,
    ) -> LockBlock:
        """Return a block (`with`, `async with`) that holds and renews locks; it raises if one is lost."""
        return LockBlock(self, resources, mode=mode, ttl_s=ttl_s, wait_s=wait_s, reason=reason, **options)

    def session(self, **described: Any) -> SessionBlock:
        """Return a block (`with`, `async with`) that registers this session and ends it."""
        return SessionBlock(self, described)

    def status(self) -> dict[str, Any]:
        """Return this session with its claims, locks, messages, sub-agents, and tasks that need a person.

        Without a session here, `session` is None, and an overview of the project is in its place.
        """
        from coord.core.lifecycle.commands import GetStatus, StatusReply

        command = GetStatus(caller=self.caller, tenant=self.tenant, stubs=self.in_user_store)
        found: StatusReply = self.call(command)
        stuck, needs = [task.task_id for task in self.stuck_tasks()], self.needs_you(self.project)
        if found.session is None:
            return {"session": None, "overview": self.overview(), "stuck": stuck, "needs": needs}
        return {
            "now_ms": found.now_ms,
            "session": found.session,
            "claims": found.claims,
            "locks": found.locks,
            "messages": found.unread,
            "emergencies": found.emergencies,
            "agents": found.agents,
            "stuck": stuck,
            "needs": needs,
        }

    def overview(self) -> "Overview":
        """Return what all sessions here do, the number of locks, and the queue of this project."""
        from coord.core.lifecycle.commands import GetOverview

        found: Overview = self.call(GetOverview(project=self.project, stubs=self.in_user_store))
        return found
