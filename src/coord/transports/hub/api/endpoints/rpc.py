"""JSON-RPC 2.0 at `/rpc`: the operations of the third founding document, single and in batches.

A refusal is an error whose code is -32000 minus the exit code of the CLI; `data` has the problem details. The
requests of a batch run one after the other, so that a later one sees what an earlier one did.
"""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Literal, NamedTuple, cast

import msgspec

from coord.core.commands import Command
from coord.core.errors import CoordError, Invalid
from coord.core.lifecycle.commands import Deregister, GetStatus, NeedsYou, Register
from coord.core.locks.commands import ReleaseLocks, StealLock
from coord.core.messages.commands import ReceiveMessages, SendMessage
from coord.core.questions.commands import AnswerQuestion, AskQuestion, ListQuestions
from coord.core.sessions.commands import Heartbeat, ListSessions, UpdateSession
from coord.core.tokens.schema import Role
from coord.followers.follower import LogSource
from coord.followers.metrics.config import prefix_of
from coord.followers.metrics.gauges import metrics
from coord.sdk.client.connection import Connection
from coord.sdk.reports.activity import EventFilter, lock_periods, newest_events, stats
from coord.transports.arguments import project_resource
from coord.transports.exit_codes import INVALID, failure
from coord.transports.hub.api import replies
from coord.transports.hub.api.endpoint import Answer, Asking, Endpoint
from coord.transports.hub.api.endpoints import sessions, waiting
from coord.transports.hub.api.endpoints.commands import QUESTION_KIND, Public, build, caller_of, request_type
from coord.transports.hub.api.fields import Id, Limit, Line, Milliseconds, OptionalId, PublicBody
from coord.transports.hub.api.resources import both_readings
from coord.transports.hub.identity import forbidden
from coord.transports.hub.problems import problem_details
from coord.transports.hub.protocols.plain_json import decode_plain
from coord.transports.hub.request import Response

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, SERVER_ERROR = (
    *(-32700, -32600, -32601, -32602),
    -32000,
)
BATCH_MAX = 100
Handle = Callable[[Asking], Awaitable[Any]]


class Operation(NamedTuple):
    """An operation: the type of its parameters, and its handler."""

    params: Any
    handle: Handle


class RpcError(Exception):
    """An error of the protocol itself."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class RpcRequest(msgspec.Struct, frozen=True):
    """A request; without `id` it is a notification, which nobody answers."""

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] | list[Any] = {}
    id: int | float | str | msgspec.UnsetType | None = msgspec.UNSET


class ProjectLockParams(PublicBody, frozen=True, kw_only=True):
    """A project, or an area of it."""

    project: Id
    area: OptionalId = ""
    session: OptionalId = ""
    agent: OptionalId = ""
    ttl_ms: Milliseconds = 0
    reason: Line = ""
    wait_ms: waiting.Wait = 0


class ProjectUnlockParams(PublicBody, frozen=True, kw_only=True):
    """A project, or an area of it."""

    project: Id
    area: OptionalId = ""
    session: OptionalId = ""
    agent: OptionalId = ""


class LogParams(PublicBody, frozen=True, kw_only=True):
    """Which part of the log: its newest events, numbers, the periods of locks, or a session."""

    what: Literal["tail", "stats", "locks", "session"] = "tail"
    session: OptionalId = ""
    limit: Limit = 100


class NoParams(PublicBody, frozen=True, kw_only=True):
    """Nothing."""


@cache
def operations() -> dict[str, Operation]:
    """Return every operation by its name."""
    found = {
        "register": _command(Register, types={"task": Line | None}),
        "heartbeat": _command(Heartbeat),
        "peers": Operation(sessions.ListSessionsBody, sessions.list_sessions),
        "lock": Operation(waiting.acquire_type(), waiting.acquire),
        "unlock": _command(ReleaseLocks),
        "steal": _command(StealLock),
        "send": _command(SendMessage, hides=("live_only",)),
        "recv": _command(ReceiveMessages),
        "update": _command(UpdateSession, types={"task": Line | None}),
        "broadcast": _command(SendMessage, hides=("to", "reply_to")),
        "dereg": _command(Deregister, hides=("to_parent", "read")),
        "log": Operation(LogParams, _log),
        "metrics": Operation(NoParams, _metrics),
        "project-lock": Operation(ProjectLockParams, _project_lock),
        "project-unlock": Operation(ProjectUnlockParams, _project_unlock),
        "status": _command(GetStatus),
        "ask": _command(AskQuestion, hides=("wait_ms", "call"), types={"kind": QUESTION_KIND}),
        "decide": _command(AnswerQuestion),
        "decisions": _command(ListQuestions),
        "needs": _command(NeedsYou, types={"project": OptionalId}),
    }
    return {**found, "deregister": found["dereg"]}


def _command(
    kind: type[Command], hides: tuple[str, ...] = (), types: dict[str, Any] | None = None
) -> Operation:
    public = Public(kind.__name__, "POST", "/rpc", hides, types or {})

    async def handle(asking: Asking) -> Any:
        return replies.answer(await asking.ask(build(kind, asking)))

    return Operation(request_type(kind, public), handle)


async def _project_lock(asking: Asking) -> Any:
    params: ProjectLockParams = asking.values
    fields = {name: getattr(params, name) for name in ("session", "agent", "ttl_ms", "reason", "wait_ms")}
    resource = project_resource(params.project, params.area)
    return await waiting.acquire(asking.with_values(waiting.acquire_type()(resources=(resource,), **fields)))


async def _project_unlock(asking: Asking) -> Any:
    params: ProjectUnlockParams = asking.values
    resource = project_resource(params.project, params.area)
    kind = operations()["unlock"].params
    values = kind(resources=(resource,), session=params.session, agent=params.agent)
    return replies.answer(await asking.ask(build(ReleaseLocks, asking.with_values(values))))


class _Reader:
    """What the reports need of a connection: the commands, the log and the names."""

    def __init__(self, asking: Asking, engine: Any) -> None:
        self.caller = caller_of(asking, {}, ListSessions)
        self.tenant = asking.tenant
        self.log = asking.store.log(asking.tenant)
        self.engine = engine
        self.call = engine.call
        self.location = asking.store.location
        self.environ = asking.hub.environ


async def _report(asking: Asking, work: Callable[[Connection], Any]) -> Any:
    """Run a report about the whole tenant in a thread."""
    token = asking.identity.token
    if token is not None and token.project:
        raise forbidden("this shows all projects of the tenant")
    asking.identity.require(Role.VIEW)
    reader = cast("Connection", _Reader(asking, await asking.engine()))
    return await asking.hub.stores.run(work, reader)


async def _log(asking: Asking) -> Any:
    params: LogParams = asking.values
    which = EventFilter(actor=params.session)
    if params.what == "stats":
        return await _report(asking, lambda reader: stats(reader, which))
    if params.what == "locks":
        return await _report(asking, lambda reader: lock_periods(reader, which, params.limit))
    if params.what == "session" and not params.session:
        raise Invalid("log session names no session", hint='add "session": the id of one')
    return await _report(asking, lambda reader: newest_events(reader, which, params.limit))


async def _metrics(asking: Asking) -> Any:
    store, environ = asking.store, asking.hub.environ
    source = LogSource(await asking.engine(), store.log(asking.tenant), store.location, environ)
    return {"text": await _report(asking, lambda reader: metrics(source, reader.caller, prefix_of(source)))}


async def answer_rpc(asking: Asking) -> Any:
    """Answer a request of JSON-RPC 2.0, or a batch of them."""
    try:
        message = decode_plain(asking.request.body)
    except Invalid as error:
        return _error(None, RpcError(INVALID_REQUEST, error.message))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _error(None, RpcError(PARSE_ERROR, "the request is not JSON"))
    if not isinstance(message, list):
        answer = await _answer(asking, message, "")
        return Response(204) if answer is None else answer
    if not message or len(message) > BATCH_MAX:
        return _error(None, RpcError(INVALID_REQUEST, f"a batch has 1 to {BATCH_MAX} requests"))
    answers = [await _answer(asking, each, f".{number}") for number, each in enumerate(message)]
    shown = [each for each in answers if each is not None]
    return shown or Response(204)


async def _answer(asking: Asking, message: Any, number: str) -> dict[str, Any] | None:
    """Return the response to one request; None for a notification."""
    try:
        request = msgspec.convert(message, RpcRequest)
    except (msgspec.ValidationError, ValueError):
        name = message.get("id") if isinstance(message, dict) else None
        known = name if isinstance(name, str | int | float) and not isinstance(name, bool) else None
        return _error(known, RpcError(INVALID_REQUEST, "this is no request of JSON-RPC 2.0"))
    try:
        result = await _run(asking, request, number)
    except RpcError as error:
        return None if request.id is msgspec.UNSET else _error(request.id, error)
    if request.id is msgspec.UNSET:
        return None
    return {"jsonrpc": "2.0", "result": result, "id": request.id}


async def _run(asking: Asking, request: RpcRequest, number: str) -> Any:
    operation = operations().get(request.method.replace("_", "-"))
    if operation is None:
        known = ", ".join(operations())
        raise RpcError(METHOD_NOT_FOUND, f"there is no method {request.method[:60]!r}", {"methods": known})
    if isinstance(request.params, list) and request.params:
        raise RpcError(INVALID_PARAMS, "name the parameters: params is an object")
    params = _with_aliases(request.params if isinstance(request.params, dict) else {})
    try:
        values = msgspec.convert(params, operation.params)
        one = asking.with_values(values, number)
        found = await operation.handle(one)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, str(error)) from error
    except CoordError as error:
        raise _coord_error(error, asking.command_id) from error
    if isinstance(found, Answer):
        if found.status >= 400:
            raise RpcError(SERVER_ERROR - 1, found.value["detail"], found.value)
        return found.value
    return found


def _with_aliases(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters in which the words of the document have their names here.

    A bare word is a file and a name at once, as on the command line.
    """
    given = dict(params)
    if "peer" in given:
        given.setdefault("to", given.pop("peer"))
    if isinstance(given.get("resource"), str) and "resources" not in given:
        given["resources"] = [given.pop("resource")]
    named = given.get("resources")
    if isinstance(named, list) and all(isinstance(each, str) for each in named):
        given["resources"] = [text for each in named for text in both_readings(each)]
    return given


def _coord_error(error: CoordError, command_id: str) -> RpcError:
    found = failure(error, command_id)
    code = INVALID_PARAMS if found.exit_code == INVALID else SERVER_ERROR - found.exit_code
    return RpcError(code, found.message, problem_details(error, command_id))


def _error(name: Any, error: RpcError) -> dict[str, Any]:
    shown = {"code": error.code, "message": error.message}
    if error.data is not None:
        shown["data"] = error.data
    return {"jsonrpc": "2.0", "error": shown, "id": name}


def endpoints() -> list[Endpoint]:
    """Return the route."""
    return [
        Endpoint(
            "POST",
            "/rpc",
            "rpc",
            answer_rpc,
            summary=str(answer_rpc.__doc__),
            tag="rpc",
            role=Role.VIEW,
            body=RpcRequest | list[RpcRequest],
            raw=True,
            replies={200: RpcAnswer | list[RpcAnswer], 204: None},
        )
    ]


class RpcErrorShown(msgspec.Struct, frozen=True):
    """An error; `data` has the problem details of a refusal."""

    code: int
    message: str
    data: Any | msgspec.UnsetType = msgspec.UNSET


class RpcAnswer(msgspec.Struct, frozen=True):
    """A result or an error."""

    jsonrpc: Literal["2.0"]
    id: int | float | str | None
    result: Any | msgspec.UnsetType = msgspec.UNSET
    error: RpcErrorShown | msgspec.UnsetType = msgspec.UNSET
