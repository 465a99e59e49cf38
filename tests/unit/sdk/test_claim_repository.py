"""The claim repository of the second document, on every store."""

import threading

import pytest

from coord import ClaimKey, ClaimRepository, ClaimTemplate, TaskCoordinator
from coord.core.errors import Invalid
from coord.sdk.claim_repository import ClaimUpdate, Submission
from tests.support.hand_clock import HandClock

KEY = ClaimKey("acme", "shop", "A-001-login")
ANN, BOB = ClaimTemplate("ann", "ann-1", 60), ClaimTemplate("bob", "bob-1", 60)


@pytest.fixture
def repository(coordinator: TaskCoordinator) -> ClaimRepository:
    return ClaimRepository(coordinator)


def test_a_claim_is_granted_only_where_the_task_stands_as_expected(
    repository: ClaimRepository, clock: HandClock
) -> None:
    """STO-2, STO-5: NO_CLAIM, EXPIRED, or a generation; otherwise nothing happens, and the reason is told."""

    def claim(template: ClaimTemplate, expected: str | int) -> str:
        return repository.atomic_claim_or_fail(KEY, template, expected).reason

    assert claim(ANN, "EXPIRED") == "DENIED_UNEXPECTED"
    assert claim(ANN, 1) == "DENIED_UNEXPECTED"
    assert repository.get_current_claim(KEY) is None
    assert claim(ANN, 0) == "GRANTED"
    assert claim(BOB, "NO_CLAIM") == "DENIED_ACTIVE_CLAIM"
    assert claim(BOB, 1) == "DENIED_ACTIVE_CLAIM"
    clock.pass_seconds(60)
    assert claim(BOB, "NO_CLAIM") == "DENIED_UNEXPECTED"
    assert claim(BOB, 2) == "DENIED_UNEXPECTED"
    assert claim(BOB, "EXPIRED") == "GRANTED"
    clock.pass_seconds(60)
    granted = repository.atomic_claim_or_fail(KEY, ANN, 2)
    assert (granted.success, granted.reason) == (True, "GRANTED")
    current = repository.get_current_claim(KEY)
    assert current is not None
    assert (int(current.generation), current.session_id) == (3, "ann-1")
    assert [entry.release_reason for entry in repository.get_claim_history(KEY)] == ["EXPIRED", "EXPIRED"]


def test_a_claim_changes_only_under_its_generation(repository: ClaimRepository) -> None:
    """STO-3: renewed, given back or failed by its holder under the current generation, by nobody else."""
    repository.atomic_claim_or_fail(KEY, ANN, "NO_CLAIM")

    def update(generation: int, *given: str) -> str:
        return repository.atomic_update_if_generation_matches(KEY, generation, ClaimUpdate(*given)).reason

    assert update(1, "ann-1") == "RENEWED"
    assert update(2, "ann-1") == "GENERATION_MISMATCH"
    assert update(1, "bob-1", "RELEASED") == "SESSION_MISMATCH"
    assert update(1, "ann-1", "RELEASED", "not mine") == "RELEASED"
    assert update(1, "ann-1") == "NO_CLAIM"
    assert repository.atomic_claim_or_fail(KEY, ANN, "NO_CLAIM").success
    assert update(2, "ann-1", "ERROR") == "RELEASED"
    history = repository.get_claim_history(KEY)
    assert [(entry.release_reason, entry.note) for entry in history] == [
        ("VOLUNTARY", "not mine"),
        ("ERROR", ""),
    ]


def test_a_result_counts_once_under_its_generation(repository: ClaimRepository) -> None:
    """STO-4, STO-6: what was handed in is what is read, whole, also if it is large."""
    repository.atomic_claim_or_fail(KEY, ANN, "NO_CLAIM")
    assert repository.get_result(KEY) is None
    large = {"text": "x" * 300_000}
    assert repository.atomic_submit_result(KEY, Submission("ann-1", large), 2).reason == "FUTURE_GENERATION"
    assert repository.atomic_submit_result(KEY, Submission("bob-1", large), 1).reason == "SESSION_MISMATCH"
    assert repository.atomic_submit_result(KEY, Submission("ann-1", large), 1).success
    again = repository.atomic_submit_result(KEY, Submission("ann-1", {}), 1)
    assert (again.success, again.reason) == (False, "TASK_ALREADY_COMPLETED")
    result = repository.get_result(KEY)
    assert result is not None
    assert result.result_data == large


def test_batches_and_lists(repository: ClaimRepository, clock: HandClock) -> None:
    """STO-6, STO-7, STO-8: per-key results; who holds what; what ran out before a moment."""
    keys = [ClaimKey("acme", "shop", name) for name in ("a", "b", "c")]
    repository.atomic_claim_or_fail(keys[1], BOB, "NO_CLAIM")
    replies = repository.batch_claim(keys, ANN)
    assert [replies[key].reason for key in keys] == ["GRANTED", "DENIED_ACTIVE_CLAIM", "GRANTED"]
    assert [claim.task_id for claim in repository.list_claims_by_session("acme", "ann-1")] == ["a", "c"]
    assert [state.state for state in repository.batch_get_states(keys).values()] == ["in_progress"] * 3
    assert repository.list_expired_claims("acme") == []
    clock.pass_seconds(60)
    assert [claim.task_id for claim in repository.list_expired_claims("acme", clock.ms)] == ["a", "b", "c"]


def test_of_many_that_expect_the_same_one_succeeds(shape_url: str) -> None:
    """STO-5, CLM-60: compare and swap; whatever the others expected is not so any more."""
    with ClaimRepository.open(shape_url) as repository:
        reasons: list[str] = []

        def claim(number: int) -> None:
            template = ClaimTemplate("ann", f"ann-{number}", 60)
            reasons.append(repository.atomic_claim_or_fail(KEY, template, 0).reason)

        threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(reasons) == ["DENIED_ACTIVE_CLAIM"] * 7 + ["GRANTED"]


def test_bad_input_is_told_and_changes_nothing() -> None:
    """ERR: a state, an update or a key that is none is refused, with what would be right."""
    with ClaimRepository.open("memory:") as repository:
        for expected in ("ACTIVE", -1, True, 1.0, "1"):
            with pytest.raises(Invalid, match="no state of a task"):
                repository.atomic_claim_or_fail(KEY, ANN, expected)  # type: ignore[arg-type]
        with pytest.raises(Invalid, match="does not become"):
            repository.atomic_update_if_generation_matches(KEY, 1, ClaimUpdate("ann-1", "DONE"))
        with pytest.raises(Invalid, match="does not name a task"):
            repository.get_current_claim("A-001-login")  # type: ignore[arg-type]
        assert repository.get_claim_history(KEY) == []
