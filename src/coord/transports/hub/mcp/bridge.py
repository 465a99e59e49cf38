"""`coord mcp`: MCP over standard input, for an agent on this machine.

Each line is a message. The bridge passes it on to the hub of this user, unread; without a hub it runs the
same tools itself. A call that the hub may have answered is not lost and not done twice: the bridge gives it a
command id, and repeats it with that. Messages are answered side by side, because a `wait` may take a minute.
"""

import binascii
import os
import sys
import threading

import msgspec

from coord.core.errors import CoordError
from coord.core.identity import Caller
from coord.host.caller import Flags, find_caller, find_tenant, made_id
from coord.host.processes import describe
from coord.host.repository import current_folder, find_repository
from coord.host.runtime.hub_socket import hub_socket
from coord.host.store_location import find_location
from coord.sdk.remote.channel import Broken, UnixChannel
from coord.stores.urls import is_hub
from coord.transports.cli.args import Args, Options
from coord.transports.cli.connect import proposed_store
from coord.transports.hub.mcp.bridge_call import COMMAND_ID, HEADER, BridgeCall

LINE_BYTES_MAX = 16 * 1024 * 1024
TIMEOUT_S = 75.0
"""The longest call is a `wait` of a minute."""
AT_ONCE = 64
OK = range(200, 300)


def bridge(options: Options, _args: Args) -> int:
    """Answer messages until standard input ends; standard output has nothing but answers."""
    from coord.transports.cli.signals import Stopped

    try:
        Bridge(options).run()
    except (Stopped, KeyboardInterrupt) as stopped:
        return 128 + getattr(stopped, "signum", 2)
    return 0


class Bridge:
    """Answers the messages of one agent."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._channel: UnixChannel | None = None
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._call: BridgeCall | None = None
        self._headers = ""
        self._find_call()

    def _find_call(self) -> None:
        """Find out for whom we speak; if that fails, each call finds out why, and says so."""
        try:
            self._call = find_call(self._options)
        except CoordError:
            return
        self._headers = f"Content-Type: application/json\r\n{HEADER}: {_header(self._call)}\r\n"

    def run(self) -> None:
        """Read messages to the end, and answer each."""
        running: list[threading.Thread] = []
        while line := sys.stdin.buffer.readline(LINE_BYTES_MAX):
            if not line.strip():
                continue
            self._slots.acquire()
            thread = threading.Thread(target=self._answer, args=(line,), daemon=True)
            thread.start()
            running = [*(each for each in running if each.is_alive()), thread]
        for thread in running:
            thread.join()

    def _answer(self, line: bytes) -> None:
        try:
            command_id = os.urandom(12).hex()
            answer = self._ask_hub(line, command_id)
            if answer is None:
                answer = self._answer_here(line, command_id)
            if answer:
                self._write(answer + b"\n")
        finally:
            self._slots.release()

    def _ask_hub(self, line: bytes, command_id: str) -> bytes | None:
        """Return the answer of the hub; None if there is no hub, or it does not serve this."""
        try:
            if self._call is None or not self._call.store_id:  # perhaps coord was not in use here before
                self._find_call()
            socket = hub_socket(os.environ) if self._call is not None and self._call.store_id else ""
            if not socket:
                return None
            if self._channel is None or self._channel.where != socket:
                self._channel = UnixChannel(socket)
            headers = f"{self._headers}{COMMAND_ID}: {command_id}\r\n"
            status, body = self._channel.post("/mcp", line, TIMEOUT_S, headers)
        except (CoordError, Broken):
            return None
        return body if status in OK or body.startswith(b'{"jsonrpc"') else None

    def _answer_here(self, line: bytes, command_id: str) -> bytes:
        from coord.transports.hub.mcp.direct import answer  # only without a hub

        return answer(line, self._options, self._call, command_id)

    def _write(self, data: bytes) -> None:
        with self._lock:
            left = memoryview(data)
            try:
                while left:
                    left = left[os.write(1, left) :]
            except OSError:  # the client is gone
                os._exit(0)


def _header(call: BridgeCall) -> str:
    """Return what the hub has to know; it finds the ancestors of this process itself."""
    caller, otherwise = (
        each if each is None else msgspec.structs.replace(each, process_ancestors=())
        for each in (call.caller, call.otherwise)
    )
    assert caller is not None, "only the other one may be missing"
    said = msgspec.structs.replace(call, caller=caller, otherwise=otherwise)
    return binascii.b2a_base64(msgspec.json.encode(said), newline=False).decode()


def find_call(options: Options) -> BridgeCall:
    """Return what the hub has to know about the agent that started this process."""
    _, environ = proposed_store(options.url)
    cwd = current_folder()
    repository = find_repository(cwd)
    location = find_location(cwd, environ)
    flags = Flags(options.session, options.agent, options.role, options.project, options.parent, options.pid)
    caller = find_caller(environ, flags, cwd=cwd, repository=repository, project=location.project)
    otherwise = None
    if caller.terminal or not caller.session:
        # An agent without a variable that names its session: its hooks may have registered one.
        caller = msgspec.structs.replace(caller, session="", process=None, person=False, terminal=False)
        otherwise = _of_parent(caller)
    root = "" if repository is None else repository.root or repository.commondir
    through_hub = location.pinned and not options.url and not is_hub(location.url)
    store_id = location.store_id if through_hub else ""
    return BridgeCall(root, cwd, find_tenant(environ, options.tenant), store_id, caller, otherwise)


def _of_parent(caller: Caller) -> Caller | None:
    """Return a caller with a session for the process that started the bridge.

    The session does not name that process as its own: commands below it may act for another session.
    """
    process = describe(os.getppid())
    if process is None or process.pid == 1:
        return None
    host = made_id(os.uname().nodename, "host")[:40]
    return msgspec.structs.replace(caller, session=f"mcp-{host}-{process.pid}-{process.start}")
