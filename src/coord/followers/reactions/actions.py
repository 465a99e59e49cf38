"""Perform a reaction once: post, run, send or add."""

import os
import threading
import time
from typing import NamedTuple

from coord.core.errors import CoordError, Gone, Invalid, LimitReached, NotFound, Refused
from coord.core.events import Origin
from coord.core.identity import Caller
from coord.core.plans.commands import AddTasks
from coord.core.reactions.commands import SendReactionMessage
from coord.core.sessions.commands import GetSession
from coord.engine.engine import Engine
from coord.followers.follower import LogSource
from coord.followers.reactions import command, webhook
from coord.followers.reactions.events import Delivery, fields_of, fill_arguments, fill_text
from coord.followers.reactions.settings import (
    WORKTREE,
    Command,
    MessageTable,
    Reaction,
    TaskTable,
    main_worktree,
)
from coord.followers.reactions.webhook import Permanent, TryLater, Webhook
from coord.host.caller import project_name
from coord.host.repository import find_repository
from coord.sdk.validation.tasks import new_task

SUBJECT_CHARS_MAX = 200
BODY_CHARS_MAX = 4000
PERMANENT = (Permanent, Invalid, NotFound, Refused)
"""Errors that another attempt would raise again, unless a limit is reached: an inbox is read some day."""


class Outcome(NamedTuple):
    """What one attempt came to."""

    error: str = ""
    permanent: bool = False
    after_s: float = 0
    """When the receiver wants to be asked again."""
    ran: command.Ran | None = None
    stopped: bool = False
    """Whether the attempt did not count, because coord stops."""


def attempt(reaction: Reaction, delivery: Delivery, source: LogSource, stop: threading.Event) -> Outcome:
    """Try to perform a reaction; whatever goes wrong is an outcome."""
    try:
        return Outcome(ran=_perform(reaction, delivery, source, stop))
    except CoordError as error:
        if stop.is_set():
            return Outcome(error.message, stopped=True)
        if reaction.may_miss and isinstance(error, NotFound | Gone):
            return Outcome()
        after_s = error.after_s if isinstance(error, TryLater) else 0
        text = f"{error.message} ({error.hint})" if error.hint else error.message
        permanent = isinstance(error, PERMANENT) and not isinstance(error, LimitReached)
        return Outcome(text, permanent, after_s)
    except Exception as error:  # noqa: BLE001 - a reaction harms nobody else
        return Outcome(f"{type(error).__name__}: {error}")


def _perform(
    reaction: Reaction, delivery: Delivery, source: LogSource, stop: threading.Event
) -> command.Ran | None:
    action, name = reaction.action, reaction.name
    if isinstance(action, Webhook):
        webhook.post(action, delivery, name, source.environ, reaction.timeout_s, int(time.time()))
        return None
    if isinstance(action, Command):
        arguments = fill_arguments(action.arguments, fields_of(delivery, name))
        environ = command.environment(source.environ, action.environ, delivery, name)
        return command.run(arguments, _folder(action, delivery, source), environ, reaction.timeout_s, stop)
    origin = Origin(reaction=name, hops=delivery.hops + 1).as_field()
    call: AddTasks | SendReactionMessage
    if isinstance(action, TaskTable):
        call = _task(action, delivery, name, source)
    else:
        call = _message(action, delivery, name)
    source.engine.call(call, command_id=_command_id(delivery, name), origin=origin)
    return None


def _command_id(delivery: Delivery, name: str) -> str:
    """Return an id with which a repetition changes nothing; one that a person asked for is new."""
    return "" if delivery.again else f"reaction:{delivery.id_for(name)}"


def _message(table: MessageTable, delivery: Delivery, name: str) -> SendReactionMessage:
    fields = fields_of(delivery, name)
    return SendReactionMessage(
        to=fill_text(table.to, fields),
        subject=fill_text(table.subject, fields)[:SUBJECT_CHARS_MAX],
        body=fill_text(table.body, fields)[:BODY_CHARS_MAX],
        reaction=name,
        hops=delivery.hops + 1,
    )


def _task(table: TaskTable, delivery: Delivery, name: str, source: LogSource) -> AddTasks:
    fields = fields_of(delivery, name)
    project = fill_text(table.project, fields) or str(delivery.details.get("project") or "")
    task = new_task(
        fill_text(table.id, fields),
        description=fill_text(table.description, fields)[:SUBJECT_CHARS_MAX],
        type=table.type,
        track=table.track or None,
        role=table.role,
        priority=table.priority,
        needs=table.needs,
        depends_on=[fill_text(each, fields) for each in table.depends_on],
    )
    return AddTasks(project or project_name(source.location.repository), (task,))


def _folder(action: Command, delivery: Delivery, source: LogSource) -> str:
    """Return where a command runs: where its table says, or in the worktree of the event's session."""
    if action.cwd != WORKTREE:
        return os.path.normpath(action.cwd)
    own = main_worktree(source.location.repository)
    session = delivery.details.get("session")
    if own is not None and isinstance(session, str) and session:
        found = _worktree_of(session, source.engine)
        repository = find_repository(found) if os.path.isdir(found) else None
        if repository is not None and repository.commondir == own.commondir and repository.root:
            return repository.root
    return (own and own.root) or os.path.expanduser("~")


def _worktree_of(session: str, engine: Engine) -> str:
    try:
        return str(engine.call(GetSession(Caller(""), session)).cwd)
    except (NotFound, Gone):
        return ""
