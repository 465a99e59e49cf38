"""`ClaimRepository`: claims as records with conditional updates, on top of `TaskCoordinator`.

An atomic operation is one commit. It happens completely if the task is in the expected state, or not at all.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Self

import msgspec

from coord.core.errors import Invalid, NotFound
from coord.core.ids import short_repr
from coord.core.tasks import types
from coord.sdk.coordinator import GENERATION_MAX, TaskCoordinator, claim_command, template_of

STATES = ("NO_CLAIM", "EXPIRED")


class AtomicResult(msgspec.Struct, frozen=True):
    """Whether an operation happened, the reason, and its full reply."""

    success: bool
    reason: str
    reply: types.ClaimResult | types.RenewalResult | types.ReleaseResult | types.SubmissionResult


class ClaimUpdate(NamedTuple):
    """The new state of a claim: ACTIVE renews it, RELEASED releases it, ERROR releases it as failed."""

    session_id: str
    state: str = "ACTIVE"
    note: str = ""


class Submission(NamedTuple):
    """A result and the session that submits it."""

    session_id: str
    result_data: Mapping[str, Any]


class ClaimRepository:
    """The operations of a claim store, with the names of its specification.

    >>> repository, key = ClaimRepository.open("memory:"), types.ClaimKey("local", "shop", "A-001-login")
    >>> template = types.ClaimTemplate("agent-a", "session-1")
    >>> repository.atomic_claim_or_fail(key, template, "NO_CLAIM").success
    True
    >>> repository.atomic_submit_result(key, Submission("session-1", {}), 1).reason
    'ACCEPTED'
    """

    def __init__(self, coordinator: TaskCoordinator) -> None:
        self.coordinator = coordinator

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], int] | None = None) -> "ClaimRepository":
        """Open a store; `clock` gives epoch milliseconds in place of the store's clock."""
        return cls(TaskCoordinator.open(url, clock=clock))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.coordinator.close()

    def atomic_claim_or_fail(
        self, key: types.ClaimKey, new_claim: types.ClaimTemplate, expected_state: str | int
    ) -> AtomicResult:
        """Claim a task if its state is the expected one: `NO_CLAIM`, `EXPIRED`, or a generation."""
        given = type(expected_state) is int and 0 <= expected_state < GENERATION_MAX
        if not given and expected_state not in STATES:
            raise Invalid(
                f"{short_repr(expected_state)} is no state of a task",
                hint="NO_CLAIM, EXPIRED, or a generation as a number",
            )
        command = claim_command(_key(key), *template_of(new_claim), {}, expects=str(expected_state))
        reply = self.coordinator.engine(command.tenant).call(command)
        return AtomicResult(reply.success, reply.reason.value, reply)

    def atomic_update_if_generation_matches(
        self, key: types.ClaimKey, expected_generation: int, update: ClaimUpdate
    ) -> AtomicResult:
        """Renew or release a claim if its generation and session match."""
        session, state, note = ClaimUpdate(*update)
        if state == "ACTIVE":
            renewed = self.coordinator.renew_lease(*_key(key), session, expected_generation)
            return AtomicResult(renewed.success, renewed.reason.value, renewed)
        if state not in ("RELEASED", "ERROR"):
            raise Invalid(f"a claim does not become {short_repr(state)}", hint="ACTIVE, RELEASED or ERROR")
        why = "ERROR" if state == "ERROR" else note or "VOLUNTARY"
        released = self.coordinator.release_claim(*_key(key), session, expected_generation, why)
        return AtomicResult(released.success, released.reason.value, released)

    def atomic_submit_result(
        self, claim_key: types.ClaimKey, result: Submission, expected_generation: int
    ) -> AtomicResult:
        """Submit a result if the generation is current and the session holds it."""
        session, data = Submission(*result)
        reply = self.coordinator.submit_result(*_key(claim_key), session, expected_generation, data)
        return AtomicResult(reply.accepted, reply.reason.value, reply)

    def get_current_claim(self, key: types.ClaimKey) -> types.TaskClaim | None:
        """Return the latest claim of a task, ended or not; None if it has none."""
        return self.coordinator.get_task_state(*_key(key)).claim

    def get_claim_history(self, key: types.ClaimKey) -> list[types.ClaimHistory]:
        """Return every ended generation, oldest first."""
        return self.coordinator.get_claim_history(*_key(key))

    def get_result(self, key: types.ClaimKey) -> types.TaskResult | None:
        """Return the accepted result with all its data; None if there is none."""
        try:
            return self.coordinator.get_result(*_key(key))
        except NotFound:
            return None

    def list_claims_by_session(self, tenant_id: str, session_id: str) -> list[types.TaskClaim]:
        """Return the claims that a session holds now."""
        return self.coordinator.get_active_claims_for_session(tenant_id, session_id)

    def list_expired_claims(
        self, tenant_id: str, before: datetime | int | None = None
    ) -> list[types.TaskClaim]:
        """Return claims that expired before a time (default: now) and were not taken over."""
        return self.coordinator.list_expired_claims(tenant_id, before)

    def batch_claim(
        self, keys: Iterable[types.ClaimKey], claim_template: types.ClaimTemplate
    ) -> dict[types.ClaimKey, types.ClaimResult]:
        """Claim many tasks; each one is granted or denied separately."""
        return self.coordinator.batch_claim(keys, claim_template)

    def batch_get_states(self, keys: Iterable[types.ClaimKey]) -> dict[types.ClaimKey, types.TaskState]:
        """Return the states of many tasks."""
        return self.coordinator.batch_get_states(keys)


def _key(key: object) -> types.ClaimKey:
    if isinstance(key, tuple) and len(key) == 3:
        return types.ClaimKey(*key)
    raise Invalid(
        f"{short_repr(key)} does not name a task", hint="use ClaimKey(tenant_id, project_id, task_id)"
    )
