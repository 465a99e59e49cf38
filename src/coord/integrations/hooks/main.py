"""The program that coding agents run for their hooks: `python -I client.py claude|codex|gemini`.

Behind that stands the git directory of the repository that it was set up for, unless it is for all. The
event comes on standard input; the answer goes to standard output as the tool wants it, or as exit code 2 with
a reason on standard error. Tools let a call pass when their hook is too slow, so this one has a deadline of
its own: by then it has answered, whatever the store does.

Most calls only read. They are let pass before anything else is imported, be it `typing` or `json`: each of
these takes as long as the start of Python itself.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from _json import make_scanner
from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from coord.integrations.hooks.events import Answer, Event

TOOLS = ("claude", "codex", "gemini")
WATCH_FROM_S = 0.05
"""No deadline is shorter. The watcher sleeps until then, because a call that only reads has ended by then."""
END_DEADLINE_S = 2.0
"""At the end of a session the tools do not wait for long."""
OPEN_SHARE = 3 / 7
"""The part of the deadline in which a store that cannot be reached is tried again."""
GRACE_S = 1.0
"""An answer that is being written when time is up gets so long: half of one would let the call pass."""
PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
EXIT_REFUSED = 2
BEFORE = ("PreToolUse", "BeforeTool")
READ_ONLY_TOOLS = frozenset(
    (
        *(
            "Read",
            "Grep",
            "Glob",
            "LS",
            "NotebookRead",
            "WebFetch",
            "WebSearch",
            "TodoWrite",
            "Agent",
            "Task",
        ),
        *("spawn_agent", "wait_agent", "update_plan", "view_image", "multi_agent_v1wait_agent"),
        *("read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content"),
        *("google_web_search", "web_fetch", "invoke_agent", "complete_task"),
    )
)
"""Tools that change no file: before one of these there is nothing to ask."""


class JsonOptions:
    """How JSON is read: what `json.JSONDecoder` would hand to the same scanner."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}


class Hook:
    """One run of the program."""

    def __init__(self, tool: str, installed_for: str = "") -> None:
        """`installed_for`: the git directory of the repository that the hook was set up for."""
        self.tool = tool
        self.installed_for = installed_for
        self.began = time.monotonic()
        self.deadline_s = 0.0
        self.event: Event | None = None
        self.closed = {True: True, False: False}
        self._answer_lock = allocate_lock()
        self._answered = allocate_lock()
        self._answered.acquire()
        self._ended = allocate_lock()
        self._ended.acquire()
        self._code = 0

    def run(self) -> NoReturn:
        """Answer the event on standard input, and end this process."""
        start_new_thread(self._watch, ())
        try:
            self._answer()
        except Exception as error:  # noqa: BLE001 - a defect must not open the gate
            self._refuse(f"coord: the hook failed: {error!r}")
        os._exit(self._code)

    def _answer(self) -> None:
        try:
            payload = self._read()
        except (OSError, ValueError, TypeError) as error:
            self._refuse(f"coord: what {self.tool} told its hook cannot be read: {error}")
            return
        if payload.get("hook_event_name") in BEFORE and payload.get("tool_name") in READ_ONLY_TOOLS:
            return
        self._parse_event(payload)
        from coord.core.errors import CoordError
        from coord.integrations.hooks.handler import HookHandler

        assert self.event is not None, "it was just read"
        open_by = self.began + self.deadline_s * OPEN_SHARE
        gate = HookHandler(self.event, payload, os.environ, self._reply, open_by=open_by)
        try:
            gate.handle()
        except CoordError as error:
            settings = gate.settings
            self.closed = {True: settings.closed_for_writes, False: settings.closed_for_reads}
            self._fail(error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - a defect must not open the gate
            self._fail(f"the hook failed: {error!r}", "")

    def _read(self) -> dict[str, Any]:
        with open(0, "rb", closefd=False) as file:
            data = file.read(PAYLOAD_BYTES_MAX + 1)
        if len(data) > PAYLOAD_BYTES_MAX:
            raise ValueError(f"it has more than {PAYLOAD_BYTES_MAX} bytes")
        text = data.decode().strip()
        payload: Any = None
        try:
            payload, end = make_scanner(JsonOptions)(text, 0)  # type: ignore[arg-type]
            whole = end == len(text)
        except (
            StopIteration,
            SystemError,
            ValueError,
        ):  # without `json` the scanner cannot say what is wrong
            whole = False
        if not whole:
            import json

            payload = json.loads(text)
        if not isinstance(payload, dict):
            raise TypeError("it is no object")
        return payload

    def _parse_event(self, payload: dict[str, Any]) -> None:
        from importlib import import_module

        from coord.host.startup import import_msgspec

        import_msgspec()

        self._form = import_module(f"coord.integrations.hooks.tools.{self.tool}")
        self.event = self._form.parse(payload)._replace(installed_for=self.installed_for)
        self.set_deadline()

    def set_deadline(self) -> None:
        """Set the deadline of this event, as far as the event is known."""
        from coord.integrations.deadline import deadline_s

        ends = self.event is not None and self.event.kind == "end"
        self.deadline_s = min(deadline_s(), END_DEADLINE_S) if ends else deadline_s()

    def _watch(self) -> None:
        """Answer for a store that does not, before the tool gives up on its hook."""
        self._ended.acquire(timeout=WATCH_FROM_S)
        self.set_deadline()
        while (left := self.began + self.deadline_s - time.monotonic()) > 0:
            self._ended.acquire(timeout=min(left, 0.05 if self.event is None else left))
        try:
            if self.event is None:
                self._refuse(f"coord: {self.tool} told its hook nothing within {self.deadline_s:.1f} s")
            else:
                self._fail(
                    f"the store did not answer within {self.deadline_s:.1f} s", "try again in a moment"
                )
        finally:
            if not self._answered.acquire(timeout=GRACE_S):
                self._code = EXIT_REFUSED
            os._exit(self._code)

    def _fail(self, message: str, hint: str) -> None:
        """Answer where it could not be found out who holds what: closed or open, as it is set."""
        from coord.integrations.hooks.events import ALLOW, Answer, Kind
        from coord.integrations.hooks.messages import failure
        from coord.integrations.hooks.shell_parser import only_reads

        event = self.event
        assert event is not None, "who told nothing is refused"
        if event.kind is Kind.START:
            self._reply(Answer(note=failure(message, hint, closed=self.closed[True])))
            return
        reads = event.command is not None and only_reads(event.command, store=False)
        writes = event.changes_files and not reads
        if event.kind is Kind.BEFORE and self.closed[writes]:
            self._reply(Answer(deny=failure(message, hint, closed=True)))
            return
        self._reply(ALLOW)

    def _refuse(self, why: str) -> None:
        """Say no without knowing to what: in the one way that every tool understands."""
        if self._answer_lock.acquire(blocking=False):
            self._code = EXIT_REFUSED
            _write(2, f"{why}\n".encode("utf-8", "replace"))
            self._answered.release()

    def _reply(self, answer: Answer) -> None:
        """Print the answer; the first one counts."""
        if not self._answer_lock.acquire(blocking=False):
            return
        assert self.event is not None, "there is something to answer to"
        output_of = self._form.output_of(self.event, answer)
        self._code = output_of.code
        if output_of.out is not None:
            import msgspec

            _write(1, msgspec.json.encode(output_of.out))
        if output_of.said:
            _write(2, f"{output_of.said}\n".encode("utf-8", "replace"))
        self._answered.release()


def _write(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:  # nobody listens any more
        return


def main(words: list[str]) -> NoReturn:
    """Run the hook of a tool."""
    gc.disable()  # this process ends soon
    if len(words) not in (1, 2) or words[0] not in TOOLS:
        _write(2, f"coord: the hook is run as: client.py {'|'.join(TOOLS)} [GIT-DIRECTORY]\n".encode())
        os._exit(EXIT_REFUSED)
    Hook(*words).run()


if __name__ == "__main__":
    main(sys.argv[1:])
