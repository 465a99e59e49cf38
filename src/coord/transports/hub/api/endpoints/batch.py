"""Many claims, renewals, submissions or locks in one request, with one answer each.

The commands are queued together, all or none, and share commits. The answer is 200 even if all were refused:
each answer has the status that its own request would have had.
"""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coord.core.commands import Command
from coord.core.errors import CoordError
from coord.core.locks.commands import AcquireLocks, LockReply
from coord.core.tasks.commands import ClaimTask, GetTaskState, RenewLease, SubmitResult
from coord.core.tasks.types import ClaimResult, RenewalResult, SubmissionResult, TaskState
from coord.sdk.coordinator import claim_command
from coord.sdk.validation.results import to_json
from coord.transports.hub.api import replies
from coord.transports.hub.api.endpoint import Asking, Endpoint, role_of
from coord.transports.hub.api.endpoints.commands import Public, build_from, request_type, require_session
from coord.transports.hub.api.endpoints.results import submission, submit
from coord.transports.hub.api.fields import Id, Number, OptionalId, PublicBody, Seconds
from coord.transports.hub.api.replies import Problem
from coord.transports.hub.problems import problem_details, status_of

ITEMS_MAX = 1000


class ClaimItem(PublicBody, frozen=True, kw_only=True):
    """A task to claim."""

    project: Id
    task: Id
    agent: OptionalId = ""
    session: OptionalId = ""
    lease_duration_seconds: Seconds = 300


class RenewItem(PublicBody, frozen=True, kw_only=True):
    """A claim to renew."""

    project: Id
    task: Id
    generation: Number
    session: OptionalId = ""


class SubmitItem(RenewItem, frozen=True, kw_only=True):
    """A claim and its result."""

    result: dict[str, Any] = {}


class StateItem(PublicBody, frozen=True, kw_only=True):
    """A task."""

    project: Id
    task: Id


LockItem: Any = request_type(
    AcquireLocks, Public("AcquireLocks", "POST", "/v1/batch/locks", ("wait_ms",)), "LockItem"
)


def _claim(asking: Asking, item: ClaimItem) -> Command:
    session = require_session(asking.identity.check_session(item.session))
    key = (asking.tenant, item.project, item.task)
    return claim_command(key, item.agent or session, session, item.lease_duration_seconds, {})


def _renew(asking: Asking, item: RenewItem) -> Command:
    session = require_session(asking.identity.check_session(item.session))
    return RenewLease(asking.tenant, item.project, item.task, session, item.generation)


def _state(asking: Asking, item: StateItem) -> Command:
    return GetTaskState(asking.tenant, item.project, item.task)


def _lock(asking: Asking, item: Any) -> Command:
    return build_from(AcquireLocks, asking, msgspec.structs.asdict(item))


def _runner(make: Callable[[Asking, Any], Command]) -> Callable[[Asking], Any]:
    async def run(asking: Asking) -> Any:
        commands = [make(asking, item) for item in asking.values.items]
        return {"answers": [_answer_of(reply) for reply in await asking.ask_many(commands)]}

    return run


async def submit_all(asking: Asking) -> Any:
    """Submit many results; each is accepted or rejected separately."""
    commands: list[SubmitResult] = []
    large: dict[int, bytes] = {}
    for number, item in enumerate(asking.values.items):
        session = require_session(asking.identity.check_session(item.session))
        data = to_json("result", item.result)
        key = (asking.tenant, item.project, item.task)
        command_id = f"{asking.command_id}.{number}" if asking.command_id else ""
        commands.append(submission(key, session, item.generation, data, command_id))
        if commands[-1].digest:
            large[number] = data
    answers = await asking.ask_many(commands)
    for number, data in large.items():
        command = commands[number]
        name = f"{asking.command_id}.{number}" if asking.command_id else ""
        answers[number] = await _late(asking, command, data, answers[number], name)
    return {"answers": [_answer_of(reply) for reply in answers]}


async def _late(asking: Asking, command: SubmitResult, data: bytes, answer: Any, command_id: str) -> Any:
    """Return the reply to a large result, whose data is sent after the first reply asked for it."""
    if isinstance(answer, CoordError) or answer.reason != "DATA_MISSING":
        return answer
    key = (command.tenant, command.project, command.task)
    try:
        return await submit(asking, key, command.session, command.generation, data, command_id)
    except CoordError as error:
        return error


def _answer_of(reply: Any) -> dict[str, Any]:
    if isinstance(reply, CoordError):
        return {"status": status_of(reply), "problem": problem_details(reply)}
    found = replies.answer(reply)
    return {"status": found.status, "reply" if found.status < 400 else "problem": found.value}


def _types(item: Any, reply: Any) -> tuple[Any, Any]:
    """Return the types of a batch and of its answer."""
    name = reply.__name__
    items = Annotated[tuple[item, ...], Meta(min_length=1, max_length=ITEMS_MAX)]
    body = msgspec.defstruct(
        f"{name}Batch", [("items", items)], bases=(PublicBody,), frozen=True, kw_only=True
    )
    refused = replies.refusal_type(reply) if replies.is_refusable(reply) else Problem
    unset = msgspec.UnsetType
    fields: list[Any] = [
        ("status", int),
        ("reply", reply | unset, msgspec.UNSET),
        ("problem", refused | unset, msgspec.UNSET),
    ]
    answer = msgspec.defstruct(f"{name}Answer", fields, frozen=True)
    answers: Any = list[answer]  # type: ignore[valid-type]
    return body, msgspec.defstruct(f"{name}Answers", [("answers", answers)], frozen=True)


def endpoints() -> list[Endpoint]:
    """Return the routes."""
    rows: tuple[tuple[str, Any, Any, Any, Any, str], ...] = (
        ("claims", ClaimItem, ClaimResult, _runner(_claim), ClaimTask, "Claim many tasks"),
        ("renewals", RenewItem, RenewalResult, _runner(_renew), RenewLease, "Renew many claims"),
        ("submissions", SubmitItem, SubmissionResult, submit_all, SubmitResult, "Submit many results"),
        ("states", StateItem, TaskState, _runner(_state), GetTaskState, "Return the states of many tasks"),
        ("locks", LockItem, LockReply, _runner(_lock), AcquireLocks, "Acquire many locks, each by itself"),
    )
    found = []
    for noun, item, reply, handle, command, summary in rows:
        body, answer = _types(item, reply)
        found.append(
            Endpoint(
                "POST",
                f"/v1/batch/{noun}",
                f"batch_{noun}",
                handle,
                summary=f"{summary}; one answer each.",
                tag="batch",
                role=role_of(command),
                body=body,
                replies={200: answer},
            )
        )
    return found
