"""What callers get back: moments in UTC, derived ids, tracks of tasks, generations that count as numbers."""

import uuid
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from coord.core.events import SEED_NAMES
from coord.core.tasks import types
from coord.core.tasks.schema import TaskEvent
from tests.support.rule_harness import LEASE, T0, RuleHarness


def test_moments_are_aware_and_exact() -> None:
    """CLM-70: every moment is UTC and exact to the millisecond."""
    harness = RuleHarness()
    claim = harness.claim(now=T0 + 123).reply.claim
    assert claim.generation.claimed_at == datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
    assert claim.expires_at - claim.generation.claimed_at == timedelta(milliseconds=LEASE)
    assert harness.renew(now=T0 + 500).reply.new_expiry == types.utc(T0 + 500 + LEASE)
    assert harness.renew("x").reply.new_expiry is None
    harness.submit(now=T0 + 777)
    (entry,) = harness.history()
    result = harness.state().result
    assert (entry.acquired_at, entry.released_at, result.submitted_at) == (
        types.utc(T0 + 123),
        types.utc(T0 + 777),
        types.utc(T0 + 777),
    )
    assert all(
        moment.utcoffset() == timedelta(0)
        for moment in (claim.expires_at, entry.acquired_at, result.submitted_at)
    )


def test_ids_are_uuids_that_follow_from_what_they_name() -> None:
    """CLM-29, CLM-31, CLM-32: ids are valid UUIDs, stable, and different for whatever differs."""
    seen: set[str] = set()
    for tenant in ("acme", "other"):
        for task in ("t", "t2"):
            harness = RuleHarness(tenant)
            claim = harness.claim(task=task).reply.claim
            assert claim.id == harness.state(task).claim.id, "stable"
            harness.submit(task=task)
            ids = {claim.id, harness.history(task)[0].id, harness.state(task).result.id}
            assert len(ids) == 3, "a claim is not its history entry, nor its result"
            seen |= ids
    assert len(seen) == 12
    for value in seen:
        parsed = uuid.UUID(value)
        assert (str(parsed), parsed.version, parsed.variant) == (value, 8, uuid.RFC_4122)


def test_the_next_generation_has_another_id() -> None:
    """CLM-29: a claim's id changes with its generation."""
    harness = RuleHarness()
    first = harness.claim().reply.claim.id
    harness.release()
    assert harness.claim().reply.claim.id != first


def test_a_known_id_never_changes() -> None:
    """CLM-29: an id written down somewhere must name the same thing next year."""
    assert types.derived_uuid("claim", "acme", "p", "t", 1) == "8a538aaa-cdd5-8cc9-a459-8001f0511f4e"


@pytest.mark.parametrize(
    ("task", "track", "sequence"),
    [("B-003-repositories", "B", 3), ("AB-120-x::2", "AB", 120), ("task-101", None, None)],
)
def test_track_and_sequence(task: str, track: str | None, sequence: int | None) -> None:
    """Whatever belongs to a task knows its track and sequence, if its id has them.

    CLM-29, CLM-31, CLM-32, TID-11.
    """
    harness = RuleHarness()
    claim = harness.claim(task=task).reply.claim
    harness.submit(task=task)
    for thing in (claim, harness.state(task), harness.state(task).result, *harness.history(task)):
        assert (thing.track, thing.sequence) == (track, sequence)


def test_a_generation_counts_as_its_number() -> None:
    """CLM-28: what a claim carries can be handed back as it is, and compared with numbers."""
    generation = RuleHarness().claim().reply.claim.generation
    assert (generation.task_id, generation.generation, generation.session_id) == ("t", 1, "s")
    assert generation.lease_duration == LEASE / 1000
    assert generation == 1
    assert generation != 2
    assert int(generation) == 1
    assert [0, 10][generation] == 10
    assert {generation: "x"}[1] == "x"
    assert generation == msgspec.structs.replace(generation)
    assert generation != msgspec.structs.replace(generation, session_id="x")


def test_claim_states_are_the_documented_ones() -> None:
    """CLM-30, AMB-11: the four of the list and the two that only the diagram has."""
    assert {state.value for state in types.ClaimState} == {
        "ACTIVE",
        "EXPIRED",
        "RELEASED",
        "SUPERSEDED",
        "ERROR",
        "ARCHIVED",
    }


def test_release_reasons_are_the_documented_ones() -> None:
    """CLM-31, AMB-12: the documented reasons, and those that were missing."""
    assert {reason.value for reason in types.ReleaseReason} == {
        "COMPLETED",
        "EXPIRED",
        "SUPERSEDED",
        "ERROR",
        "VOLUNTARY",
        "RESET",
        "PREEMPTED",
    }


def test_replies_come_back_from_json() -> None:
    """DESIGN §4: a reply is kept as JSON for a command id, and is equal when it is read again."""
    harness = RuleHarness()
    replies = [
        harness.claim().reply,
        harness.claim("x").reply,
        harness.renew().reply,
        harness.submit().reply,
        harness.release().reply,
        harness.reset().reply,
        harness.state(),
        *harness.history(),
    ]
    for reply in replies:
        assert msgspec.json.decode(msgspec.json.encode(reply), type=type(reply)) == reply


def test_every_event_of_a_claim_has_its_documented_name() -> None:
    """AUD-23, CFL-23: each event that the second document names has its name in one table."""
    tags = {kind.__struct_config__.tag for kind in TaskEvent.__subclasses__()}
    assert tags - {"task.refused"} <= SEED_NAMES.keys(), "the documents name no event for other refusals"
    assert SEED_NAMES["task.claimed"] == "CLAIM_ACQUIRED"
    assert SEED_NAMES["task.result_rejected"] == "RESULT_REJECTED"
