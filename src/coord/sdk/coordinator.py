"""`TaskCoordinator`: claim tasks under a generation clock, with the operation names of its specification."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

import msgspec

from coord.core.commands import Command
from coord.core.errors import Invalid
from coord.core.ids import check_id, short_repr
from coord.core.limits import LEASE_MS_MAX, GetLimits, LimitsInfo
from coord.core.tasks import types
from coord.core.tasks.commands import (
    ClaimTask,
    ClaimTasks,
    GetClaimHistory,
    GetResult,
    GetSessionClaims,
    GetTaskState,
    GetTaskStates,
    ListExpiredClaims,
    ReleaseClaim,
    RenewLease,
    ResetTask,
)
from coord.engine.engine import Engine
from coord.sdk.client import results
from coord.sdk.client.maintenance import limits_command
from coord.sdk.validation import arguments
from coord.sdk.validation.results import to_json
from coord.stores.database import Database
from coord.stores.open import OPEN_TIMEOUT_S, open_store
from coord.stores.urls import is_hub

if TYPE_CHECKING:
    from coord.sdk.client.session_memory import SessionMemory

METADATA_BYTES_MAX = 4096
GENERATION_MAX = 2**53
BATCH_TASKS = 256
EPOCH = datetime.fromtimestamp(0, UTC)
_RELEASE_REASONS = {
    reason.value: reason
    for reason in (types.ReleaseReason.VOLUNTARY, types.ReleaseReason.ERROR, types.ReleaseReason.PREEMPTED)
}


class TaskCoordinator:
    """Claims tasks under a generation clock; safe to use from several threads.

    >>> coordinator = TaskCoordinator.open("memory:")
    >>> claim = coordinator.claim_task("local", "shop", "A-001-login", "agent-a", "session-1").claim
    >>> coordinator.submit_result("local", "shop", "A-001-login", "session-1", claim.generation, {}).accepted
    True
    """

    def __init__(self, database: Database[Any], clock: Callable[[], int] | None = None) -> None:
        self.database = database
        self._clock = clock
        self._engines: dict[str, Engine] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Callable[[], int] | None = None,
        tenants: Mapping[str, str] | None = None,
        timeout: float = OPEN_TIMEOUT_S,
    ) -> "TaskCoordinator":
        """Open a store; `clock` gives epoch milliseconds in place of the store's clock.

        `tenants` are those with separate stores, and their urls. A server that cannot be reached
        is tried again for `timeout` seconds.
        """
        if is_hub(url):
            from coord.sdk.remote.open import open_http

            return cls(open_http(url, os.environ, timeout=timeout), clock)
        return cls(open_store(url, tenants=tenants, timeout=timeout), clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for running commands and close the store."""
        with self._lock:
            engines, self._engines = list(self._engines.values()), {}
        for engine in engines:
            engine.close()
        self.database.close()

    def engine(self, tenant_id: str) -> Engine:
        """Return the tenant's engine, for callers that want futures or `async`."""
        engine = self._engines.get(tenant_id)
        if engine is None:
            check_id("tenant id", tenant_id)
            with self._lock:
                engine = self._engines.setdefault(tenant_id, self._new_engine(tenant_id))
        return engine

    def _new_engine(self, tenant_id: str) -> Engine:
        if not self.database.is_remote:
            return Engine(self.database, tenant_id, clock=self._clock)
        engine: Engine = self.database.engine(tenant_id)  # type: ignore[attr-defined]
        return engine

    # Claims.

    def claim_task(
        self,
        tenant_id: str,
        project_id: str,
        task_id: str,
        agent_id: str,
        session_id: str,
        lease_duration_seconds: float = 300,
        *,
        metadata: Mapping[str, Any] | None = None,
        command_id: str = "",
    ) -> types.ClaimResult:
        """Claim a task for a session; denied while another claim is active, or when the task is done."""
        command = claim_command(
            (tenant_id, project_id, task_id),
            agent_id,
            session_id,
            lease_duration_seconds,
            metadata_of(metadata),
        )
        return self._call(command, command_id)

    def force_claim(
        self,
        tenant_id: str,
        project_id: str,
        task_id: str,
        agent_id: str,
        session_id: str,
        lease_duration_seconds: float = 300,
        *,
        reason: str,
        metadata: Mapping[str, Any] | None = None,
        command_id: str = "",
    ) -> types.ClaimResult:
        """Claim a task even from its holder, who is SUPERSEDED; privileged, and the reason is recorded."""
        if not arguments.one_line("reason", reason):
            raise Invalid("a forced claim requires a reason", hint="say why the holder may lose the task")
        command = claim_command(
            (tenant_id, project_id, task_id),
            agent_id,
            session_id,
            lease_duration_seconds,
            metadata_of(metadata),
            reason=reason,
        )
        return self._call(command, command_id)

    def batch_claim(
        self, keys: Iterable[tuple[str, str, str]], claim_template: types.ClaimTemplate | tuple[Any, ...]
    ) -> dict[types.ClaimKey, types.ClaimResult]:
        """Claim many tasks in few commits; each one is granted or denied separately."""
        template = template_of(claim_template)
        agent, session = check_id("agent id", template.agent_id), check_id("session id", template.session_id)
        lease_ms = _lease_ms(template.lease_duration_seconds)
        return self._call_many(
            keys, lambda tenant, tasks: ClaimTasks(tenant, agent, session, lease_ms, tasks)
        )

    def renew_lease(
        self,
        tenant_id: str,
        project_id: str,
        task_id: str,
        session_id: str,
        expected_generation: int | types.TaskGeneration,
        *,
        command_id: str = "",
    ) -> types.RenewalResult:
        """Renew the lease for its original duration."""
        names = _names(tenant_id, project_id, task_id)
        session, generation = check_id("session id", session_id), generation_number(expected_generation)
        return self._call(RenewLease(*names, session, generation), command_id)

    def release_claim(
        self,
        tenant_id: str,
        project_id: str,
        task_id: str,
        session_id: str,
        expected_generation: int | types.TaskGeneration,
        reason: str = "VOLUNTARY",
        *,
        command_id: str = "",
    ) -> types.ReleaseResult:
        """Release a claim; the reason is VOLUNTARY, ERROR, PREEMPTED, or a remark (then VOLUNTARY)."""
        key = (tenant_id, project_id, task_id)
        return self._call(release_command(key, session_id, expected_generation, reason), command_id)

    # Results.

    def submit_result(
        self,
        tenant_id: str,
        project_id: str,
        task_id: str,
        session_id: str,
        generation: int | types.TaskGeneration,
        result_data: Mapping[str, Any],
        *,
        command_id: str = "",
    ) -> types.SubmissionResult:
        """Submit a result; accepted once, and only from the holder of the current generation."""
        names = _names(tenant_id, project_id, task_id)
        session, number = check_id("session id", session_id), generation_number(generation)
        data = to_json("result_data", result_data)
        return results.submit(self.engine(tenant_id), names, session, number, data, command_id)

    def get_result(self, tenant_id: str, project_id: str, task_id: str) -> types.TaskResult:
        """Return the accepted result of a task with all its data, of any size."""
        names = _names(tenant_id, project_id, task_id)
        result, data = results.whole_result(self.engine(tenant_id), GetResult(*names))
        if data is None:
            return result
        return msgspec.structs.replace(result, result_data=msgspec.json.decode(data))

    def reset_task(
        self, tenant_id: str, project_id: str, task_id: str, reason: str = "", *, command_id: str = ""
    ) -> types.ResetResult:
        """Reopen a task; it keeps its history, and its generation keeps rising. Privileged."""
        names = _names(tenant_id, project_id, task_id)
        return self._call(ResetTask(*names, arguments.one_line("reason", reason)), command_id)

    # Questions.

    def get_task_state(self, tenant_id: str, project_id: str, task_id: str) -> types.TaskState:
        """Return a task's state, claim, accepted result and rejected submissions."""
        return self._call(GetTaskState(*_names(tenant_id, project_id, task_id)))

    def batch_get_states(self, keys: Iterable[tuple[str, str, str]]) -> dict[types.ClaimKey, types.TaskState]:
        """Return the states of many tasks."""
        return self._call_many(keys, GetTaskStates)

    def get_claim_history(self, tenant_id: str, project_id: str, task_id: str) -> list[types.ClaimHistory]:
        """Return every ended generation, oldest first, with its rejected submissions."""
        return self._call(GetClaimHistory(*_names(tenant_id, project_id, task_id)))

    def get_active_claims_for_session(self, tenant_id: str, session_id: str) -> list[types.TaskClaim]:
        """Return the claims that a session holds now."""
        tenant, session = check_id("tenant id", tenant_id), check_id("session id", session_id)
        return self._call(GetSessionClaims(tenant, session))

    def get_session_memory(self, tenant_id: str, project_id: str, session_id: str) -> "SessionMemory":
        """Return what a session did, the progress of tracks, and what it needs to continue."""
        from coord.sdk.client.session_memory import coordinator_memory  # most callers never read it

        tenant, project = check_id("tenant id", tenant_id), check_id("project id", project_id)
        session = check_id("session id", session_id)
        return coordinator_memory(self.engine(tenant), self.database.log(tenant), tenant, session, project)

    def list_expired_claims(
        self, tenant_id: str, before: datetime | int | None = None
    ) -> list[types.TaskClaim]:
        """Return claims that expired before a time (default: now) and were not taken over."""
        return self._call(ListExpiredClaims(check_id("tenant id", tenant_id), _millis(before)))

    # Limits.

    def get_limits(self, tenant_id: str) -> LimitsInfo:
        """Return the limits of a tenant and their current use."""
        return self._call(GetLimits(check_id("tenant id", tenant_id)))

    def set_limits(self, tenant_id: str, *, profile: str = "", by: str = "", **limits: int) -> dict[str, int]:
        """Change limits by profile and by name; return the limits in force. The event records `by`.

        Privileged.
        """
        check_id("tenant id", tenant_id)
        command = limits_command(tenant_id, profile, limits, arguments.one_line("by", by))
        reply: dict[str, int] = self.engine(tenant_id).call(command)
        return reply

    def _call(self, command: Any, command_id: str = "") -> Any:
        if command_id:
            check_id("command id", command_id)
        return self.engine(command.tenant).call(command, command_id=command_id)

    def _call_many(
        self,
        keys: Iterable[tuple[str, str, str]],
        command: Callable[[str, tuple[tuple[str, str], ...]], Command],
    ) -> dict[types.ClaimKey, Any]:
        """Run a command for many tasks in few steps; each task is included once."""
        replies: dict[types.ClaimKey, Any] = {}
        for tenant, tasks in _by_tenant(keys).items():
            parts = [tuple(tasks[at : at + BATCH_TASKS]) for at in range(0, len(tasks), BATCH_TASKS)]
            answers = self.engine(tenant).call_many([command(tenant, part) for part in parts])
            for part, answer in zip(parts, answers, strict=True):
                for (project, task_id), reply in zip(part, answer, strict=True):
                    replies[types.ClaimKey(tenant, project, task_id)] = reply
        return replies


def claim_command(
    key: tuple[str, str, str],
    agent_id: str,
    session_id: str,
    lease_s: float,
    metadata: dict[str, Any],
    reason: str = "",
    expects: str = "",
) -> ClaimTask:
    """Return the command for a claim, after checking its arguments."""
    agent, session = check_id("agent id", agent_id), check_id("session id", session_id)
    lease_ms = _lease_ms(lease_s)
    names, force = _names(*key), bool(reason)
    return ClaimTask(*names, agent, session, lease_ms, metadata, force, reason, expects)


def release_command(
    key: tuple[str, str, str], session_id: str, generation: int | types.TaskGeneration, reason: str
) -> ReleaseClaim:
    """Return the command that releases a claim, after checking its arguments."""
    kind = _RELEASE_REASONS.get(arguments.one_line("reason", reason))
    return ReleaseClaim(
        *_names(*key),
        check_id("session id", session_id),
        generation_number(generation),
        kind or types.ReleaseReason.VOLUNTARY,
        "" if kind else reason,
    )


def _names(tenant_id: str, project_id: str, task_id: str) -> tuple[str, str, str]:
    return check_id("tenant id", tenant_id), check_id("project id", project_id), check_id("task id", task_id)


def _by_tenant(keys: Iterable[tuple[str, str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return distinct tasks by tenant; raise `Invalid` if one name is bad."""
    hint = "use ClaimKey(tenant_id, project_id, task_id)"
    if not isinstance(keys, Iterable):
        raise Invalid(f"{short_repr(keys)} is not a list of tasks", hint=hint)
    by_tenant: dict[str, dict[tuple[str, str], None]] = {}
    checked: set[tuple[str, str]] = set()
    for key in keys:
        if not isinstance(key, tuple) or len(key) != 3:
            raise Invalid(f"{short_repr(key)} does not name a task", hint=hint)
        tenant, project, task_id = key
        if not (isinstance(tenant, str) and isinstance(project, str) and (tenant, project) in checked):
            checked.add((check_id("tenant id", tenant), check_id("project id", project)))
            by_tenant.setdefault(tenant, {})
        by_tenant[tenant][project, check_id("task id", task_id)] = None
    return {tenant: list(tasks) for tenant, tasks in by_tenant.items()}


def template_of(template: types.ClaimTemplate | tuple[Any, ...]) -> types.ClaimTemplate:
    """Return a claim template, after checking its shape."""
    if not isinstance(template, tuple) or not 2 <= len(template) <= 3:
        raise Invalid(
            f"{short_repr(template)} is not a claim template",
            hint="use ClaimTemplate(agent_id, session_id, lease_duration_seconds)",
        )
    return types.ClaimTemplate(*template)


def _lease_ms(seconds: float) -> int:
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not 0 < seconds * 1000 <= LEASE_MS_MAX
    ):
        raise Invalid(
            f"{short_repr(seconds)} is not a lease duration", hint="give seconds, more than 0, at most a year"
        )
    return max(1, round(seconds * 1000))


def generation_number(value: int | types.TaskGeneration) -> int:
    """Return the number of a generation."""
    number = value.generation if isinstance(value, types.TaskGeneration) else value
    if type(number) is not int or not 0 <= number < GENERATION_MAX:
        raise Invalid(
            f"{short_repr(value)} is not a generation", hint="use the one in the claim you were granted"
        )
    return number


def metadata_of(data: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metadata of a claim: a small JSON object."""
    if data is None:
        return {}
    if len(to_json("metadata", data)) > METADATA_BYTES_MAX:
        raise Invalid(
            f"metadata takes more than {METADATA_BYTES_MAX} bytes as JSON",
            hint="store it elsewhere, and name the place here",
        )
    return dict(data)


def _millis(at: datetime | int | None) -> int | None:
    if isinstance(at, datetime):
        aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(milliseconds=1)
    if at is not None and (type(at) is not int or at < 0):
        raise Invalid(
            f"{short_repr(at)} is not a time", hint="use a datetime, or milliseconds since the epoch"
        )
    return at
