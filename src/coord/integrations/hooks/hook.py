"""One run of the hook program: read the event, answer in time, and end.

The event comes on standard input. The answer goes to standard output in the form of the tool, or as exit
code 2 with a reason on standard error. Tools allow a call if its hook is too slow, so this program has a
deadline: it answers in time, even if the store does not.

Most calls only read. They are allowed before anything else is imported, even `typing` and `json`, because
each of these takes as long as the start of Python itself. Other calls go to the hub of this user if one runs
(`hub_client.py`). This program answers them itself if there is none, or it does not answer in time.

Until then it uses `posix`, which Python has loaded, and not `os`, and it loads modules without their packages
(`main.py` says why). It does not parse the event of an edit either: `_json` takes as long as the question.
"""

import posix
import time
from _thread import allocate_lock, start_new_thread
from posix import _exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from coord.integrations.hooks.events import Answer, Event

PARENT = posix.getppid()
"""The process that started this program; another parent later shows that it has ended."""
TOOLS = ("claude", "codex", "gemini")
WATCH_FROM_S = 0.05
"""No deadline is shorter. The watcher sleeps until then, because a call that only reads has ended by then."""
END_DEADLINE_S = 2.0
"""The tools wait only a short time at the end of a session."""
OPEN_SHARE = 3 / 7
"""The part of the deadline in which a store that cannot be reached is tried again."""
ALIVE_SHARE = 1 / 14
"""The part of the deadline in which a hub has to show that it is not frozen: half a second."""
GRACE_S = 1.0
"""Extra time for an answer that is being written at the deadline: half an answer would allow the call."""
SESSION_END, PERMISSION = "SessionEnd", "PermissionRequest"
PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
READ_BYTES = 64 * 1024
EVENT_NAME, TOOL_NAME = b'"hook_event_name"', b'"tool_name"'
NAME_BYTES_MAX = 100
PROGRESS_FILE = b"COORD_PROGRESS_FILE"
EXIT_REFUSED = 2
BEFORE = ("PreToolUse", "BeforeTool")
READERS = {
    "claude": (
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
        *("AskUserQuestion", "BashOutput", "TaskOutput", "KillShell", "KillBash", "TaskStop", "TaskCreate"),
        *("TaskGet", "TaskList", "TaskUpdate", "EnterPlanMode", "ExitPlanMode", "ToolSearch", "LSP"),
        *("ListMcpResourcesTool", "ReadMcpResourceTool", "ListAgents", "SendMessage", "SendUserMessage"),
        *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "PushNotification", "StructuredOutput"),
    ),
    "codex": (
        *("spawn_agent", "wait_agent", "close_agent", "resume_agent", "send_input", "send_message"),
        *("list_agents", "followup_task", "multi_agent_v1wait_agent", "update_plan", "view_image"),
        *("web_search", "tool_search", "request_user_input", "get_context_remaining", "list_mcp_resources"),
        *("list_mcp_resource_templates", "read_mcp_resource"),
    ),
    "gemini": (
        *("read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content"),
        *("google_web_search", "web_fetch", "invoke_agent", "complete_task", "ask_user", "write_todos"),
        *("enter_plan_mode", "exit_plan_mode", "get_internal_docs", "activate_skill", "update_topic"),
        *("list_mcp_resources", "read_mcp_resource"),
    ),
}
"""The tools of each agent that change no file of a worktree; sub-agents have their own calls."""
READ_ONLY_TOOLS = frozenset(name for names in READERS.values() for name in names)
"""Calls of these are allowed at once. Every other tool is checked by its effects."""


class JsonOptions:
    """The options that `json.JSONDecoder` would pass to the same scanner."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}


class Hook:
    """One run of this program."""

    def __init__(
        self,
        tool: str,
        installed_for: str = "",
        load: "Callable[[str], object]" = bool,
        find_packages: "Callable[[], object]" = bool,
    ) -> None:
        """`installed_for`: the git directory of the repository that the hook was set up for.

        `load` loads a module without its packages; `find_packages` has to be called before other imports.
        """
        self.tool = tool
        self.installed_for = installed_for
        self._load = load
        self._find_packages = find_packages
        self.began = time.monotonic()
        self.deadline_s = self._waits_s = 0.0
        self.event: Event | None = None
        self._data = b""
        self.closed = {True: True, False: False}
        self._answer_lock = allocate_lock()
        self._answered = allocate_lock()
        self._answered.acquire()
        self._ended = allocate_lock()
        self._ended.acquire()
        self._code = 0

    def run(self) -> "NoReturn":
        """Answer the event on standard input, and end this process."""
        start_new_thread(self._watch, ())
        try:
            self._answer()
        except Exception as error:  # noqa: BLE001 - a defect must not allow a write
            self._refuse(f"coord: the hook failed: {error!r}")
        _exit(self._code)

    def _answer(self) -> None:
        if PROGRESS_FILE in posix.environ:
            self._report_progress()  # few agents are started by `coord work`
        payload: dict[str, Any] | None = None
        try:
            self._read()
            if self._first_text(TOOL_NAME) in READ_ONLY_TOOLS:
                payload = self._parse()
        except (OSError, ValueError, TypeError) as error:
            self._refuse_input(error)
            return
        if (
            payload
            and payload.get("hook_event_name") in BEFORE
            and payload.get("tool_name") in READ_ONLY_TOOLS
        ):
            return
        if self._ask_hub():
            return
        try:
            payload = payload or self._parse()
        except (ValueError, TypeError) as error:
            self._refuse_input(error)
            return
        self._answer_itself(payload)

    def _refuse_input(self, error: Exception) -> None:
        self._refuse(f"coord: the input that {self.tool} gave its hook cannot be read: {error}")

    def _answer_itself(self, payload: "dict[str, Any]") -> None:
        """Answer without a hub, from the store."""
        import gc

        gc.disable()  # the process ends before garbage matters
        self._find_packages()
        self._parse_event(payload)
        import os

        from coord.core.errors import CoordError
        from coord.host.runtime.seen_files import remembering
        from coord.integrations.hooks.handler import HookHandler
        from coord.integrations.hooks.identity import tool_process

        assert self.event is not None, "it was just read"
        environ = {**os.environ, "COORD_HUB": "off"}  # it was asked before, and may be frozen
        runs = tool_process(self.tool, environ, PARENT)
        if runs.gone:
            self._end_orphan()
            return
        open_by = self.began + self.deadline_s * OPEN_SHARE
        gate = HookHandler(
            self.event, payload, environ, self._reply, open_by=open_by, runs=runs, extend=self._extend
        )
        try:
            remembering(gate.handle)
            if gate.home is not None:
                from coord.host.runtime.start_hub import start_hub

                start_hub(os.environ, self.event.cwd)
        except CoordError as error:
            settings = gate.settings
            self.closed = {True: settings.closed_for_writes, False: settings.closed_for_reads}
            self._fail(error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - a defect must not allow a write
            self._fail(f"the hook failed: {error!r}", "")

    def _extend(self, seconds: float) -> None:
        """Move the deadline: a person has this much time to answer."""
        self._waits_s = seconds
        self.set_deadline()

    def _report_progress(self) -> None:
        self._find_packages()
        import os

        from coord.host.progress import report_progress

        report_progress(os.environ)

    def _ask_hub(self) -> bool:
        """Print the answer of this user's hub; return whether it gave one.

        COORD_HUB can only switch the hub off here: a hook never goes to a socket that its environment names.
        """
        if posix.environ.get(b"COORD_HUB"):
            return False
        name = self._first_text(EVENT_NAME)
        if name == PERMISSION:  # a hub has no time to wait for a person
            return False
        self._load("coord.host.runtime.hub_socket")
        from coord.host.runtime.hub_socket import socket_of_user

        folder = posix.environ.get(b"XDG_RUNTIME_DIR", b"").decode("utf-8", "surrogateescape")
        path = socket_of_user({"XDG_RUNTIME_DIR": folder})
        if not path:
            return False
        self._load("coord.integrations.hooks.hub_client")
        from coord.integrations.hooks.hub_client import ask_hub

        self.set_deadline()
        if name == SESSION_END:
            self.deadline_s = min(self.deadline_s, END_DEADLINE_S)
        call = (self.tool, self.installed_for, PARENT)
        alive_by, answer_by = (self.began + self.deadline_s * share for share in (ALIVE_SHARE, OPEN_SHARE))
        found = ask_hub(path, call, self._data, alive_by, answer_by)
        if found is None:
            return False
        if self._answer_lock.acquire(blocking=False):
            self._code = found.code
            printed = write_all(1, found.out) and write_all(2, found.said)
            self._answered.release()
            found.confirm(printed)
        return True

    def _read(self) -> None:
        parts: list[bytes] = []
        size = 0
        while part := posix.read(0, READ_BYTES):
            parts.append(part)
            size += len(part)
            if size > PAYLOAD_BYTES_MAX:
                raise ValueError(f"more than {PAYLOAD_BYTES_MAX} bytes")
        self._data = b"".join(parts)

    def _first_text(self, name: bytes) -> str:
        """Return what seems to be the first field with this name; "" if there is none.

        It may be wrong, for example in an object inside of the event. So it allows nothing: it only says
        whether parsing the event here is worth the time. If it is not, the hub or the handler parses it.
        """
        _, found, rest = self._data.partition(name)
        text = rest[:NAME_BYTES_MAX].lstrip(b" \t\r\n:") if found else b""
        return text[1:].partition(b'"')[0].decode("latin-1")

    def _parse(self) -> "dict[str, Any]":
        from _json import make_scanner

        text = self._data.decode().strip()
        payload: Any = None
        try:
            payload, end = make_scanner(JsonOptions)(text, 0)  # type: ignore[arg-type]
            whole = end == len(text)
        except (
            StopIteration,
            SystemError,
            ValueError,
        ):  # the scanner needs `json` to describe the error
            whole = False
        if not whole:
            import json

            payload = json.loads(text)
        if not isinstance(payload, dict):
            raise TypeError("not an object")
        return payload

    def _parse_event(self, payload: "dict[str, Any]") -> None:
        from importlib import import_module

        from coord.host.startup import import_msgspec

        import_msgspec(only_plain=True)

        self._form = import_module(f"coord.integrations.hooks.tools.{self.tool}")
        self.event = self._form.parse(payload)._replace(installed_for=self.installed_for)
        self.set_deadline()

    def set_deadline(self) -> None:
        """Set the deadline of this event, as far as the event is known."""
        self._load("coord.integrations.deadline")
        from coord.integrations.deadline import deadline_s

        ends = self.event is not None and self.event.kind == "end"
        self.deadline_s = min(deadline_s(), END_DEADLINE_S) if ends else deadline_s() + self._waits_s

    def _watch(self) -> None:
        """Answer at the deadline if the store has not, before the tool gives up on its hook."""
        self._ended.acquire(timeout=WATCH_FROM_S)
        self.set_deadline()
        while (left := self.began + self.deadline_s - time.monotonic()) > 0:
            self._ended.acquire(timeout=min(left, 0.05 if self.event is None else left))
        try:
            if self.event is None:
                self._refuse(f"coord: {self.tool} gave its hook no input within {self.deadline_s:.1f} s")
            else:
                self._fail(
                    f"the store did not answer within {self.deadline_s:.1f} s", "try again in a moment"
                )
        finally:
            if not self._answered.acquire(timeout=GRACE_S):
                self._code = EXIT_REFUSED
            _exit(self._code)

    def _fail(self, message: str, hint: str) -> None:
        """Answer without knowing who holds what: the settings say whether calls are refused or allowed."""
        from coord.integrations.hooks.events import ALLOW, Answer, Kind
        from coord.integrations.hooks.messages import failure

        event = self.event
        assert event is not None, "an event without a payload was refused"
        if event.kind is Kind.START:
            self._reply(Answer(note=failure(message, hint, closed=self.closed[True])))
            return
        writes = event.changes_files and not self._only_reads(event)
        if event.kind is Kind.BEFORE and self.closed[writes]:
            self._reply(Answer(deny=failure(message, hint, closed=True)))
            return
        self._reply(ALLOW)

    def _end_orphan(self) -> None:
        """Answer for a tool that has ended: nothing is registered, and no call is allowed."""
        from coord.integrations.hooks.events import ALLOW, Answer, Kind

        assert self.event is not None, "an event was parsed"
        why = f"coord: {self.tool} has ended, so nothing was done in its name."
        self._reply(Answer(deny=why) if self.event.kind is Kind.BEFORE else ALLOW)

    def _only_reads(self, event: "Event") -> bool:
        """Whether the event is a command line that changes no file, and asks no store."""
        if event.command is None or event.writes:
            return False
        import os

        from coord.integrations.shell_commands.line import CommandLine

        return CommandLine(event.command, event.cwd, os.environ, ask_git=False).only_reads(store=False)

    def _refuse(self, why: str) -> None:
        """Refuse a call of unknown kind, in the one way that every tool understands."""
        if self._answer_lock.acquire(blocking=False):
            self._code = EXIT_REFUSED
            write_all(2, f"{why}\n".encode("utf-8", "replace"))
            self._answered.release()

    def _reply(self, answer: "Answer") -> None:
        """Print the answer; only the first one is printed."""
        if not self._answer_lock.acquire(blocking=False):
            return
        assert self.event is not None, "an event was parsed"
        output = self._form.output_of(self.event, answer)
        self._code = output.code
        out, said = output.printed()
        write_all(1, out)
        write_all(2, said)
        self._answered.release()


def write_all(fd: int, data: bytes) -> bool:
    """Write to a stream; return whether its reader took everything."""
    try:
        while data:
            data = data[posix.write(fd, data) :]
    except OSError:  # the tool has closed its end
        return False
    return True


def run(
    words: "list[str]",
    load: "Callable[[str], object]" = bool,
    find_packages: "Callable[[], object]" = bool,
) -> "NoReturn":
    """Run the hook of a tool; the words are those of the command line."""
    if len(words) not in (1, 2) or words[0] not in TOOLS:
        write_all(2, f"coord: usage: main.py {'|'.join(TOOLS)} [GIT-DIRECTORY]\n".encode())
        _exit(EXIT_REFUSED)
    Hook(words[0], "".join(words[1:]), load, find_packages).run()
