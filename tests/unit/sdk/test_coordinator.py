"""The facade on every store: what callers get, what survives, what is the same everywhere."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coord import ClaimKey, ClaimTemplate, TaskCoordinator
from coord.core.errors import NotFound
from coord.core.tasks.types import ClaimState, TaskStatus
from coord.stores.database import Database
from tests.support.hand_clock import HandClock

WHO = ("agent-a", "session-1")


def test_by_position_and_by_name(coordinator: TaskCoordinator) -> None:
    """Every documented call works with its arguments by position and by name.

    CLM-47, CLM-49, CLM-51, CLM-52.
    """
    task: dict[str, Any] = {"tenant_id": "acme", "project_id": "shop", "task_id": "t1"}
    claim = coordinator.claim_task(
        **task, agent_id="agent-a", session_id="session-1", lease_duration_seconds=30
    )
    assert claim.success
    assert coordinator.renew_lease(**task, session_id="session-1", expected_generation=1).success
    assert coordinator.release_claim(
        **task, session_id="session-1", expected_generation=1, reason="VOLUNTARY"
    ).success
    assert coordinator.claim_task("acme", "shop", "t1", "agent-a", "session-1", 30).success
    assert coordinator.renew_lease("acme", "shop", "t1", "session-1", 2).success
    assert coordinator.submit_result("acme", "shop", "t1", "session-1", 2, {"ok": True}).accepted
    assert coordinator.get_task_state("acme", "shop", "t1") == coordinator.get_task_state(**task)
    assert coordinator.get_claim_history("acme", "shop", "t1") == coordinator.get_claim_history(**task)
    assert coordinator.get_active_claims_for_session(tenant_id="acme", session_id="session-1") == []
    assert coordinator.list_expired_claims(tenant_id="acme", before=datetime(2030, 1, 1, tzinfo=UTC)) == []
    assert coordinator.reset_task(**task, reason="again").success


def test_a_claim_tells_everything(coordinator: TaskCoordinator, clock: HandClock) -> None:
    """CLM-28, CLM-29: who, what, under which generation, until when, with the metadata that was given."""
    metadata = {"user_id": "user-alice", "nested": {"list": [1, 2.5, None]}}
    reply = coordinator.claim_task("acme", "shop", "B-003-repositories", *WHO, 90, metadata=metadata)
    claim = reply.claim
    assert claim is not None
    assert (claim.tenant_id, claim.project_id, claim.task_id) == ("acme", "shop", "B-003-repositories")
    assert (claim.track, claim.sequence, claim.agent_id, claim.session_id) == ("B", 3, "agent-a", "session-1")
    assert (claim.generation.generation, claim.generation.session_id) == (1, "session-1")
    assert (claim.generation.lease_duration, claim.state) == (90, ClaimState.ACTIVE)
    assert claim.generation.claimed_at == datetime.fromtimestamp(clock.ms / 1000, UTC)
    assert claim.expires_at == claim.generation.claimed_at + timedelta(seconds=90)
    assert (claim.metadata, claim.work_product_ref) == (metadata, None)
    assert str(uuid.UUID(claim.id)) == claim.id
    assert coordinator.get_task_state("acme", "shop", "B-003-repositories").claim == claim
    assert coordinator.get_active_claims_for_session("acme", "session-1") == [claim]


def test_a_generation_is_handed_back_as_it_came(coordinator: TaskCoordinator) -> None:
    """CLM-18: the claim's own generation can be passed to renew, release and submit."""
    claim = coordinator.claim_task("local", "shop", "t1", *WHO).claim
    assert claim is not None
    assert coordinator.renew_lease("local", "shop", "t1", "session-1", claim.generation).success
    assert coordinator.submit_result("local", "shop", "t1", "session-1", claim.generation, {}).accepted


def test_a_task_never_added_can_be_claimed(coordinator: TaskCoordinator) -> None:
    """001 §4: the documents claim tasks nobody added; asking about one changes nothing."""
    state = coordinator.get_task_state("acme", "shop", "never-added")
    assert (state.state, state.generation, state.claim) == (TaskStatus.READY, 0, None)
    assert coordinator.database.log("acme").tail(0, 10) == []
    reply = coordinator.claim_task("acme", "shop", "never-added", *WHO)
    assert reply.claim is not None
    assert reply.claim.generation == 1


def test_results_are_kept_exactly(coordinator: TaskCoordinator) -> None:
    """CLM-32, TID-18, TID-19: the data as it was given, under a reference with six hex digits."""
    data = {
        "text": "Zeile 1\nZeile 2 – ü 漢 \u2028 😀",
        "n": [1, -2.5, 2**63, True, None],
        "deep": {"a": {"b": []}},
    }
    coordinator.claim_task("acme", "shop", "A-001-core-framework", *WHO)
    reply = coordinator.submit_result("acme", "shop", "A-001-core-framework", "session-1", 1, data)
    prefix, _, digits = str(reply.work_product_ref).rpartition("-")
    assert (prefix, len(digits)) == ("wp-A-001-core-framework-gen1", 6)
    assert int(digits, 16) >= 0
    state = coordinator.get_task_state("acme", "shop", "A-001-core-framework")
    assert state.result is not None
    assert (state.result.result_data, state.result.work_product_ref) == (data, reply.work_product_ref)


def test_a_large_result_is_kept(coordinator: TaskCoordinator) -> None:
    """TEN-12: a quarter of a megabyte is no trouble on any store."""
    data = {"text": "x" * 250_000}
    coordinator.claim_task("acme", "shop", "t1", *WHO)
    assert coordinator.submit_result("acme", "shop", "t1", "session-1", 1, data).accepted
    state = coordinator.get_task_state("acme", "shop", "t1")
    assert state.result is not None
    assert (state.result.result_data, state.result.size_bytes) == (data, 250_011)


@pytest.mark.parametrize("limit", [100, 300_000])
def test_a_result_too_large_changes_nothing(coordinator: TaskCoordinator, limit: int) -> None:
    """AMB-20: over the tenant's limit, be that above what a record holds or below, it is refused."""
    coordinator.set_limits("acme", max_result_size_bytes=limit)
    coordinator.claim_task("acme", "shop", "t1", *WHO)
    before = coordinator.get_task_state("acme", "shop", "t1")
    reply = coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {"text": "x" * limit})
    assert (reply.accepted, reply.reason, reply.work_lost) == (False, "DENIED_LIMIT_RESULT_SIZE", False)
    state = coordinator.get_task_state("acme", "shop", "t1")
    (rejected,) = state.rejected
    assert rejected.rejection_reason == "DENIED_LIMIT_RESULT_SIZE"
    assert (state.claim, state.result) == (before.claim, None)
    assert coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {"text": "short"}).accepted


def test_release_reasons(coordinator: TaskCoordinator) -> None:
    """CLM-51, AMB-12: known reasons end a claim as such; any other is a remark on a voluntary release."""
    reasons = ["VOLUNTARY", "ERROR", "PREEMPTED", "cannot reproduce it", "COMPLETED", ""]
    for number, reason in enumerate(reasons, 1):
        coordinator.claim_task("local", "shop", "t1", *WHO)
        assert (
            coordinator.release_claim("local", "shop", "t1", "session-1", number, reason).reason == "RELEASED"
        )
    ended = [(e.release_reason, e.note) for e in coordinator.get_claim_history("local", "shop", "t1")]
    assert ended == [
        ("VOLUNTARY", ""),
        ("ERROR", ""),
        ("PREEMPTED", ""),
        ("VOLUNTARY", "cannot reproduce it"),
        ("VOLUNTARY", "COMPLETED"),
        ("VOLUNTARY", ""),
    ]
    assert {e.result_accepted for e in coordinator.get_claim_history("local", "shop", "t1")} == {False}


def test_force_claim(coordinator: TaskCoordinator) -> None:
    """AMB-13: force takes an active claim, and the one who lost it is refused everything from then on."""
    coordinator.claim_task("acme", "shop", "t1", *WHO)
    taken = coordinator.force_claim("acme", "shop", "t1", "agent-b", "session-2", 60, reason="it hangs")
    assert taken.claim is not None
    assert taken.claim.generation == 2
    assert coordinator.renew_lease("acme", "shop", "t1", "session-1", 1).reason == "GENERATION_MISMATCH"
    lost = coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {})
    assert (lost.reason, lost.work_lost, lost.current_generation) == ("STALE_GENERATION", True, 2)
    (entry,) = coordinator.get_claim_history("acme", "shop", "t1")
    assert (entry.release_reason, entry.note) == ("SUPERSEDED", "it hangs")


def test_expired_claims_before_and_after_the_sweep(
    coordinator: TaskCoordinator, database: Database[Any], clock: HandClock
) -> None:
    """CLM-25, SCH-10: listed from the deadline on, swept or not, until somebody takes the task."""
    granted = [coordinator.claim_task("acme", "shop", f"t{n}", *WHO, 30 + n).claim for n in range(3)]
    clock.pass_seconds(31)
    unswept = coordinator.list_expired_claims("acme")
    assert [claim.task_id for claim in unswept] == ["t0", "t1"]
    assert {claim.state for claim in unswept} == {ClaimState.EXPIRED}
    log = database.log("acme")
    head = log.tail(0, 100)[-1].offset
    assert len(log.scan("expired/", by="key", limit=10)) == 0, "asking wrote nothing"
    coordinator.claim_task("acme", "shop", "other", "agent-b", "session-2")
    assert len(log.scan("expired/", by="key", limit=10)) == 2, "the next command swept"
    assert log.tail(head, 100)[0].offset == head + 1
    assert coordinator.list_expired_claims("acme") == unswept
    first, second = granted[0], granted[1]
    assert first is not None
    assert second is not None
    assert coordinator.list_expired_claims("acme", before=first.expires_at) == unswept[:1]
    assert coordinator.list_expired_claims("acme", before=second.expires_ms) == unswept
    assert coordinator.list_expired_claims("acme", before=first.expires_ms - 1) == []
    coordinator.claim_task("acme", "shop", "t0", "agent-b", "session-2")
    coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {})
    assert coordinator.list_expired_claims("acme") == []


def test_any_moment_can_be_asked_for(coordinator: TaskCoordinator, clock: HandClock) -> None:
    """001 §5.2: `before` is exact to the millisecond, and a datetime without a zone is UTC."""
    clock.ms = 1_767_506_400_001
    claims = [
        coordinator.claim_task("local", "shop", f"t{n}", *WHO, 0.001 + n / 1000).claim for n in range(40)
    ]
    clock.pass_seconds(1)
    for number, claim in enumerate(claims, 1):
        assert claim is not None
        for before in (claim.expires_at, claim.expires_at.replace(tzinfo=None), claim.expires_ms):
            assert len(coordinator.list_expired_claims("local", before)) == number


def test_history_and_lineage_survive_a_trim(
    coordinator: TaskCoordinator, database: Database[Any], clock: HandClock
) -> None:
    """DESIGN §3: trimming forgets entries of the log, never history, rejections, results or claims.

    AUD-25.
    """
    for session in ("s1", "s2"):
        coordinator.claim_task("acme", "shop", "t1", "agent", session, 30)
        clock.pass_seconds(30)
    coordinator.claim_task("acme", "shop", "t1", "agent", "s3", 30)
    coordinator.submit_result("acme", "shop", "t1", "s1", 1, {})
    coordinator.submit_result("acme", "shop", "t1", "s3", 3, {"ok": True})
    coordinator.claim_task("acme", "shop", "t2", "agent", "s3", 30)
    ask = [
        lambda: coordinator.get_claim_history("acme", "shop", "t1"),
        lambda: coordinator.get_task_state("acme", "shop", "t1"),
        lambda: coordinator.get_active_claims_for_session("acme", "s3"),
    ]
    before = [question() for question in ask]
    log = database.log("acme")
    log.trim(log.seen.offset + 1)
    with pytest.raises(NotFound):
        log.tail(0, 10)
    assert [question() for question in ask] == before
    assert [entry.generation for entry in coordinator.get_claim_history("acme", "shop", "t1")] == [1, 2, 3]
    assert coordinator.submit_result("acme", "shop", "t2", "s3", 1, {}).accepted


def test_time_is_the_stores_unless_given(shape_url: str) -> None:
    """CLM-70, REC-24, AUD-27, CFL-29: without a clock the store's own time counts, for all who use it."""
    with TaskCoordinator.open(shape_url) as coordinator:
        log = coordinator.database.log("acme")
        before = log.now()
        claim = coordinator.claim_task("acme", "shop", "t1", *WHO).claim
        assert claim is not None
        assert before <= claim.generation.claimed_ms <= log.now()


def test_tenants_and_projects_are_apart(coordinator: TaskCoordinator) -> None:
    """TEN-4, TEN-6: the same task id in another tenant or project has its own generation and history."""
    for _ in range(3):
        coordinator.force_claim("acme", "shop", "t1", *WHO, reason="again")
    for tenant, project in [("acme", "site"), ("other", "shop")]:
        reply = coordinator.claim_task(tenant, project, "t1", *WHO)
        assert reply.claim is not None
        assert reply.claim.generation == 1
        assert coordinator.get_claim_history(tenant, project, "t1") == []
    assert len(coordinator.get_active_claims_for_session("acme", "session-1")) == 2
    assert len(coordinator.get_active_claims_for_session("other", "session-1")) == 1


# Batches.


def test_batch_claim_answers_each_by_itself(coordinator: TaskCoordinator) -> None:
    """CLM-57: some granted, some denied, across tenants and projects, one answer per key."""
    coordinator.claim_task("acme", "shop", "held", "agent-b", "session-2")
    coordinator.claim_task("acme", "shop", "done", "agent-b", "session-2")
    coordinator.submit_result("acme", "shop", "done", "session-2", 1, {})
    keys = [
        ClaimKey("acme", "shop", "free"),
        ClaimKey("acme", "shop", "held"),
        ClaimKey("other", "shop", "held"),
        ClaimKey("acme", "site", "held"),
        ClaimKey("acme", "shop", "done"),
    ]
    replies = coordinator.batch_claim(keys, ClaimTemplate("agent-a", "session-1", 60))
    assert {key: reply.reason for key, reply in replies.items()} == dict(
        zip(keys, ["GRANTED", "DENIED_ACTIVE_CLAIM", "GRANTED", "GRANTED", "DENIED_COMPLETED"], strict=True)
    )
    assert replies["acme", "shop", "held"].current_holder == "session-2"  # type: ignore[index]
    states = coordinator.batch_get_states(keys)
    assert states == {key: coordinator.get_task_state(*key) for key in keys}
    held = coordinator.get_active_claims_for_session("acme", "session-1")
    assert [(c.project_id, c.task_id) for c in held] == [("shop", "free"), ("site", "held")]


def test_batches_take_plain_tuples_and_name_each_task_once(coordinator: TaskCoordinator) -> None:
    """001 §5.2: keys and template may be plain tuples; a key that is named twice is claimed once."""
    keys = [("acme", "shop", "t1"), ("acme", "shop", "t1")]
    replies = coordinator.batch_claim(iter(keys), ("agent-a", "session-1"))
    assert [reply.reason for reply in replies.values()] == ["GRANTED"]
    assert coordinator.batch_claim([], ("agent-a", "session-1")) == {}
    assert coordinator.batch_get_states([]) == {}


def test_a_batch_stops_at_the_limit(coordinator: TaskCoordinator) -> None:
    """TEN-7, CLM-57: a batch is granted up to the limit; the rest is denied with the limit's reason."""
    coordinator.set_limits("acme", max_concurrent_claims=3)
    keys = [ClaimKey("acme", "shop", f"t{n}") for n in range(5)]
    replies = coordinator.batch_claim(keys, ClaimTemplate("agent-a", "session-1"))
    assert [replies[key].reason for key in keys] == ["GRANTED"] * 3 + ["DENIED_LIMIT_CONCURRENT_CLAIMS"] * 2


def test_a_large_batch(coordinator: TaskCoordinator, clock: HandClock) -> None:
    """CLM-57: thousands of keys are claimed, listed and taken over, none lost between commits or pages."""
    many = 1_500
    coordinator.set_limits("acme", max_concurrent_claims=many)
    keys = [ClaimKey("acme", "shop", f"t{n}") for n in range(many)]
    first = coordinator.batch_claim(keys, ClaimTemplate("agent-a", "session-1", 60))
    assert all(first[key].success for key in keys)
    assert len(coordinator.get_active_claims_for_session("acme", "session-1")) == many
    clock.pass_seconds(60)
    assert len(coordinator.list_expired_claims("acme")) == many
    second = coordinator.batch_claim(keys, ClaimTemplate("agent-b", "session-2", 60))
    assert {int(reply.claim.generation) for reply in second.values() if reply.claim} == {2}
    assert coordinator.list_expired_claims("acme") == []
    assert coordinator.get_active_claims_for_session("acme", "session-1") == []
    states = coordinator.batch_get_states(keys)
    assert all(states[key].claim.session_id == "session-2" for key in keys)  # type: ignore[union-attr]
