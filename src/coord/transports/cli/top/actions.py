"""What a key does to the selected row, as the command line that does the same.

An action *is* that command line: it is shown, and then parsed and run as if somebody had typed it, on the
connection of `coord top`.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO
from typing import Any, NamedTuple

from coord.core.errors import CoordError
from coord.core.sessions.schema import Liveness
from coord.host.repository import current_folder
from coord.sdk.client.client import Client
from coord.transports import exit_codes
from coord.transports.cli.args import Options, args_type
from coord.transports.cli.commands.flags import GLOBAL_FLAGS
from coord.transports.cli.output import Answer
from coord.transports.cli.parser import parse
from coord.transports.cli.top.sections import Item
from coord.transports.cli.top.snapshot import Snapshot

Words = list[str]


class Action(NamedTuple):
    """What to do: the command lines, which a text that the user types may complete.

    `asks` names that text; without it, nothing is asked. `confirms`: the user has to agree at the end.
    """

    what: str
    commands: Callable[[str], list[Words]]
    item: Item
    asks: str = ""
    confirms: bool = True


class Unable(NamedTuple):
    """Why a key does nothing here, and what would help."""

    why: str


def release(client: Client, taken: Snapshot, item: Item) -> Action | Unable:
    """Release a lock or a claim; that of another session only for a reason."""
    if item.kind == "lock":
        lock = item.about
        name = spelled(client, lock.resource)
        if lock.owner == taken.own:
            unlock = _line("unlock", name, fence=str(lock.fence))
            return Action(f"release {lock.resource}", lambda _: [unlock], item)
        return Action(
            f"release {lock.resource} of {lock.owner}",
            lambda reason: [_steal(lock, name, reason, taken), _line("unlock", name)],
            item,
            "reason",
        )
    if item.kind == "task" and item.about.session_id:
        task = item.about
        if task.session_id == taken.own:
            give_back = _line("task release", task.task_id, str(task.generation))
            return Action(f"release {task.task_id}", lambda _: [give_back], item)
        return Action(
            f"take {task.task_id} from {task.session_id}, and put it back into the queue",
            lambda reason: [_line("task reset", task.task_id, reason=reason)],
            item,
            "reason",
        )
    return Unable("r releases a lock, or a task in work: select one")


def steal(client: Client, taken: Snapshot, item: Item) -> Action | Unable:
    """Take a lock or a claim from another session, for a reason."""
    if item.kind == "lock":
        lock = item.about
        if lock.owner == taken.own:
            return Unable(f"{lock.resource} is yours: r releases it")
        name = spelled(client, lock.resource)
        return Action(
            f"steal {lock.resource} from {lock.owner}",
            lambda reason: [_steal(lock, name, reason, taken)],
            item,
            "reason",
        )
    if item.kind == "task" and item.about.session_id:
        task = item.about
        if task.session_id == taken.own:
            return Unable(f"{task.task_id} is yours: r releases it")
        return Action(
            f"steal {task.task_id} from {task.session_id}",
            lambda reason: [_line("task claim", task.task_id, force=True, reason=reason)],
            item,
            "reason",
        )
    return Unable("s steals a lock, or a task in work: select one")


def message(_client: Client, taken: Snapshot, item: Item) -> Action | Unable:
    """Send a message to the session of a row; to a message or a question, the answer."""
    if item.kind == "message":
        to, answered = item.about.from_session_id, item.about.id
        return Action(
            f"answer {to}",
            lambda text: [_line("send", to, "reply", text, reply_to=answered)],
            item,
            "answer",
            confirms=False,
        )
    if item.kind == "question":
        name = item.about.id
        return Action(
            f"answer {name} of {item.about.session_id}",
            lambda text: [_line("decide", name, text)],
            item,
            "answer",
            confirms=False,
        )
    to = _session_of(item)
    if not to:
        return Unable("m sends a message to the session of a row, and this one has none")
    if to == taken.own:
        return Unable("this row is yours: select somebody else to write to")
    return Action(
        f"message to {to}",
        lambda text: [_line("send", to, "request", text)],
        item,
        "text",
        confirms=False,
    )


def _session_of(item: Item) -> str:
    """Return the session that a row is about; empty if there is none."""
    match item.kind:
        case "lock":
            return str(item.about.owner)
        case "event":
            return str(item.about.details.get("session", ""))
        case _:
            return str(item.about.session_id)


def acknowledge(_client: Client, _taken: Snapshot, item: Item) -> Action | Unable:
    """Acknowledge a message, so that it is gone."""
    if item.kind != "message":
        return Unable("a acknowledges a message: select one")
    return Action(f"acknowledge {item.key}", lambda _: [_line("ack", item.key)], item, confirms=False)


def retry(_client: Client, _taken: Snapshot, item: Item) -> Action | Unable:
    """Put a task that failed back into the queue."""
    if item.kind != "task" or item.about.state not in ("failed", "errored", "skipped"):
        return Unable("t retries a task that failed: select one")
    return Action(f"retry {item.key}", lambda _: [_line("task retry", item.key)], item)


def shown(commands: Sequence[Words], options: Sequence[str] = ()) -> str:
    """Return command lines as a shell takes them."""
    return " && ".join(shlex.join(["coord", *options, *each]) for each in commands)


def global_words(options: Options) -> Words:
    """Return the global flags that select the store and the caller, as they were given."""
    given = []
    for flag in GLOBAL_FLAGS:
        value = getattr(options, flag.field)
        if flag.field not in ("output", "json") and value not in ("", None):
            given += _flag(flag.spelled, str(value))
    return given


def spelled(client: Client, resource: str) -> str:
    """Return a resource as the current folder names it; the store names it from the top of the repository."""
    repository = client.location.repository
    kind, _, path = resource.partition(":")
    if kind != "file" or repository is None or repository.root is None or path.startswith("/"):
        return resource
    return f"file:{os.path.relpath(os.path.join(repository.root, path), os.path.realpath(current_folder()))}"


def changed(taken: Snapshot, item: Item) -> str:
    """Return what has changed about a row since it was selected; empty if it is the same lock or claim."""
    if item.kind == "lock":
        before = item.about
        now = [each for each in taken.locks if each.resource == before.resource and each.mode == before.mode]
        if any((each.owner, each.fence) == (before.owner, before.fence) for each in now):
            return ""
        return f"{before.resource} is {f'now with {now[0].owner}' if now else 'free now'}"
    if item.kind == "task" and item.about.session_id:
        task = next((each for each in taken.queue.working if each.task_id == item.key), None)
        if task is None:
            return f"{item.key} is not in work any more"
        return "" if task.generation == item.about.generation else f"{item.key} is now with {task.session_id}"
    return ""


def run(client: Client, commands: Sequence[Words]) -> tuple[bool, str]:
    """Run command lines one after the other until one fails; return whether none did, and what they said."""
    said: list[str] = []
    for words in commands:
        warnings = StringIO()
        try:
            with redirect_stderr(warnings):
                answer = _call(client, words)
        except CoordError as error:
            failure = exit_codes.failure(error)
            answer = Answer(
                line=f"{failure.message} ({failure.hint})" if failure.hint else failure.message,
                failure=failure,
            )
        said += [line for line in warnings.getvalue().splitlines() if line]
        said += [answer.line] if answer.line else []
        if answer.failure is not None:
            return False, "; ".join(said)
    return True, "; ".join(said)


def _call(client: Client, words: Words) -> Answer:
    request = parse(words)
    assert request.command is not None, "only whole lines are made here"
    module, _, function = request.command.handler.partition(":")
    handler: Any = getattr(import_module(module), function)
    answer: Answer = handler(client, args_type(handler)(**request.values))
    return answer


def _steal(lock: Any, name: str, reason: str, taken: Snapshot) -> Words:
    """Return the line that takes a lock: without force, if its holder is proven dead."""
    holder = taken.session(lock.owner)
    dead = holder is not None and holder.liveness is Liveness.DEAD
    fence = str(lock.fence)
    return _line("steal", name, dead_owner=dead, force=not dead, reason=reason, fence=fence)


def _line(name: str, *words: str, **flags: str | bool) -> Words:
    """Return a command line; words that look like flags come last, after `--`."""
    given = [part for flag, value in flags.items() for part in _flag(f"--{flag.replace('_', '-')}", value)]
    if any(word.startswith("-") for word in words):
        return [*name.split(), *given, "--", *words]
    return [*name.split(), *words, *given]


def _flag(flag: str, value: str | bool) -> Words:
    """Return a flag with its value, which must not look like a flag itself."""
    if isinstance(value, bool):
        return [flag] if value else []
    return [f"{flag}={value}"] if value.startswith("-") or not value else [flag, value]


BY_KEY: dict[str, Callable[[Client, Snapshot, Item], Action | Unable]] = {
    "r": release,
    "s": steal,
    "m": message,
    "a": acknowledge,
    "t": retry,
}
