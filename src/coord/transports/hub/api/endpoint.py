"""An endpoint: a route with the types of its request and its replies, and what runs before and after it.

Before the handler: path, query and body are decoded into types with limits; the store, the tenant and the
command id are found; with `Coord-Min-Offset` the answer waits until the log has that entry. After it: every
answer, an error too, names the newest offset that it knows (`Coord-Offset`).
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from coord.core.commands import Command
from coord.core.errors import CoordError, Invalid
from coord.core.ids import check_id, short_repr
from coord.core.limits import UNLIMITED_TENANT
from coord.core.tokens.schema import Role
from coord.engine.engine import Engine
from coord.engine.pending import results_of
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import Identity, check_command, role_for
from coord.transports.hub.problems import HttpError, problem
from coord.transports.hub.protocols.plain_json import check_values
from coord.transports.hub.request import JSON, Request, Response, encode_json
from coord.transports.hub.stores import OpenStore

OFFSET_WAIT_S = 2.0
OFFSET_AHEAD_MAX = 10_000
"""An offset so far ahead is of another log: nobody waits for it."""
OFFSET_MAX = 2**53 - 1
FIELDS_MAX = 1000
BODIES = ("POST", "PUT", "PATCH")
TOKEN_CHANGES = frozenset(("RevokeToken", "RotateToken"))


class Asking:
    """One request on its way: its input, its store, and how its handler runs commands."""

    def __init__(self, hub: Hub, request: Request, store: OpenStore, tenant: str, values: Any) -> None:
        self.hub = hub
        self.request = request
        self.store = store
        self.tenant = tenant
        self.values = values
        """The decoded query or body; None if the endpoint has neither."""
        self.command_id = request.headers.get("idempotency-key", "")
        if self.command_id:
            check_id("command id", self.command_id)

    def with_values(self, values: Any, number: str = "") -> "Asking":
        """Return the same request with other input; `number` makes its command id another one."""
        other = Asking(self.hub, self.request, self.store, self.tenant, values)
        other.command_id = f"{self.command_id}{number}" if self.command_id else ""
        return other

    @property
    def identity(self) -> Identity:
        """The sender of the request."""
        identity: Identity = self.request.identity
        return identity

    @property
    def path(self) -> dict[str, str]:
        """The variable parts of the path."""
        return self.request.parameters

    @property
    def repository(self) -> str:
        """The repository whose files and names the request means."""
        return self.identity.repository or self.store.location.repository_id

    async def engine(self) -> Engine:
        """Return the engine of the tenant."""
        return await self.hub.stores.engine(self.store, self.tenant)

    async def ask(self, command: Command, *, command_id: str | None = None) -> Any:
        """Run a command as the sender may run it; a write carries the command id of the request."""
        command = check_command(self.identity, command)
        engine = await self.engine()
        name = self.command_id if command_id is None else command_id
        name = "" if command.reads_only else name
        reply = await engine.ask(command, command_id=name, origin=self.identity.origin)
        if type(command).__name__ in TOKEN_CHANGES:
            self.hub.tokens.forget()
        if self.hub.followers is not None:
            reply = self.hub.followers.completed(self.store, self.tenant, command, reply)
        return reply

    async def ask_many(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands together; return a reply or an error for each.

        Each has the command id of the request and its number.
        """
        checked = [check_command(self.identity, command) for command in commands]
        engine = await self.engine()
        ids = [f"{self.command_id}.{number}" for number in range(len(checked))] if self.command_id else ()
        return await results_of(engine.ask_many(checked, ids, origin=self.identity.origin))


def variables_of(path: str) -> list[str]:
    """Return the names of the variable parts of a path."""
    return re.findall(r"\{(\w+)(?:\.\.\.)?\}", path)


FORM = "application/x-www-form-urlencoded"
Handle = Callable[[Asking], Awaitable[Any]]
"""Returns the value of the answer, or an `Answer` with its status, or a whole `Response`."""


class Answer(NamedTuple):
    """A value and its status."""

    status: int
    value: Any
    content_type: str = JSON


class Endpoint:
    """A route of the public API."""

    def __init__(
        self,
        method: str,
        path: str,
        name: str,
        handle: Handle,
        *,
        summary: str,
        tag: str,
        role: Role,
        body: Any = None,
        query: Any = None,
        replies: dict[int, Any],
        body_required: bool = True,
        raw: bool = False,
    ) -> None:
        """`raw`: the handler reads the body itself."""
        self.method = method
        self.path = path
        self.name = name
        self.handle = handle
        self.summary = summary
        self.tag = tag
        self.role = role
        self.body = body
        self.query = query
        self.replies = replies
        self.body_required = body_required
        self.raw = raw

    @cached_property
    def variables(self) -> list[str]:
        """The names of the variable parts of the path."""
        return variables_of(self.path)

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self.body)

    @cached_property
    def _lists(self) -> frozenset[str]:
        """The query parameters that may come several times."""
        fields = msgspec.inspect.type_info(self.query).fields  # type: ignore[attr-defined]
        return frozenset(f.name for f in fields if isinstance(_inner(f.type), msgspec.inspect.VarTupleType))

    async def __call__(self, hub: Hub, request: Request) -> Response:
        """Answer a request."""
        identity: Identity = request.identity
        identity.require(self.role)
        _check_path(request.parameters)
        values = self._read(request)
        tenant = identity.check_tenant(request.parameters.get("tenant", "")) or UNLIMITED_TENANT
        store = identity.store or await hub.stores.of_repository(request.headers.get("coord-repository", ""))
        with store.in_use():
            asking = Asking(hub, request, store, tenant, values)
            await asking.engine()
            try:
                await _wait_for_offset(hub, request, store, tenant)
                answer = await self.handle(asking)
            except CoordError as error:
                answer = problem(error, command_id=asking.command_id)
            return _response(answer, store.head(tenant).offset)

    def _read(self, request: Request) -> Any:
        if self.raw:
            check_is_json(request)
            return None
        if self.body is not None:
            if not request.body and not self.body_required:
                return self.body()
            return decode(request, self._decoder, self.body)
        if self.query is None:
            return None
        return self._read_query(request)

    def _read_query(self, request: Request) -> Any:
        try:
            pairs = parse_qsl(
                request.query_text, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
            )
        except (ValueError, UnicodeError) as error:
            raise Invalid("the query cannot be read", hint="name at most 1000 fields, in UTF-8") from error
        values: dict[str, Any] = {}
        for name, value in pairs:
            if name in self._lists:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        try:
            return msgspec.convert(values, self.query, strict=False)
        except (msgspec.MsgspecError, ValueError, OverflowError) as error:
            raise Invalid(f"the query is not valid: {error}", hint="see /openapi.json") from error


def reading(path: str, name: str, handle: Handle, reply: Any, *, tag: str, query: Any = None) -> Endpoint:
    """Return a route that shows viewers something, as the docstring of its handler says."""
    summary = str(handle.__doc__)
    return Endpoint(
        "GET", path, name, handle, summary=summary, tag=tag, role=Role.VIEW, query=query, replies={200: reply}
    )


def _inner(kind: Any) -> Any:
    """Return a type without its metadata and without None."""
    return kind.type if isinstance(kind, msgspec.inspect.Metadata) else kind


def check_is_json(request: Request) -> None:
    """Refuse a body that says it is something else; a form of a foreign web page says so.

    `curl -d` says it, too. No page can send a bearer token or reach the unix socket, so it counts there.
    """
    content = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    by_program = request.peer.unix or request.headers.get("authorization", "")[:7].lower() == "bearer "
    if content != JSON and not (content == FORM and by_program):
        raise HttpError(
            415,
            "unsupported_media_type",
            f"a body is JSON, not {content[:100]!r}",
            hint=f"send the header Content-Type: {JSON} (curl -H 'Content-Type: {JSON}')",
        )


def decode(request: Request, decoder: msgspec.json.Decoder[Any], kind: Any) -> Any:
    """Return a body in JSON as its type; 1.0 counts as the integer 1, as in JSON Schema."""
    check_is_json(request)
    check_values(request.body)  # a type may have a field for any JSON
    try:
        return decoder.decode(request.body)
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(_integers(msgspec.json.decode(request.body)), kind)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise Invalid(f"the body is not valid: {error}", hint="see /openapi.json") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(f"the body is not JSON: {short_repr(str(error))}", hint="see /openapi.json") from error


def _integers(value: Any) -> Any:
    """Return decoded JSON in which every number without a fraction is an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _integers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_integers(each) for each in value]
    return value


def _check_path(parameters: dict[str, str]) -> None:
    for name, value in parameters.items():
        if name != "path":
            check_id(f"{name} id", value)


async def _wait_for_offset(hub: Hub, request: Request, store: OpenStore, tenant: str) -> None:
    """Wait until the log has the entry that the client knows, so that it never reads an older state."""
    text = request.headers.get("coord-min-offset")
    if text is None:
        return
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or int(text) > OFFSET_MAX:
        raise Invalid(f"{short_repr(text)} is not an offset", hint="Coord-Min-Offset is a whole number")
    wanted = int(text)
    may_come = wanted <= store.head(tenant).offset + OFFSET_AHEAD_MAX
    if wanted and not (may_come and await hub.watcher(store, tenant).wait(wanted - 1, OFFSET_WAIT_S)):
        raise HttpError(
            412,
            "behind",
            f"the log ends at {store.head(tenant).offset}, before {wanted}",
            hint="the offset is of another store, or the hub lags: try again",
        )


def _response(answer: Any, offset: int) -> Response:
    headers = {"Coord-Offset": str(offset)}
    if isinstance(answer, Response):
        return answer._replace(headers={**answer.headers, **headers})
    if not isinstance(answer, Answer):
        answer = Answer(200, answer)
    return Response(answer.status, encode_json(answer.value), answer.content_type, headers)


def role_of(*kinds: type[Command]) -> Role:
    """Return the role that a route with these commands needs."""
    return max(map(role_for, kinds))
