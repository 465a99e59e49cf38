"""The generation clock: the operations of `TaskCoordinator` as routes, with its names and its checks."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coord.core.ids import check_id
from coord.core.tasks import types
from coord.core.tasks.commands import (
    ClaimTask,
    GetClaimHistory,
    GetSessionClaims,
    GetTaskState,
    ReleaseClaim,
    RenewLease,
    SubmitResult,
)
from coord.sdk.coordinator import claim_command, generation_number, metadata_of, release_command
from coord.sdk.validation.results import to_json
from coord.transports.hub.api import replies
from coord.transports.hub.api.endpoint import Asking, Endpoint, role_of
from coord.transports.hub.api.endpoints.results import submit
from coord.transports.hub.api.fields import Id, Line, Number, PublicBody, Seconds

TASK = "/v1/tenants/{tenant}/projects/{project}/tasks/{task}"
SESSION = "/v1/tenants/{tenant}/sessions/{session}/claims"


class ClaimBody(PublicBody, frozen=True, kw_only=True):
    """Who claims a task, and for how long."""

    agent_id: Id
    session_id: Id
    lease_duration_seconds: Seconds = 300
    metadata: dict[str, Any] | None = None


class HolderBody(PublicBody, frozen=True, kw_only=True):
    """The session and the generation of a claim."""

    session_id: Id
    expected_generation: Number


class ReleaseBody(HolderBody, frozen=True, kw_only=True):
    """A claim to release; the reason is VOLUNTARY, ERROR, PREEMPTED, or a remark."""

    reason: Line = "VOLUNTARY"


class SubmitBody(PublicBody, frozen=True, kw_only=True):
    """The result of a claim."""

    session_id: Id
    generation: Number
    result_data: Annotated[dict[str, Any], Meta(description="any JSON object")] = {}


def key_of(asking: Asking) -> tuple[str, str, str]:
    """Return tenant, project and task of the path."""
    return asking.tenant, asking.path["project"], asking.path["task"]


async def claim(asking: Asking) -> Any:
    """Claim a task; it need not have been added."""
    body: ClaimBody = asking.values
    command = claim_command(
        key_of(asking),
        body.agent_id,
        body.session_id,
        body.lease_duration_seconds,
        metadata_of(body.metadata),
    )
    reply: types.ClaimResult = await asking.ask(command)
    if reply.success or reply.claim is not None:
        return replies.answer(reply)
    state: types.TaskState = await asking.ask(GetTaskState(*key_of(asking)))
    return replies.answer(msgspec.structs.replace(reply, claim=state.claim))


async def renew(asking: Asking) -> Any:
    """Renew the lease of a claim."""
    body: HolderBody = asking.values
    command = RenewLease(*key_of(asking), body.session_id, generation_number(body.expected_generation))
    return replies.answer(await asking.ask(command))


async def release(asking: Asking) -> Any:
    """Release a claim."""
    body: ReleaseBody = asking.values
    command = release_command(key_of(asking), body.session_id, body.expected_generation, body.reason)
    return replies.answer(await asking.ask(command))


async def submit_result(asking: Asking) -> Any:
    """Submit the result of a claim."""
    body: SubmitBody = asking.values
    data = to_json("result_data", body.result_data)
    return replies.answer(await submit(asking, key_of(asking), body.session_id, body.generation, data))


async def state(asking: Asking) -> Any:
    """Return the state of a task."""
    return await asking.ask(GetTaskState(*key_of(asking)))


async def history(asking: Asking) -> Any:
    """Return the ended generations of a task."""
    return await asking.ask(GetClaimHistory(*key_of(asking)))


async def session_claims(asking: Asking) -> Any:
    """Return the claims that a session holds."""
    session = check_id("session id", asking.path["session"])
    return await asking.ask(GetSessionClaims(asking.tenant, session, asking.identity.check_project("")))


def endpoints() -> list[Endpoint]:
    """Return the routes of the generation clock."""
    rows: tuple[tuple[str, str, str, Any, Any, Any, Any], ...] = (
        ("POST", f"{TASK}/claim", "claim_task", claim, ClaimBody, ClaimTask, types.ClaimResult),
        ("POST", f"{TASK}/renew", "renew_lease", renew, HolderBody, RenewLease, types.RenewalResult),
        ("POST", f"{TASK}/release", "release_claim", release, ReleaseBody, ReleaseClaim, types.ReleaseResult),
        (
            "POST",
            f"{TASK}/submit",
            "submit_result",
            submit_result,
            SubmitBody,
            SubmitResult,
            types.SubmissionResult,
        ),
        ("GET", f"{TASK}/state", "get_task_state", state, None, GetTaskState, types.TaskState),
        (
            "GET",
            f"{TASK}/history",
            "get_claim_history",
            history,
            None,
            GetClaimHistory,
            list[types.ClaimHistory],
        ),
        (
            "GET",
            SESSION,
            "get_active_claims_for_session",
            session_claims,
            None,
            GetSessionClaims,
            list[types.TaskClaim],
        ),
    )
    return [
        Endpoint(
            method,
            path,
            name,
            handle,
            summary=handle.__doc__,
            tag="generation clock",
            role=role_of(command),
            body=body,
            replies=replies.replies_of(reply),
        )
        for method, path, name, handle, body, command, reply in rows
    ]
