"""Names, arguments, result fields and reasons exactly as the second document gives them."""

import inspect
from typing import Any

import pytest

import coord
from coord import ClaimKey, ClaimTemplate, TaskCoordinator
from coord.core.tasks import types

TASK = ["tenant_id", "project_id", "task_id"]
DOCUMENTED: dict[str, list[str | tuple[str, Any]]] = {
    # the second founding document, §5.1 and §5.2
    "claim_task": [*TASK, "agent_id", "session_id", ("lease_duration_seconds", 300)],
    "renew_lease": [*TASK, "session_id", "expected_generation"],
    "release_claim": [*TASK, "session_id", "expected_generation", ("reason", "VOLUNTARY")],
    "submit_result": [*TASK, "session_id", "generation", "result_data"],
    "get_task_state": [*TASK],
    "get_claim_history": [*TASK],
    "get_active_claims_for_session": ["tenant_id", "session_id"],
    "batch_claim": ["keys", "claim_template"],
    "batch_get_states": ["keys"],
    "list_expired_claims": ["tenant_id", ("before", None)],
    # ours: CLM-58, AMB-13, TEN-14
    "get_result": [*TASK],
    "reset_task": [*TASK, ("reason", "")],
    "force_claim": [*TASK, "agent_id", "session_id", ("lease_duration_seconds", 300)],
    "set_limits": ["tenant_id"],
    "get_limits": ["tenant_id"],
    # SES-34
    "get_session_memory": ["tenant_id", "project_id", "session_id"],
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_arguments(name: str) -> None:
    """The documented arguments, in order, by position or by name, with their defaults.

    CLM-47, CLM-49, CLM-51, CLM-52, CLM-54, CLM-55, CLM-56, CLM-58.
    """
    parameters = list(inspect.signature(getattr(TaskCoordinator, name)).parameters.values())[1:]
    documented = [
        item if isinstance(item, tuple) else (item, inspect.Parameter.empty) for item in DOCUMENTED[name]
    ]
    positional = [item for item in parameters if item.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert [(item.name, item.default) for item in positional] == documented
    rest = [item for item in parameters if item not in positional]
    added = {"metadata", "command_id", "reason", "profile", "limits", "by"}
    assert {item.name for item in rest} <= added
    by_name_only = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
    assert {item.kind for item in rest} <= by_name_only, "what we add never shifts what is documented"


def test_open() -> None:
    """The facade opens a url, and takes a clock, the urls of tenants and a time by name."""
    parameters = inspect.signature(TaskCoordinator.open).parameters
    assert list(parameters) == ["url", "clock", "tenants", "timeout"]
    assert parameters["clock"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["clock"].default is None


def test_a_forced_claim_has_to_say_why() -> None:
    """AMB-13: the reason of a forced claim has no default."""
    reason = inspect.signature(TaskCoordinator.force_claim).parameters["reason"]
    assert (reason.kind, reason.default) == (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty)


def test_all_documented_operations_are_there() -> None:
    """The facade has these operations and no other, besides opening, closing and the engine behind it.

    DOC-1.
    """
    public = {
        name
        for name, _ in inspect.getmembers(TaskCoordinator, inspect.isfunction)
        if not name.startswith("_")
    }
    assert public == DOCUMENTED.keys() | {"close", "engine"}


OF_TASK = "id tenant_id project_id task_id track sequence "
FIELDS: dict[type, str] = {
    # CLM-28, CLM-29, CLM-31, CLM-32, CLM-48, CLM-50, CLM-53
    types.TaskGeneration: "task_id generation session_id claimed_at lease_duration",
    types.TaskClaim: OF_TASK + "agent_id generation state work_product_ref metadata",
    types.ClaimHistory: OF_TASK + "generation session_id agent_id acquired_at released_at release_reason"
    " result_accepted work_product_ref",
    types.TaskResult: OF_TASK + "generation session_id agent_id work_product_ref result_data submitted_at"
    " accepted rejection_reason",
    types.ClaimResult: "success claim reason current_holder",
    types.RenewalResult: "success new_expiry reason",
    types.ReleaseResult: "success reason",
    types.SubmissionResult: "accepted reason current_generation work_lost",
    types.TaskState: "tenant_id project_id task_id state generation claim result",
    ClaimKey: "tenant_id project_id task_id",
    ClaimTemplate: "agent_id session_id lease_duration_seconds",
}


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_result_fields(kind: type) -> None:
    """CLM-28, CLM-29, CLM-31, CLM-32, CLM-48, CLM-50, CLM-53: every documented field can be read."""
    assert set(FIELDS[kind].split()) <= set(dir(kind))


REASONS = {
    types.ClaimReason: "GRANTED DENIED_ACTIVE_CLAIM DENIED_COMPLETED",
    types.RenewalReason: "RENEWED GENERATION_MISMATCH SESSION_MISMATCH NO_CLAIM ALREADY_EXPIRED",
    types.SubmissionReason: "ACCEPTED STALE_GENERATION FUTURE_GENERATION SESSION_MISMATCH NO_CLAIM"
    " TASK_ALREADY_COMPLETED",
}


@pytest.mark.parametrize("kind", REASONS, ids=lambda kind: kind.__name__)
def test_reasons(kind: Any) -> None:
    """CLM-48, CLM-50, CLM-53, AMB-20: the documented reasons, and besides only those of our own."""
    ours = {reason.value for reason in kind} - set(REASONS[kind].split())
    assert set(REASONS[kind].split()) <= {reason.value for reason in kind}
    known = {"DENIED_NOT_READY", "DENIED_LOCKED", "DENIED_UNEXPECTED", "DATA_MISSING", "LOCK_LOST"}
    assert all(reason.startswith("DENIED_LIMIT_") for reason in ours - known)


def test_public_names() -> None:
    """What `coord` offers can be imported from it, and is listed."""
    assert set(coord.__all__) == set(dir(coord))
    for name in coord.__all__:
        assert getattr(coord, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        coord.no_such_name  # noqa: B018 - reading it is the test
