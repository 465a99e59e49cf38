"""What a session remembers and what it needs to go on after a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coord import TaskCoordinator
from coord.core.errors import NotFound
from coord.core.tasks.claims import LOSS_KEEP_MS
from coord.sdk.client import session_memory
from coord.sdk.client.client import Client
from tests.support.client_harness import ClientHarness, open_client_harness
from tests.support.store_harness import START_MS

MINUTE_MS = 60_000
TRACKS = {"A": 8, "B": 7, "C": 8, "D": 6}
NAMED = {"B-001": "schema-design", "B-002": "entity-models", "B-003": "repositories"}


@pytest.fixture
def harness(repository: Path, tmp_path: Path) -> Iterator[ClientHarness]:
    """An office over the store that only this process has."""
    with open_client_harness("memory:", repository, tmp_path / "state") as clients:
        yield clients


def take(client: Client, task_id: str, lease_s: float = 300) -> int:
    claim = client.claim_task(task_id, lease_s=lease_s).claim
    assert claim is not None
    return claim.generation.generation


def load_tracks(client: Client) -> None:
    for track, many in TRACKS.items():
        for number in range(1, many + 1):
            start = f"{track}-{number:03d}"
            client.add_task(f"{start}-{NAMED.get(start, 'step')}")
        client.set_track(track, 3)


def test_scn_6_the_memory_of_agent_beta(clients: ClientHarness) -> None:
    """Its log, claims, what it finished, and how far the tracks are.

    SCN-6, SES-27, SES-28, SES-29, SES-30, SES-31, SES-32, SES-33, TID-22, AUD-23, AUD-26, CLM-14,
    AMB-26.
    """
    beta = clients.client("sess-alice-20260104-001", agent="agent-beta", project="ecommerce-rebuild")
    clients.now = START_MS - 20 * MINUTE_MS
    load_tracks(beta)
    alpha = clients.client("sess-bob", agent="agent-alpha", project="ecommerce-rebuild")
    for number in (1, 2, 3):
        take(alpha, f"A-00{number}-step", 7200)
    beta.submit_task("B-001-schema-design", take(beta, "B-001-schema-design"))
    clients.now = START_MS
    take(beta, "B-002-entity-models", 1200)
    clients.now = START_MS + 15 * MINUTE_MS
    reference = beta.submit_task("B-002-entity-models", 1, {"files": 3}).work_product_ref
    clients.now += MINUTE_MS
    take(beta, "B-003-repositories")

    found = beta.session_memory()
    assert (found.session_id, found.tenant_id) == ("sess-alice-20260104-001", "local")
    assert (found.project_id, bool(found.user_id)) == ("ecommerce-rebuild", True)
    assert (found.created_ms, found.last_activity_ms) == (START_MS - 20 * MINUTE_MS, clients.now)
    told = [(each.event, each.task_id, each.track, each.sequence, each.outcome) for each in found.task_log]
    assert told == [
        ("CLAIM_ACQUIRED", "B-001-schema-design", "B", 1, None),
        ("RESULT_SUBMITTED", "B-001-schema-design", "B", 1, "ACCEPTED"),
        ("CLAIM_ACQUIRED", "B-002-entity-models", "B", 2, None),
        ("RESULT_SUBMITTED", "B-002-entity-models", "B", 2, "ACCEPTED"),
        ("CLAIM_ACQUIRED", "B-003-repositories", "B", 3, None),
    ]
    submitted = found.task_log[3]
    assert (submitted.timestamp_ms, submitted.generation) == (START_MS + 15 * MINUTE_MS, 1)
    assert (submitted.agent_id, submitted.work_product_ref) == ("agent-beta", reference)
    (claim,) = found.active_claims
    assert (claim.task_id, claim.generation) == ("B-003-repositories", 1)
    assert claim.expires_ms == START_MS + 21 * MINUTE_MS
    assert found.completed_tasks == ["B-001-schema-design", "B-002-entity-models"]
    assert found.track_assignments == ["B"]
    assert found.track_progress == {
        "A": {"completed": 0, "in_progress": 3, "pending": 5},
        "B": {"completed": 2, "in_progress": 1, "pending": 4},
        "C": {"completed": 0, "in_progress": 0, "pending": 8},
        "D": {"completed": 0, "in_progress": 0, "pending": 6},
    }
    assert alpha.session_memory("sess-alice").completed_tasks == found.completed_tasks, "others may look"


def test_a_resumed_agent_learns_what_to_go_on_with(harness: ClientHarness) -> None:
    """SES-33: its claims with the time left, what it lost and to whom, locks, messages, the next step."""
    ann, bob = (harness.client(name, project="shop") for name in ("ann", "bob"))
    for name, files in (("kept", ["a.py"]), ("taken", []), ("open", []), ("reset", [])):
        ann.add_task(name, files=files)
    take(ann, "kept", 600)
    take(ann, "open", 60)
    take(ann, "taken", 60)
    take(ann, "reset", 600)
    harness.now += MINUTE_MS
    assert take(bob, "taken", 600) == 2
    bob.reset_task("reset", reason="start over")
    bob.send("ann", "status", "I took it")

    again = harness.client("ann", project="shop")
    resume = again.session_memory().resume
    assert [(each.task_id, each.generation, each.expires_in_s) for each in resume.claims] == [
        ("kept", 1, 540)
    ]
    assert [lock.resource for lock in resume.locks] == ["file:a.py"]
    assert resume.unread_messages == 1
    lost = {each.task_id: each for each in resume.lost}
    assert {name: (each.reason, each.holder) for name, each in lost.items()} == {
        "taken": ("EXPIRED", "bob"),
        "open": ("EXPIRED", ""),
        "reset": ("RESET", ""),
    }
    assert (lost["open"].still_open, lost["taken"].still_open) == (True, False)
    assert lost["reset"].note == "start over"
    assert resume.next == [
        "the lease of open expired, but nobody took it: coord task submit open 1",
        "reset is open again: coord task claim reset",
        "drop taken: bob has it, generation 2",
        "continue kept, 540 s left: coord task renew kept 1",
        "read 1 message: coord recv",
    ]


def test_what_came_back_is_not_lost(harness: ClientHarness) -> None:
    """A claim whose late submission was accepted, or that the session has again, is lost no more."""
    ann = harness.client("ann", project="shop")
    for name in ("late", "again"):
        take(ann, name, 60)
    harness.now += MINUTE_MS
    assert {each.task_id for each in ann.session_memory().lost_claims} == {"late", "again"}
    assert ann.submit_task("late", 1).accepted
    assert take(ann, "again") == 2
    found = ann.session_memory()
    assert found.lost_claims == []
    assert found.completed_tasks == ["late"]
    assert [each.event for each in found.task_log].count("CLAIM_LOST") == 2, "the log keeps it"


def test_lost_claims_are_forgotten_after_a_month(harness: ClientHarness) -> None:
    """What a session remembers is bounded: the record of a lost claim leaves after its time."""
    ann = harness.client("ann", project="shop")
    take(ann, "t", 60)
    harness.now += MINUTE_MS
    ann.sweep()
    store = harness.database.log("local")
    assert [record.key for record in store.scan("lost/", by="key", limit=9)] == ["lost/ann/shop/t"]
    harness.now += LOSS_KEEP_MS
    ann.sweep()
    assert store.scan("lost/", by="key", limit=9) == []


def test_memory_goes_on_through_a_replacement(harness: ClientHarness) -> None:
    """DESIGN §5: the session that takes the place of another goes on with its memory as with its claims."""
    old = harness.client("old", project="shop")
    old.register()
    take(old, "first")
    old.submit_task("first", 1)
    take(old, "second")
    new = harness.client("new", project="shop")
    new.register(replaces="old", force=True, reason="its terminal is gone")
    found = new.session_memory()
    assert found.completed_tasks == ["first"]
    assert [claim.task_id for claim in found.active_claims] == ["second"]
    assert [entry.task_id for entry in found.task_log] == ["first", "first", "second"]


def test_the_log_is_read_no_further_than_a_measure(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounded work: of a long log the end is read, and the answer says from when on."""
    monkeypatch.setattr(session_memory, "ENTRIES_MAX", 500)
    ann, bob = (harness.client(name, project="shop") for name in ("ann", "bob"))
    take(ann, "early")
    ann.submit_task("early", 1)
    take(ann, "kept", 100_000)
    for number in range(500):
        harness.now += 1000
        bob.update(phase=f"step {number}")
    ann.renew_task("kept", 1)
    ann.renew_task("kept", 1)
    found = ann.session_memory()
    assert found.log_since_ms > START_MS
    assert [each.event for each in found.task_log] == ["LEASE_RENEWED"]
    assert [each.task_id for each in found.active_claims] == ["kept"], "what stands is never cut"


def test_the_facade_remembers_sessions_that_never_registered() -> None:
    """SES-34: by the coordinator, too; rejected work is in the log with its reason."""
    now = START_MS
    with TaskCoordinator.open("memory:", clock=lambda: now) as tasks:
        tasks.claim_task("acme", "shop", "B-001-x", "ada", "s1", 60)
        now += MINUTE_MS
        tasks.claim_task("acme", "shop", "B-001-x", "bea", "s2", 60)
        assert not tasks.submit_result("acme", "shop", "B-001-x", "s1", 1, {}).accepted
        found = tasks.get_session_memory("acme", "shop", "s1")
        assert [(each.event, each.outcome) for each in found.task_log] == [
            ("CLAIM_ACQUIRED", None),
            ("CLAIM_LOST", None),
            ("RESULT_SUBMITTED", "REJECTED"),
        ]
        assert found.task_log[-1].details["reason"] == "STALE_GENERATION"
        assert [each.holder for each in found.lost_claims] == ["s2"]
        with pytest.raises(NotFound):
            tasks.get_session_memory("acme", "shop", "nobody")
