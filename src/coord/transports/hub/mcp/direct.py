"""Run tools in this process, with the store itself: what `coord mcp` does without a hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import msgspec

from coord.core.errors import CoordError
from coord.core.ids import check_id
from coord.engine.engine import Engine
from coord.sdk.client.client import Client
from coord.transports.cli.args import Options
from coord.transports.cli.connect import connected
from coord.transports.hub.mcp.bridge import find_call
from coord.transports.hub.mcp.bridge_call import BridgeCall, speaker
from coord.transports.hub.mcp.protocol import RpcError, error_reply, parse, reply_to
from coord.transports.hub.mcp.resources import read_resource
from coord.transports.hub.mcp.tools import Call, StatusCall, ToolEngine, WaitCall, failed, read_call, run_tool


def answer(line: bytes, options: Options, call: BridgeCall | None, command_id: str) -> bytes:
    """Return the answer to a message; empty for one that gets none."""
    try:
        message = parse(line)
        if message is None or not message.expects_reply:
            return b""
        return reply_to(message, DirectServer(options, call, command_id))
    except RpcError as error:
        return error_reply(error)


class DirectServer:
    """Runs the tools of one message."""

    def __init__(self, options: Options, call: BridgeCall | None, command_id: str) -> None:
        """`call` is None if it could not be found out for whom the bridge speaks."""
        self._options = options
        self._call = call
        self._command_id = command_id

    def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool."""
        try:
            call = read_call(name, arguments)
            with self._client(call) as client:
                return run_tool(client, call)
        except CoordError as error:
            return failed(error)
        except Exception as error:  # noqa: BLE001 - a defect is an answer, too
            return failed(error)

    def read_resource(self, uri: str) -> list[dict[str, Any]]:
        """Read a resource."""
        with self._client(StatusCall()) as client:
            return read_resource(client, uri)

    @contextmanager
    def _client(self, call: Call) -> Iterator[Client]:
        """Open the store for one call, as each command of the CLI does."""
        said = self._call or find_call(self._options)
        session = check_id("session id", call.session) if call.session else ""
        options = msgspec.structs.replace(self._options, session=session or self._options.session)
        reads = isinstance(call, StatusCall | WaitCall)
        with connected(options, create=not reads) as client:
            own = client.engine
            if not options.session:
                caller = speaker(own, said.caller, said.otherwise)
                client.caller = msgspec.structs.replace(caller, tenant=client.caller.tenant)
            command_id = getattr(call, "command_id", "") or self._command_id
            client.engine = cast("Engine", ToolEngine(own, lambda command: command, command_id))
            try:
                yield client
            finally:
                client.engine = own
