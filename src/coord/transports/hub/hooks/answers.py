"""Answer hooks in threads of the hub, with its open stores, as the hook program would answer them.

The kernel says which process asks. The tool above it is found by the same proofs as in the hook itself, and
the handler is the same. What differs is only who has the store open. If anything is in doubt, or fails before
the answer, the hook answers itself: so errors have the hook's own words.
"""

import asyncio
import json
import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib import import_module
from typing import Any, cast

from coord.core.errors import CoordError, Unavailable
from coord.engine.engine import TIMEOUT_S, Engine
from coord.host.runtime.environment import act_for
from coord.host.runtime.seen_files import remembering
from coord.host.store_location import StoreLocation, check_confirmed, check_store_exists
from coord.host.tool_process import OtherHook, ToolProcess
from coord.integrations.hooks.events import Answer, Kind
from coord.integrations.hooks.handler import HookHandler
from coord.integrations.hooks.identity import tool_process
from coord.stores.database import Database
from coord.transports.hub.hooks.exchange import HookCall, NotHere, write_answer
from coord.transports.hub.hub import Hub
from coord.transports.hub.stores import HubStores, OpenStore

logger = logging.getLogger("coord.hub")
THREADS = 16
"""How many hooks are answered at the same time; others wait, and answer themselves if it takes long."""
PRINT_S = 5.0
"""How long the hub waits until a hook has printed an answer that contains messages."""
DELIVERIES = (Kind.AFTER, Kind.PROMPT)
"""Events whose answer may deliver messages, which count as received afterwards."""
VIEWS = ("ns/mnt", "ns/pid", "ns/user")
ROOT = "root"


class HookEngine:
    """The engine of a hub for one hook: it does nothing after the hook has stopped to wait."""

    def __init__(self, engine: Engine, run: "HookRun") -> None:
        self.engine = engine
        self._run = run

    def call(self, command: Any, *, timeout: float = TIMEOUT_S, command_id: str = "") -> Any:
        return self.engine.call(command, timeout=self._run.time_left(timeout), command_id=command_id)

    def call_many(self, commands: Any, *, timeout: float = TIMEOUT_S) -> list[Any]:
        return self.engine.call_many(commands, timeout=self._run.time_left(timeout))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


class HookAnswers:
    """Answers the hooks of one hub."""

    def __init__(self, stores: HubStores) -> None:
        self.stores = stores
        self.loop = asyncio.get_running_loop()
        self.home = os.environ.get("HOME", "")
        self.programs = os.path.dirname(sys.executable)
        self.view = _view("self")
        self.printed: dict[str, threading.Event] = {}
        """The answers that hooks have not confirmed yet."""
        self.answered = self.left = 0
        """How many hooks got an answer, and how many had to answer themselves."""
        self.http: Any = None
        """What answers hooks that come by HTTP, made for the first one."""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="coord-hook")

    async def answer(self, call: HookCall, pid: int) -> bytes:
        """Return the body of the answer to a hook, or raise NotHere."""
        found: asyncio.Future[bytes] = self.loop.create_future()
        run = HookRun(self, call, pid, found)
        self.start(run)
        try:
            answer = await found
        except NotHere:
            self.left += 1
            raise
        self.answered += 1
        return answer

    def start(self, run: "HookRun") -> None:
        """Let a thread answer a hook."""
        self._threads.submit(run.run)

    def confirm(self, confirmation: str) -> None:
        """Note that a hook has printed its answer."""
        if waiting := self.printed.get(confirmation):
            waiting.set()


class HookRun:
    """One hook, in a thread."""

    def __init__(self, answers: HookAnswers, call: HookCall, pid: int, found: "asyncio.Future[Any]") -> None:
        self._answers = answers
        self._call = call
        self._pid = pid
        self._found = found
        self._answered = False
        self._open = ExitStack()

    def run(self) -> None:
        """Answer the hook; every failure before the answer sends it back to the hook."""
        try:
            with self._open:
                act_for(self._call.environ, lambda: remembering(self._handle))
            if not self._answered:
                raise NotHere("its handler gave no answer")
        except CoordError as error:
            self._fail(error)
        except Exception as error:
            logger.exception("a hook failed")
            self._fail(NotHere(f"{error!r}"))

    def time_left(self, timeout: float = TIMEOUT_S) -> float:
        """Return how long a command may take; raise if the hook does not wait any more."""
        if self._answered:
            return timeout
        left = self._call.answer_by - time.monotonic()
        if left <= 0:
            raise NotHere("it does not wait any more")
        return min(timeout, left)

    def _handle(self) -> None:
        call = self._call
        self.time_left()
        self._check_view()
        payload = _parse(call.payload)
        form = import_module(f"coord.integrations.hooks.tools.{call.tool}")
        event = form.parse(payload)._replace(installed_for=call.installed_for)
        if not os.path.isabs(event.cwd) or not os.path.isabs(call.installed_for or "/"):
            raise NotHere("its folder is not absolute")
        runs = self._tool()
        if runs.gone:
            raise NotHere("its tool has ended")

        def show(answer: Answer) -> None:
            output = form.output_of(event, answer)
            self._reply(
                output.code, *output.printed(), confirm=bool(answer.note) and event.kind in DELIVERIES
            )

        environ = {**call.environ, "COORD_HUB": "off"}
        HookHandler(
            event, payload, environ, show, open_by=call.answer_by, runs=runs, opener=self._opened
        ).handle()

    def _tool(self) -> ToolProcess:
        """Return the tool above the hook."""
        call = self._call
        return tool_process(call.tool, call.environ, call.parent, OtherHook(self._pid, call.makers))

    def _check_view(self) -> None:
        """Refuse a hook that sees other files or processes than the hub, or runs another coord."""
        answers, call = self._answers, self._call
        if call.environ.get("HOME", "") != answers.home:
            raise NotHere("it has another home")
        if call.programs != answers.programs:
            raise NotHere("it belongs to another installation of coord")
        if not answers.view or _view(str(self._pid)) != answers.view:
            raise NotHere("it sees other files than the hub")

    def _opened(self, location: StoreLocation, tenant: str) -> tuple[Database[Any], StoreLocation, Engine]:
        """Return an open store of the hub, which is still the one that is pinned there."""
        check_confirmed(location)
        check_store_exists(location)
        store = self._held(location)
        if (store.database.store_id, store.location.url) != (location.store_id, location.url) or (
            store.database.epoch < location.epoch
        ):
            raise NotHere("another store is pinned now")
        engine = HookEngine(store.engine(tenant), self)
        return store.database, location, cast("Engine", engine)

    def _held(self, location: StoreLocation) -> OpenStore:
        stores = self._answers.stores
        if location.folder not in stores and location.pinned:
            opening = asyncio.run_coroutine_threadsafe(stores.at(location), self._answers.loop)
            opening.result(self.time_left())
        store = self._open.enter_context(stores.held(location.folder))
        if store is None:
            raise NotHere("its store is not open")
        return store

    def _reply(self, code: int, out: bytes, said: bytes, *, confirm: bool) -> None:
        """Give the answer to the hook; wait until it has printed one that delivers messages."""
        if self._answered:
            return
        self.time_left()
        self._answered = True
        if not confirm:
            self._resolve(lambda: self._found.set_result(self._written(code, out, said)))
            return
        confirmation, waiting = secrets.token_hex(8), threading.Event()
        self._answers.printed[confirmation] = waiting
        try:
            self._resolve(lambda: self._found.set_result(self._written(code, out, said, confirmation)))
            if not waiting.wait(PRINT_S):
                raise Unavailable("the hook did not print its answer", hint="its messages are offered again")
        finally:
            del self._answers.printed[confirmation]

    def _written(self, code: int, out: bytes, said: bytes, confirmation: str = "") -> Any:
        """Return the answer as its sender reads it."""
        return write_answer(code, out, said, confirmation)

    def _fail(self, error: CoordError) -> None:
        if self._answered:
            logger.info("after the answer of a hook: %s", error.message)
            return
        self._answered = True
        refusal = self._refusal(error)
        self._resolve(lambda: self._found.set_exception(refusal))

    def _refusal(self, error: CoordError) -> CoordError:
        """Return the error as the sender of the hook gets it."""
        return error if isinstance(error, NotHere) else NotHere(error.message)

    def _resolve(self, resolve: Callable[[], None]) -> None:
        def unless_gone() -> None:
            if not self._found.done():
                resolve()

        self._answers.loop.call_soon_threadsafe(unless_gone)


def answers_of(hub: Hub) -> HookAnswers:
    """Return what answers the hooks of a hub."""
    if hub.hook_answers is None:
        hub.hook_answers = HookAnswers(hub.stores)
    found: HookAnswers = hub.hook_answers
    return found


def _parse(data: bytes) -> dict[str, Any]:
    """Return the event; the hook refuses one that cannot be read, in its own words."""
    try:
        payload = json.loads(data.decode())  # a hook reads UTF-8 only
    except (ValueError, RecursionError) as error:
        raise NotHere("its event cannot be read") from error
    if not isinstance(payload, dict):
        raise NotHere("its event is not an object")
    return payload


def _view(process: str) -> tuple[str, ...]:
    """Return what a process sees: its namespaces and its root; () if that cannot be found out."""
    try:
        root = os.stat(f"/proc/{process}/{ROOT}")
        return (*(os.readlink(f"/proc/{process}/{name}") for name in VIEWS), f"{root.st_dev}:{root.st_ino}")
    except OSError:
        return ()
