"""Run tools: each call becomes what the CLI does, and its answer becomes a result.

A tool takes the client of its caller, so the same code runs in the hub and in `coord mcp`. The sentence of a
result, its error and the next step are those of the CLI; only hints that name flags are put in other words.
"""

from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from coord.core.commands import Command
from coord.core.errors import CoordError, Invalid
from coord.core.ids import check_id
from coord.core.locks.resources import NAMED_RESOURCES_MAX
from coord.core.messages.quoting import quote_lines, quote_name, visible
from coord.core.questions.questions import OPTIONS_MAX, TEXT_CHARS_MAX
from coord.core.questions.schema import QuestionState
from coord.engine.engine import TIMEOUT_S, Engine
from coord.sdk.client.client import Client
from coord.sdk.client.tasks import LEASE_S
from coord.sdk.log_reader import LoggedEvent, logged_events, newest_offset
from coord.transports import exit_codes
from coord.transports.cli.args import Args
from coord.transports.cli.handlers import locks, messages, questions, sessions, task_history, tasks
from coord.transports.cli.output import Answer, fields_of, json_of
from coord.transports.hub.mcp.definitions import WAIT_S_MAX

EVENTS_MAX = 20
"""How many events `wait` shows."""
HOLDERS_MAX = 10
ROOM = 100
"""The width of message texts."""
HINTS = {
    "held": "call wait, then lock again; or ask the holder with message",
    "blocked": "call wait, then task next",
    "denied": "call status",
    "done": "nothing is left to do",
    "deadlocked": "a person has to retry or skip the failed tasks",
    "not_owner": "call lock check to see who has it",
}
"""The next step after a refusal, where that of the CLI names flags."""

UNTOLD = frozenset(("uses", "scope", "profile", "acquired_at", "exact", "worktree", "owned"))
"""Fields of locks and sessions that no agent acts on."""
NEXT = tasks.NextArgs((), (), None, (), LEASE_S, False, 0, True, 1, "")
"""`coord task next` without flags, and without waiting."""

Text = Annotated[str, Meta(max_length=4096)]
Number = Annotated[int, Meta(ge=0, lt=2**53)]
Name = Annotated[str, Meta(min_length=1, max_length=4096)]
Names = Annotated[list[Name], Meta(max_length=NAMED_RESOURCES_MAX)]


class Call(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The arguments that every tool takes."""

    session: Annotated[str, Meta(max_length=128)] = ""


class Write(Call, kw_only=True):
    """The arguments of a tool that may change something."""

    command_id: Annotated[str, Meta(max_length=128)] = ""


class StatusCall(Call, kw_only=True):
    """The arguments of `status`."""


class LockCall(Write, kw_only=True):
    """The arguments of `lock`."""

    action: Literal["acquire", "release", "renew", "check"]
    resources: Names = []
    mode: Literal["read", "write", "exclusive", ""] = ""
    ttl_s: float | None = None
    reason: Text = ""
    fence: Number | None = None


class TaskCall(Write, kw_only=True):
    """The arguments of `task`."""

    action: Literal["next", "claim", "renew", "submit", "release", "show"]
    task: Text = ""
    generation: Number | None = None
    result: dict[str, Any] | None = None
    note: Text = ""


class MessageCall(Write, kw_only=True):
    """The arguments of `message`."""

    action: Literal["send", "receive", "ack"]
    to: Text = ""
    kind: Text = "request"
    subject: Text = ""
    body: str = ""
    reply_to: Text = ""
    ids: Names = []


class WaitCall(Call, kw_only=True):
    """The arguments of `wait`; without `after` it waits for what happens from now on."""

    after: Number | None = None
    timeout_s: Annotated[float, Meta(ge=0, le=WAIT_S_MAX)] = WAIT_S_MAX


class AskCall(Write, kw_only=True):
    """The arguments of `ask_human`: a new question, or the id of an earlier one."""

    question: Annotated[str, Meta(max_length=TEXT_CHARS_MAX)] = ""
    options: Annotated[list[Name], Meta(max_length=OPTIONS_MAX)] = []
    id: Annotated[str, Meta(max_length=128)] = ""
    timeout_s: Annotated[float, Meta(ge=0, le=WAIT_S_MAX)] = WAIT_S_MAX


class ToolEngine:
    """The engine of one call: commands are checked first, and those that write have the id of the call.

    A call that writes twice has a second id: a repeated call sends the same commands in the same order.
    """

    def __init__(
        self, engine: Engine, check: Callable[[Command], Command], command_id: str, origin: bytes = b""
    ) -> None:
        """`origin` says where the call came from, as a field for its events."""
        self.tenant = engine.tenant
        self._more = {"origin": origin} if origin else {}
        self._engine = engine
        self._check = check
        self.command_id = command_id
        self._writes = 0

    def call(self, command: Command, *, timeout: float = TIMEOUT_S, command_id: str = "") -> Any:
        """Run a command and return its reply."""
        if self.command_id and not command_id and not command.reads_only:
            self._writes += 1
            command_id = self.command_id if self._writes == 1 else f"{self.command_id}.{self._writes}"
        return self._engine.call(self._check(command), timeout=timeout, command_id=command_id, **self._more)

    def call_many(self, commands: list[Command], *, timeout: float = TIMEOUT_S) -> list[Any]:
        """Run several commands together; they need no ids, because repeating them changes nothing."""
        return self._engine.call_many(
            [self._check(command) for command in commands], timeout=timeout, **self._more
        )

    def close(self) -> None:
        """Do nothing: the engine belongs to others."""


def read_call(name: str, arguments: dict[str, Any]) -> Call:
    """Return the arguments of a tool; raises Invalid, also if there is no such tool."""
    kind = CALLS.get(name)
    if kind is None:
        raise Invalid(f"there is no tool {quote_name(name, 100)}", hint=f"the tools are {', '.join(CALLS)}")
    try:
        call: Call = msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"{name}: {error}", hint="see the inputSchema of the tool") from error
    if isinstance(call, Write) and call.command_id:
        check_id("command id", call.command_id)
    return call


def run_tool(client: Client, call: Call) -> dict[str, Any]:
    """Return the result of a call; a refusal is a result, too."""
    try:
        answer, more = TOOLS[type(call)](client, call)
    except CoordError as error:
        return failed(error, getattr(call, "command_id", ""))
    given = {name: _short(fields_of(value)) for name, value in answer.fields.items() if value is not None}
    fields = {**given, "offset": client.log.seen.offset}
    if answer.failure is not None:
        return _refusal(answer.failure, fields)
    line = f"{visible(answer.line)} (offset {fields['offset']})"
    return _result(line + more, {"ok": True, **fields})


def failed(error: BaseException, command_id: str = "") -> dict[str, Any]:
    """Return an error as the result of a call."""
    return _refusal(exit_codes.failure(error, command_id), {})


def _refusal(failure: exit_codes.Failure, fields: dict[str, Any]) -> dict[str, Any]:
    hint = HINTS.get(failure.code, failure.hint).replace("--command-id", "command_id")
    error = {**failure.as_error(), "hint": hint}
    text = f"{failure.message}. Next: {hint}" if hint else failure.message
    return {**_result(visible(text), {"ok": False, "error": error, **fields}), "isError": True}


def _result(text: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": msgspec.Raw(json_of(fields).encode()),
    }


def _short(value: Any) -> Any:
    """Return data without what says nothing: an agent pays for each word."""
    if isinstance(value, list):
        return [_short(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _short(each) for name, each in value.items() if name not in UNTOLD and not _says_nothing(each)
    }


def _says_nothing(value: Any) -> bool:
    return not value and type(value) is not float


Answered = tuple[Answer, str]
"""An answer, and texts of others that follow its sentence, quoted."""


def _status(client: Client, _call: StatusCall) -> Answered:
    return sessions.status(client, Args()), ""


def _lock(client: Client, call: LockCall) -> Answered:
    named = call.resources
    if call.action == "release":
        return locks.unlock(client, locks.UnlockArgs(named, False, call.fence, not named)), ""
    if call.action == "renew":
        return locks.renew(client, locks.RenewArgs(named, False, call.ttl_s, call.fence)), ""
    if not named:
        raise Invalid("no resource given", hint="name files or name:X in resources")
    if call.action == "check":
        return locks.checked(client.check(named, mode=call.mode, fence=call.fence, limit=HOLDERS_MAX)), ""
    reply = client.acquire(named, mode=call.mode, ttl_s=call.ttl_s, reason=call.reason)
    return locks.answer_of(locks.salvaged(client, reply)), ""


def _task(client: Client, call: TaskCall) -> Answered:
    if call.action == "next":
        return _described(tasks.next_(client, NEXT))
    name = call.task
    if not name:
        raise Invalid(f"task {call.action} needs the name of a task", hint="give task; task next chooses one")
    if call.action == "show":
        return _described(task_history.show(client, tasks.TaskArgs(name)))
    if call.action == "claim":
        return tasks.claim(client, tasks.ClaimArgs([name], LEASE_S, False, False, "", "")), ""
    if call.action == "renew":
        return tasks.renew(client, tasks.ClaimedTaskArgs(name, call.generation)), ""
    if call.action == "submit":
        # The reference of a result is made from the id, so that a repeated command is the same.
        command_id = getattr(client.engine, "command_id", "")
        return tasks.submit(client, tasks.SubmitArgs(name, call.generation, call.result, command_id)), ""
    return tasks.release(client, tasks.ReleaseArgs(name, call.generation, call.note, 0)), ""


def _described(answer: Answer) -> Answered:
    """Return an answer about a task with the task's description, which somebody else wrote."""
    text = (answer.fields.get("task") or {}).get("description", "")
    return answer, f"\n{quote_lines(text)}" if text else ""


def _message(client: Client, call: MessageCall) -> Answered:
    if call.action == "receive":
        args = messages.RecvArgs(drain=False, peek=False, wait_s=0)
        answer = messages.recv(client, args)
        texts = answer.drawn(ROOM) if answer.drawn is not None and answer.fields["messages"] else ""
        return answer, f"\n{texts}".rstrip() if texts else ""
    if call.action == "ack":
        if not call.ids:
            raise Invalid("no message given", hint="name the messages in ids")
        return messages.ack(client, messages.AckArgs(ids=call.ids, of="")), ""
    if not call.subject:
        raise Invalid("the message has no subject", hint="give subject, and perhaps body")
    content = (call.kind, call.subject, call.body, None, 0, None)
    if call.to:
        return messages.send(client, messages.SendArgs(*content, call.to, call.reply_to)), ""
    return messages.broadcast(client, messages.BroadcastArgs(*content, live_only=False)), ""


def _wait(client: Client, call: WaitCall) -> Answered:
    log = client.log
    head = newest_offset(log)
    after = head if call.after is None else call.after
    changed = head > after or (call.timeout_s > 0 and log.wait(after, call.timeout_s))
    found = happened(client, after, EVENTS_MAX) if changed else []
    unread = client.status().get("messages", 0)
    fields = {"changed": changed, "events": [event_fields(each) for each in found], "messages": unread}
    if not changed:
        return Answer(fields, f"Nothing happened after {after}"), ""
    shown = "".join(f"\n{each.offset} {each.event}{_about(each.details)}" for each in found)
    news = f"; {unread} unread" if unread else ""
    return Answer(fields, f"{len(found)} events after {after}{news}"), visible_lines(shown)


def _ask(client: Client, call: AskCall) -> Answered:
    if call.id:
        found = client.wait_for_answer(call.id, call.timeout_s)
    else:
        found = client.ask(call.question, options=call.options, wait_s=call.timeout_s)
    answer = questions.answer_of(found)
    if found.state is not QuestionState.OPEN:
        return answer, ""
    return answer._replace(line=f"{found.id} is open; its answer comes as a message, or by id"), ""


def happened(client: Client, after: int, most: int) -> list[LoggedEvent]:
    """Return the first events after an offset; none if the caller may see only a part of the store."""
    if not getattr(client, "sees_events", True):
        return []
    return list(islice(logged_events(client.log.tail(after, most)), most))


def event_fields(each: LoggedEvent) -> dict[str, Any]:
    """Return an event as plain data."""
    return {"offset": each.offset, "event": each.event, **each.details}


def _about(details: dict[str, Any]) -> str:
    """Return what an event is about, in a few words of others."""
    names = ("resource", "task", "session", "to", "subject")
    texts = [details.get(name) for name in names]
    return "".join(f" {quote_name(text, 100)}" for text in texts if isinstance(text, str) and text)


def visible_lines(text: str) -> str:
    """Return lines without anything that controls a terminal or hides."""
    return "\n".join(map(visible, text.split("\n")))


CALLS: dict[str, type[Call]] = {
    "status": StatusCall,
    "lock": LockCall,
    "task": TaskCall,
    "message": MessageCall,
    "wait": WaitCall,
    "ask_human": AskCall,
}
TOOLS: dict[type[Call], Callable[[Client, Any], Answered]] = {
    StatusCall: _status,
    LockCall: _lock,
    TaskCall: _task,
    MessageCall: _message,
    WaitCall: _wait,
    AskCall: _ask,
}
