"""Hooks that Claude Code sends by HTTP itself: `coord init --hub=http`.

No program of coord runs before the call, so nothing falls back: every doubt is a refusal. The token says
that the sender may act in this store. The kernel says which process has the other end of the connection;
it has to be Claude Code, and it acts for its own sessions as a hook program would (`answers.py`). Only the
events around a call come here; the other hooks stay programs, which register the session.
"""

import asyncio
import json
import logging
import select
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

from coord.core.commands import Command, SessionCommand
from coord.core.errors import CoordError, Impostor, Invalid, Refused, Unavailable
from coord.core.tokens.schema import Role
from coord.core.tokens.scope import within_limits
from coord.engine.engine import TIMEOUT_S, Engine
from coord.host.processes import lineage, own_ancestors
from coord.host.runtime.loopback_peer import LOOPBACK, environment_of, find_peer
from coord.host.store_location import StoreLocation, user_location
from coord.host.tool_process import ToolProcess
from coord.integrations.deadline import deadline_s
from coord.integrations.hooks.http_hooks import EVENTS, FORWARDED, GIT_DIRECTORY, PATH, header_of
from coord.integrations.hooks.messages import failure
from coord.stores.database import Database
from coord.transports.hub.hooks.answers import HookAnswers, HookEngine, HookRun, answers_of
from coord.transports.hub.hooks.exchange import HookCall, NotHere
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import Identity
from coord.transports.hub.request import Request, Response, json_response
from coord.transports.hub.routing import Router

logger = logging.getLogger("coord.hub")
TOOL = "claude"
BEFORE = "PreToolUse"
CONNECTIONS_MAX = 4096
"""How many connections are remembered with the process at their other end."""
Handler = Callable[[Hub, Request], Awaitable[Response]]


class ToolAtConnection(NamedTuple):
    """The tool that has the other end of a connection, and the environment in which it was started."""

    pid: int
    runs: ToolProcess
    environ: Mapping[str, str]


class HttpAnswer(NamedTuple):
    """The answer to a hook; a confirmation says that its messages have arrived."""

    code: int
    out: bytes
    said: bytes
    confirmation: str


class LimitedEngine(HookEngine):
    """The engine of a hub for one hook that came with a token: no command reaches beyond its limits."""

    def __init__(self, engine: Engine, run: HookRun, identity: Identity) -> None:
        super().__init__(engine, run)
        self._identity = identity

    def call(self, command: Any, *, timeout: float = TIMEOUT_S, command_id: str = "") -> Any:
        self._check(command)
        return super().call(command, timeout=timeout, command_id=command_id)

    def call_many(self, commands: Any, *, timeout: float = TIMEOUT_S) -> list[Any]:
        for command in commands:
            self._check(command)
        return super().call_many(commands, timeout=timeout)

    def _check(self, command: Command) -> None:
        assert self._identity.token is not None, "it came with a token"
        if isinstance(command, SessionCommand):
            self._identity.check_project(command.caller.project)
        within_limits(command, self._identity.token, self._identity.tenant)


class HttpRun(HookRun):
    """One hook that came by HTTP, in a thread."""

    def __init__(
        self,
        answers: HookAnswers,
        call: HookCall,
        tool: ToolAtConnection,
        identity: Identity,
        found: "asyncio.Future[HttpAnswer]",
    ) -> None:
        super().__init__(answers, call, tool.pid, found)
        self._runs = tool.runs
        self._identity = identity

    def _tool(self) -> ToolProcess:
        return self._runs

    def _opened(self, location: StoreLocation, tenant: str) -> tuple[Database[Any], StoreLocation, Engine]:
        """Return an open store, if the token is for it, or if it is the user's own beside it."""
        own = self._identity.store
        assert own is not None, "a token names its store"
        of_user = location.folder == user_location(self._call.environ).folder
        if not of_user and location.store_id != own.database.store_id:
            raise Refused(
                "this token is for another repository, and the call would change files of this one",
                hint="start the agent in that repository, or use coord init --hub=auto",
            )
        self._identity.check_tenant(tenant)
        database, location, engine = super()._opened(location, tenant)
        inner = cast("HookEngine", engine).engine
        return database, location, cast("Engine", LimitedEngine(inner, self, self._identity))

    def _refusal(self, error: CoordError) -> CoordError:
        return (
            Refused(f"the hub does not answer this hook: {error.why}")
            if isinstance(error, NotHere)
            else error
        )

    def _written(self, code: int, out: bytes, said: bytes, confirmation: str = "") -> HttpAnswer:
        return HttpAnswer(code, out, said, confirmation)


class HttpHooks:
    """Answers the hooks that come by HTTP."""

    def __init__(self, answers: HookAnswers) -> None:
        self._answers = answers
        self._tools: OrderedDict[int, ToolAtConnection] = OrderedDict()

    async def answer(self, hub: Hub, request: Request, installed_for: str) -> Response:
        """Return the answer to a hook; raise whatever is in doubt."""
        identity: Identity = request.identity
        identity.require(Role.OPERATE)
        if hub.stopping.is_set():
            raise Unavailable("the hub is stopping", hint="try again")
        if _has_left(request.peer.fd):
            raise Refused("Claude Code does not wait for this answer any more")
        answer_by = time.monotonic() + deadline_s()
        tool = self._tools.get(request.peer.connection) or await self._find(hub, request)
        environ = _environ(tool.environ, request)
        call = HookCall(
            self._answers.programs, TOOL, installed_for, 0, frozenset(), answer_by, environ, request.body
        )
        found: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
        self._answers.start(HttpRun(self._answers, call, tool, identity, found))
        try:
            answer = await asyncio.wait_for(found, answer_by - time.monotonic())
        except TimeoutError as error:
            raise Unavailable("the store did not answer in time", hint="try again") from error
        if answer.code:
            raise Refused(answer.said.decode("utf-8", "replace").strip())
        self._answers.answered += 1
        confirmation = answer.confirmation
        sent = (lambda: self._answers.confirm(confirmation)) if confirmation else None
        return Response(200, answer.out or b"{}", sent=sent)

    async def _find(self, hub: Hub, request: Request) -> ToolAtConnection:
        """Return the tool at the other end of a new connection."""
        peer = request.peer
        if peer.address != LOOPBACK or hub.behind_proxy or not peer.connection:
            raise Impostor("hooks come from this machine only", hint="use coord init --hub=auto")
        tool: ToolAtConnection = await hub.stores.run(_tool_at, peer.port, peer.own_port)
        self._tools[peer.connection] = tool
        while len(self._tools) > CONNECTIONS_MAX:
            self._tools.popitem(last=False)
        return tool


def _has_left(fd: int) -> bool:
    """Whether the other end of a connection was closed: a hub that was frozen does nothing for its hooks."""
    if fd < 0:
        return False
    end = select.poll()
    end.register(fd, select.POLLRDHUP)
    return any(event & (select.POLLRDHUP | select.POLLHUP | select.POLLERR) for _, event in end.poll(0))


def _tool_at(port: int, own_port: int) -> ToolAtConnection:
    """Return the tool that has the other end of a connection, or refuse it."""
    pid = find_peer(port, own_port, TOOL.encode())
    line, environ = (lineage(pid), environment_of(pid)) if pid else ([], {})
    if not line or not environ:
        raise Impostor(
            "this request does not come from a process of Claude Code",
            hint="only its hooks ask here; other programs use the socket of the hub",
        )
    process = line[0].process
    return ToolAtConnection(pid, ToolProcess(process, (process, *own_ancestors(line))), environ)


def _environ(environ: Mapping[str, str], request: Request) -> dict[str, str]:
    """Return the environment of the tool, with those variables that its settings may have changed since."""
    found = dict(environ)
    for name in FORWARDED:
        value = request.headers.get(header_of(name).lower())
        if value:
            found[name] = value
        elif value is not None:
            found.pop(name, None)
    return found


def add_routes(router: "Router[Handler]") -> None:
    """Add the routes of hooks that come by HTTP."""
    router.add("GET", PATH, state)
    router.add("POST", PATH, hook)


async def state(_hub: Hub, request: Request) -> Response:
    """Say that hooks with this token are answered here, for `coord doctor`."""
    identity: Identity = request.identity
    identity.require(Role.OPERATE)
    if identity.store is None:
        raise Invalid("hooks by HTTP need a token", hint="use the TCP address of the hub")
    return json_response({"store_id": identity.store.database.store_id, "tenant": identity.tenant})


async def hook(hub: Hub, request: Request) -> Response:
    """Answer a hook of Claude Code: whatever goes wrong before a call refuses the call."""
    name = _event_name(request.body)
    if request.peer.unix or name not in EVENTS:
        raise Invalid(f"{name[:80]!r} is no event that comes here", hint=f"send {', '.join(EVENTS)}")
    answers = answers_of(hub)
    if answers.http is None:
        answers.http = HttpHooks(answers)
    try:
        response: Response = await answers.http.answer(hub, request, request.query.get(GIT_DIRECTORY, ""))
    except Exception as error:
        answers.left += 1
        if name != BEFORE:
            raise
        return _denied(error)
    return response


def _event_name(body: bytes) -> str:
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            "the event cannot be read", hint="send the JSON that Claude Code gives hooks"
        ) from error
    name = payload.get("hook_event_name") if isinstance(payload, dict) else None
    return name if isinstance(name, str) else ""


def _denied(error: Exception) -> Response:
    """Return the refusal of a call that could not be checked."""
    if not isinstance(error, CoordError):
        logger.error("a hook failed", exc_info=error)
        error = Unavailable(f"the hook failed: {error!r}")
    why = failure(error.message, error.hint, closed=True)
    said = {"permissionDecision": "deny", "permissionDecisionReason": why}
    return json_response({"hookSpecificOutput": {"hookEventName": BEFORE, **said}})
