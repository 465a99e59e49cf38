"""Permissions and stops of a coding agent, as questions to a person.

A tool that asks for a permission shows its own dialog. The hook lists that dialog as a question. Only if
`hooks.permission_wait` says so, it also waits for `coord decide`, and gives the answer to the tool. In any
doubt it says nothing, so that the dialog decides. When the tool goes on, its question is withdrawn.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from zlib import crc32

from coord.core.errors import CoordError
from coord.core.questions.commands import AskQuestion, GetQuestion, QuestionInfo
from coord.core.questions.questions import TEXT_CHARS_MAX
from coord.core.questions.schema import QuestionKind, QuestionState
from coord.integrations.hooks.events import ALLOW, Answer, Event, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coord.sdk.client.connection import Connection

CHOICES = ("allow", "deny")
ATTENTION_TTL_MS = 24 * 3600 * 1000
POLL_S = 5.0
COMMIT_S = 1.0
"""How long the commit of an answer may take that was accepted in time."""
UNATTENDED = ("CLAUDE_CODE_SESSION_ATTENDED", "0")
"""A run of Claude Code without a user: nobody sees its dialog, and it refuses what nobody permits."""
WAITS_FOR_USER = ("idle_prompt", "agent_needs_input", "elicitation_dialog", "ToolPermission")
"""The types of notification that say so; others report only that something happened."""


def dialog_of(event: Event) -> str:
    """Return an id for the dialog about a call, the same for the request and the end of the call.

    The request for a permission does not name its call, and Codex adds the reason of the agent to its input.
    """
    given = {name: value for name, value in event.given.items() if name != "description"}
    digest = crc32(repr(sorted(given.items(), key=str)).encode("utf-8", "replace"))
    return f"{event.tool_name[:60]}-{digest:08x}"


def ask_permission(
    connection: "Connection",
    event: Event,
    environ: "Mapping[str, str]",
    wait_s: float,
    extend: Callable[[float], object] | None,
) -> Answer:
    """List a request for a permission, and wait for a person if the hook can `extend` its deadline."""
    wait_s = wait_s if extend is not None else 0.0
    if not wait_s and environ.get(UNATTENDED[0]) == UNATTENDED[1]:
        return ALLOW
    command = AskQuestion(
        caller=connection.caller,
        text=_described(event),
        options=CHOICES,
        kind=QuestionKind.PERMISSION,
        call=dialog_of(event),
        wait_ms=round(wait_s * 1000),
    )
    if not wait_s or extend is None:
        connection.call(command)
        return ALLOW
    extend(wait_s)
    return _ask_and_wait(connection, command)


def _wait(connection: "Connection", question: QuestionInfo) -> QuestionInfo:
    """Return a question once it is closed, or when the time in which answers count is over.

    The store's clock decides about both, so no answer that was accepted is missed.
    """
    store = connection.log
    ask = GetQuestion(caller=connection.caller, id=question.id)
    while question.state is QuestionState.OPEN and store.now() < question.heard_until_ms:
        left_s = (question.heard_until_ms - store.now()) / 1000
        store.wait(store.seen.offset, min(max(left_s, 0.01), POLL_S))
        question = connection.call(ask)
    if question.state is QuestionState.OPEN:
        store.wait(store.seen.offset, COMMIT_S)  # an answer may have been accepted just before
        question = connection.call(ask)
    return question


def _ask_and_wait(connection: "Connection", command: AskQuestion) -> Answer:
    """Return what a person decides; if the tool ends its hook, the user has answered the dialog."""
    import signal

    from coord.core.locks.commands import EndToolCall

    def stop(_signum: int, _frame: Any) -> None:
        raise SystemExit

    before = signal.signal(signal.SIGTERM, stop)
    try:
        closed = _wait(connection, connection.call(command))
        return Answer(permission=closed.answer, note=closed.reason)
    except SystemExit:
        with suppress(CoordError):  # the next prompt withdraws it, too
            connection.call(EndToolCall(connection.caller, command.call))
        return ALLOW
    finally:
        signal.signal(signal.SIGTERM, before)


def ask_attention(connection: "Connection", event: Event, payload: "Mapping[str, Any]") -> None:
    """List an agent that has stopped and waits for its user; its earlier dialogs are over then."""
    if event.source not in WAITS_FOR_USER:
        return
    from coord.core.locks.commands import EndToolCall
    from coord.integrations.hooks.handler import NO_CALL

    text = text_in(payload, "message").strip() or f"{event.tool} waits for its user"
    ask = AskQuestion(
        caller=connection.caller,
        text=text[:TEXT_CHARS_MAX],
        kind=QuestionKind.ATTENTION,
        ttl_ms=ATTENTION_TTL_MS,
    )
    connection.engine.call_many([EndToolCall(connection.caller, NO_CALL, at_prompt=True), ask])


def _described(event: Event) -> str:
    """Return what the call would do: the command line, the files, or the whole input."""
    what = event.command if event.command is not None else "\n".join(event.writes) or event.text
    return f"{event.tool_name}: {what}".strip()[:TEXT_CHARS_MAX]
