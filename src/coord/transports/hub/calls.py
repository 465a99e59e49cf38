"""The inner protocol: commands as data, for the CLI, the SDK and hooks (`sdk/remote/wire.py`)."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, TypeVar

import msgspec

from coord.core.commands import Command, SessionCommand
from coord.core.errors import CoordError, Invalid, Unavailable, Unreachable
from coord.core.identity import Process
from coord.core.ids import check_id
from coord.core.tokens.schema import Role
from coord.engine.pending import results_of
from coord.host.processes import lineage, own_ancestors, this_machine
from coord.sdk.remote import wire
from coord.sdk.remote.wire import VERSION
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import Identity, check_command
from coord.transports.hub.request import MSGPACK, Request, Response
from coord.transports.hub.stores import OpenStore
from coord.transports.hub.streams.entries import Filter, visible_part

Body = TypeVar("Body")
WAIT_S_MAX = 60.0
COMMANDS_MAX = 10_000
TAIL_MAX = 10_000
TIMEOUT_S_MAX = 60.0
TOKEN_CHANGES = frozenset(("RevokeToken", "RotateToken"))


def _body(request: Request, kind: type[Body]) -> Body:
    try:
        return msgspec.msgpack.decode(request.body, type=kind)
    except (ValueError, RecursionError) as error:  # also text that is not UTF-8
        raise Invalid(f"the request cannot be read: {error}", hint="use the same version of coord") from error


def _answer(value: Any) -> Response:
    return Response(200, wire.encode(value), MSGPACK)


@asynccontextmanager
async def _store(hub: Hub, request: Request, target: wire.Target) -> AsyncIterator[tuple[OpenStore, str]]:
    """Yield the store and the tenant of a request, and keep it open: over TCP the token decides."""
    identity: Identity = request.identity
    if request.peer.unix:
        check_id("tenant id", target.tenant)
        store, tenant = await hub.stores.of_root(target.root), target.tenant
    else:
        assert identity.store is not None, "a token names its store"
        store, tenant = identity.store, identity.check_tenant(target.tenant)
    with store.in_use():
        if target.store not in ("", store.database.store_id):
            raise Unreachable("the hub has another store here now", hint="open it again")
        if target.version not in ("", VERSION):
            raise Unreachable(f"the hub has version {VERSION}, this client {target.version}")
        try:
            yield store, tenant
        except Unavailable as error:
            if not store.database.closed and not hub.stopping.is_set():
                raise
            raise Unreachable("the hub is stopping", hint="try again") from error


async def hello(hub: Hub, request: Request) -> Response:
    """Say which store a target means here."""
    body = _body(request, wire.Hello)
    async with _store(hub, request, body.target) as (store, tenant):
        await hub.stores.engine(store, tenant)
        return _answer(
            wire.Welcome(
                wire.PROTOCOL,
                VERSION,
                tenant,
                store.database.store_id,
                store.database.epoch,
                store.location.repository_id,
                store.log(tenant).limits,
                store.head(tenant),
            )
        )


async def call(hub: Hub, request: Request) -> Response:
    """Run commands together; one answer each."""
    body = _body(request, wire.Call)
    if len(body.commands) > COMMANDS_MAX:
        raise Invalid(f"{len(body.commands)} commands in one call", hint=f"at most {COMMANDS_MAX}")
    if body.ids and len(body.ids) != len(body.commands):
        raise Invalid("there are not as many ids as commands", hint="give one each, or none")
    for each in body.ids:
        if each:
            check_id("command id", each)
    commands = wire.decode_commands(body.commands)
    if request.peer.unix:
        ancestors = cache(lambda: tuple(own_ancestors(lineage(request.peer.pid))))
        commands = [_as_caller(command, ancestors) for command in commands]
    commands = [check_command(request.identity, command) for command in commands]
    async with _store(hub, request, body.target) as (store, tenant):
        engine = await hub.stores.engine(store, tenant)
        timeout = max(0.1, min(TIMEOUT_S_MAX, body.timeout_s))  # in this order for NaN
        origin = request.identity.origin_after(body.hops)
        futures = engine.ask_many(commands, body.ids, timeout=timeout, origin=origin)
        results = await results_of(futures)
        if hub.followers is not None:
            known = hub.followers.completed
            results = [known(store, tenant, *each) for each in zip(commands, results, strict=True)]
        if any(type(command).__name__ in TOKEN_CHANGES for command in commands):
            hub.tokens.forget()
        if hub.stopping.is_set() or store.database.closed:  # what came too late can be sent again elsewhere
            for result in results:
                if isinstance(result, Unavailable):
                    raise result
        return _answer(wire.Answers(store.head(tenant), [_result(each) for each in results]))


def _result(result: Any) -> wire.Answer:
    if isinstance(result, CoordError):
        return wire.Answer(error=wire.error_data(result))
    return wire.Answer(wire.raw(result))


def _as_caller(command: Command, ancestors: Callable[[], tuple[Process, ...]]) -> Command:
    """Return a command whose caller has the ancestors that the kernel knows, and came with no token."""
    if not isinstance(command, SessionCommand):
        return command
    caller = msgspec.structs.replace(command.caller, token="")
    command = msgspec.structs.replace(command, caller=caller)
    here = this_machine()
    known = caller.process_ancestors[:1]
    if known and (known[0].machine, known[0].boot, known[0].namespace) != here:
        return command
    return msgspec.structs.replace(
        command, caller=msgspec.structs.replace(caller, process_ancestors=ancestors())
    )


async def wait(hub: Hub, request: Request) -> Response:
    """Answer when the log has grown beyond an offset, or the timeout is over."""
    body = _body(request, wire.Wait)
    async with _store(hub, request, body.target) as (store, tenant):
        await hub.stores.engine(store, tenant)
        if body.timeout_s > 0:
            await hub.watcher(store, tenant).wait(body.after, min(body.timeout_s, WAIT_S_MAX))
        else:  # somebody else may have committed since the hub looked
            await hub.stores.run(store.log(tenant).load, ["head"])
        return _answer(store.head(tenant))


async def tail(hub: Hub, request: Request) -> Response:
    """Return entries of the log; a token of one project sees of them what streams show it."""
    body = _body(request, wire.Tail)
    async with _store(hub, request, body.target) as (store, tenant):
        entries = await hub.stores.run(store.log(tenant).tail, body.after, min(body.limit, TAIL_MAX))
        token = request.identity.token
        if token is not None and token.project:
            entries = [visible_part(entry, Filter(project=token.project)) for entry in entries]
        return _answer(wire.Entries(store.head(tenant), entries))


async def trim(hub: Hub, request: Request) -> Response:
    """Trim a log as its settings say."""
    request.identity.require(Role.OPERATE)
    body = _body(request, wire.Trim)
    async with _store(hub, request, body.target) as (store, tenant):
        engine = await hub.stores.engine(store, tenant)
        return _answer(await hub.stores.run(engine.trim))
