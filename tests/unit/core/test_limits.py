"""A tenant's limits: each at, below and above; what counts against them, and what does not."""

import pytest

from coord.core import keys
from coord.core.errors import Invalid, LimitReached
from coord.core.limits import DAY_MS, PROFILES, RATIONALE, RECORD_RESULT_BYTES, Count, SetLimits
from coord.core.tasks.commands import ClaimTasks
from tests.support.rule_harness import LEASE, T0, RuleHarness

LATE = T0 + LEASE

DOCUMENTED = {
    # limit: default, enterprise
    "max_concurrent_claims": (100, 1000),
    "max_lease_duration_seconds": (3600, 7200),
    "min_lease_duration_seconds": (30, 30),
    "max_generations_per_task": (100, 1000),
    "claim_history_retention_days": (90, 365),
    "max_result_size_bytes": (10 * 1024 * 1024, 100 * 1024 * 1024),
    "max_active_sessions": (50, 500),
}


def counts(harness: RuleHarness) -> tuple[int, int]:
    claims, sessions = harness.get("count/claims", Count), harness.get("count/sessions", Count)
    return (claims.n if claims else 0, sessions.n if sessions else 0)


@pytest.mark.parametrize("profile", ["default", "enterprise"])
def test_profiles_are_the_documented_ones(profile: str) -> None:
    """The numbers of both columns; TEN-14: each limit has its rationale.

    TEN-7, TEN-8, TEN-9, TEN-10, TEN-11, TEN-12, TEN-13, TEN-14.
    """
    column = ["default", "enterprise"].index(profile)
    expected = {name: numbers[column] for name, numbers in DOCUMENTED.items()}
    assert RuleHarness("acme").run(SetLimits(profile)).reply == expected
    assert RATIONALE.keys() == DOCUMENTED.keys()
    assert all(RATIONALE.values())


@pytest.mark.parametrize(
    ("lease_ms", "reason"),
    [
        (29_999, "DENIED_LIMIT_LEASE_DURATION"),
        (30_000, "GRANTED"),
        (30_001, "GRANTED"),
        (3_599_999, "GRANTED"),
        (3_600_000, "GRANTED"),
        (3_600_001, "DENIED_LIMIT_LEASE_DURATION"),
    ],
)
def test_lease_duration(lease_ms: int, reason: str) -> None:
    """A lease outside the limits is denied with its own reason, and nothing but that is written.

    TEN-8, TEN-9, AMB-20.
    """
    harness = RuleHarness("acme")
    done = harness.claim(lease_ms=lease_ms)
    assert done.reply.reason == reason
    assert (f"rejected/p/t/00000000/s/claim:{reason}" in done.writes) is (reason != "GRANTED")
    assert (len(done.writes) == 1) is (reason != "GRANTED")
    assert bool(done.reply.detail) is (reason != "GRANTED")
    assert RuleHarness("local").claim(lease_ms=lease_ms).reply.success, (
        "the unlimited tenant has no such limit"
    )


def test_concurrent_claims() -> None:
    """TEN-7: the last claim within the limit is granted, the next is denied; an ended one makes room."""
    harness = RuleHarness("acme")
    harness.set_limits(max_concurrent_claims=2)
    assert [harness.claim("s", task).reply.reason for task in "abc"] == [
        "GRANTED",
        "GRANTED",
        "DENIED_LIMIT_CONCURRENT_CLAIMS",
    ]
    assert harness.claim("s", "c").writes == {}
    assert counts(harness) == (2, 1)
    harness.release("s", 1, "a")
    assert harness.claim("s", "c").reply.success


def test_active_sessions() -> None:
    """TEN-13: a session counts while it holds a claim, however many it holds."""
    harness = RuleHarness("acme")
    harness.set_limits(max_active_sessions=2)
    assert [harness.claim(s, t).reply.reason for s, t in [("s1", "a"), ("s1", "b"), ("s2", "c")]] == [
        "GRANTED"
    ] * 3
    denied = harness.claim("s3", "d")
    assert (denied.reply.reason, denied.event_tags) == ("DENIED_LIMIT_ACTIVE_SESSIONS", ["task.refused"])
    assert harness.claim("s2", "d").reply.success, "one that counts already may claim more"
    harness.submit("s1", 1, "a")
    assert harness.claim("s3", "e").reply.reason == "DENIED_LIMIT_ACTIVE_SESSIONS"
    harness.submit("s1", 1, "b")
    assert harness.claim("s3", "e").reply.success


@pytest.mark.parametrize(
    ("before", "by", "task", "reason", "after"),
    [
        # the last claim of another session: that session leaves, so there is room for this one
        ([("s1", "a"), ("s2", "b")], "s3", "a", "GRANTED", (2, 2)),
        # not its last claim: it stays, and a third session is one too many
        ([("s1", "a"), ("s1", "b"), ("s2", "c")], "s3", "a", "DENIED_LIMIT_ACTIVE_SESSIONS", (3, 2)),
        # its own last claim
        ([("s1", "a"), ("s2", "b")], "s1", "a", "GRANTED", (2, 2)),
        # from another that counts, by one that counts
        ([("s1", "a"), ("s2", "b")], "s2", "a", "GRANTED", (2, 1)),
    ],
)
def test_sessions_at_a_take_over(
    before: list[tuple[str, str]], by: str, task: str, reason: str, after: tuple[int, int]
) -> None:
    """TEN-13: a forced claim ends another in the same change, and the session that leaves makes room."""
    harness = RuleHarness("acme")
    harness.set_limits(max_active_sessions=2, max_concurrent_claims=len(before))
    for session, name in before:
        assert harness.claim(session, name).reply.success
    assert harness.force(by, task).reply.reason == reason
    assert counts(harness) == after


def test_generations_count_since_the_last_reset() -> None:
    """TEN-10, DESIGN §3: the limit is on generations since the last reset, for forced claims too."""
    harness = RuleHarness("acme")
    harness.set_limits(max_generations_per_task=2)
    for generation in (1, 2):
        assert harness.claim().reply.success
        harness.release(generation=generation)
    assert harness.claim().reply.reason == "DENIED_LIMIT_GENERATIONS"
    assert harness.force("x").reply.reason == "DENIED_LIMIT_GENERATIONS"
    assert harness.claim("s", "other").reply.success, "another task has its own count"
    harness.reset()
    for generation in (3, 4):
        assert harness.claim().reply.claim.generation == generation
        harness.release(generation=generation)
    assert harness.claim().reply.reason == "DENIED_LIMIT_GENERATIONS"


def test_result_size() -> None:
    """TEN-12, AMB-20: a result at the limit is accepted, one byte more is refused, which is recorded."""
    harness = RuleHarness("acme")
    harness.set_limits(max_result_size_bytes=20)
    harness.claim()
    over = harness.submit(result=b'{"a":"' + b"x" * 13 + b'"}')
    assert (over.reply.reason, over.reply.accepted, over.reply.work_lost) == (
        "DENIED_LIMIT_RESULT_SIZE",
        False,
        False,
    )
    assert list(over.writes) == ["rejected/p/t/00000001/s/submit:DENIED_LIMIT_RESULT_SIZE"]
    assert "21" in over.reply.detail
    assert harness.submit(result=b'{"a":"' + b"x" * 12 + b'"}').reply.reason == "ACCEPTED"


@pytest.mark.parametrize("tenant", ["local", "acme"])
def test_a_result_fits_a_record_or_is_refused(tenant: str) -> None:
    """DESIGN §3: whatever the tenant's limit says, a result over what a record holds comes in chunks."""
    harness = RuleHarness(tenant)
    harness.claim()
    fits = b'{"a":"' + b"x" * (RECORD_RESULT_BYTES - 8) + b'"}'
    with pytest.raises(LimitReached, match="chunks"):
        harness.submit(result=fits[:-2] + b'x"}')
    assert harness.submit(result=fits).reply.accepted
    assert len(harness.records[keys.result("p", "t", 1)].data) <= 256 * 1024


def test_a_size_is_looked_at_after_the_right_to_submit() -> None:
    """CLM-66: who does not hold the claim learns that, not how large a result may be."""
    harness = RuleHarness("acme")
    harness.set_limits(max_result_size_bytes=2)
    harness.claim()
    assert harness.submit("x").reply.reason == "SESSION_MISMATCH"


def lapse(harness: RuleHarness, how_many: int, session: str = "gone") -> None:
    for number in range(how_many):
        assert harness.claim(session, f"lapsed-{number}").reply.success


@pytest.mark.parametrize("how_many", [1, 32, 33, 100])
@pytest.mark.parametrize(
    "limits", [{"max_concurrent_claims": 100}, {"max_concurrent_claims": 100, "max_active_sessions": 1}]
)
def test_lapsed_claims_do_not_count(how_many: int, limits: dict[str, int]) -> None:
    """CLM-25: what ran out stands in nobody's way, written down or not, however much of it there is."""
    harness = RuleHarness("acme")
    harness.set_limits(**{**limits, "max_concurrent_claims": how_many})
    lapse(harness, how_many)
    assert not harness.claim("new", now=LATE - 1).reply.success
    assert harness.claim("new", now=LATE).reply.success


def test_lapsed_claims_are_found_behind_other_deadlines() -> None:
    """CLM-25: many older deadlines of other kinds do not hide the claims that ran out."""
    harness = RuleHarness("acme")
    harness.claim("keeper", "history")
    for number in range(600):
        harness.submit(f"ghost-{number}", 1, "history")
    harness.set_limits(max_concurrent_claims=1)
    later = T0 + 90 * DAY_MS
    assert len(harness.keys("rejected/")) == 600
    assert harness.release("keeper", 1, "history").reply.success
    harness.claim("gone", "t1", now=later - LEASE + 1)
    assert harness.claim("new", now=later).reply.reason == "DENIED_LIMIT_CONCURRENT_CLAIMS"
    assert harness.claim("new", now=later + 1).reply.success


def test_a_refusal_by_limit_still_writes_down_what_ran_out() -> None:
    """DESIGN §5 Time: the books follow with the next commit, even if its answer is no."""
    harness = RuleHarness("acme")
    harness.set_limits(max_concurrent_claims=2, max_active_sessions=1)
    harness.claim("a", "t1", lease_ms=30_000)
    harness.claim("a", "t2")
    denied = harness.claim("b", "t3", now=T0 + 30_000)
    assert (denied.reply.reason, denied.event_tags) == (
        "DENIED_LIMIT_ACTIVE_SESSIONS",
        ["task.expired", "task.refused"],
    )
    assert counts(harness) == (1, 1)


def test_order_of_denials() -> None:
    """AMB-20: done and held are told before limits; a wrong lease before generations, those before counts."""
    harness = RuleHarness("acme")
    harness.set_limits(max_concurrent_claims=1, max_generations_per_task=1, max_active_sessions=1)
    harness.claim("s", "done")
    harness.submit("s", 1, "done")
    harness.claim("s", "used")
    harness.release("s", 1, "used")
    harness.claim("s", "held")
    tries: list[tuple[str, int, str]] = [
        ("done", 1, "DENIED_COMPLETED"),
        ("held", 1, "DENIED_ACTIVE_CLAIM"),
        ("used", 1, "DENIED_LIMIT_LEASE_DURATION"),
        ("used", LEASE, "DENIED_LIMIT_GENERATIONS"),
        ("new", LEASE, "DENIED_LIMIT_CONCURRENT_CLAIMS"),
    ]
    for task, lease_ms, reason in tries:
        assert harness.claim("x", task, lease_ms=lease_ms).reply.reason == reason
    harness.set_limits(max_concurrent_claims=2)
    assert harness.claim("x", "new").reply.reason == "DENIED_LIMIT_ACTIVE_SESSIONS"


def test_lowered_limits_take_nothing_away() -> None:
    """TEN-14: who holds a claim keeps, renews and submits it; only new claims meet the new limit."""
    harness = RuleHarness("acme")
    harness.claim("a", "t1", lease_ms=100_000)
    harness.claim("b", "t2", lease_ms=100_000)
    harness.set_limits(max_concurrent_claims=1, max_active_sessions=1, max_lease_duration_seconds=40)
    assert harness.claim("a", "t3", lease_ms=40_000).reply.reason == "DENIED_LIMIT_CONCURRENT_CLAIMS"
    assert harness.renew("a", 1, "t1").reply.new_expiry_ms == T0 + 100_000
    assert harness.submit("b", 1, "t2").reply.accepted
    assert harness.submit("a", 1, "t1").reply.accepted
    assert harness.claim("a", "t3", lease_ms=40_000).reply.success


@pytest.mark.parametrize("task", ["t2", "t3"])
def test_under_a_lowered_limit_an_expired_claim_makes_nobody_active(task: str) -> None:
    """TEN-13: a session that lost its only claim by time is a new one, also before a sweep counted it off."""
    harness = RuleHarness("acme")
    harness.claim("a", "t1", lease_ms=100_000)
    harness.claim("b", "t2", lease_ms=30_000)
    harness.set_limits(max_active_sessions=1)
    assert harness.claim("b", "t4", now=T0 + 29_999).reply.success, "it is active"
    harness.release("b", 1, "t4", now=T0 + 29_999)
    assert harness.claim("b", task, now=T0 + 30_000).reply.reason == "DENIED_LIMIT_ACTIVE_SESSIONS"
    assert counts(harness) == (1, 1)


def test_a_command_for_many_tasks_meets_each_limit_within() -> None:
    """CLM-57: a batch is granted up to the limit, and each task is answered by itself."""
    harness = RuleHarness("acme")
    harness.set_limits(max_concurrent_claims=2)
    wanted = tuple(("p", task) for task in "abca")
    replies = harness.run(ClaimTasks("acme", "agent", "s", LEASE, wanted)).reply
    assert [reply.reason for reply in replies] == [
        "GRANTED",
        "GRANTED",
        "DENIED_LIMIT_CONCURRENT_CLAIMS",
        "DENIED_ACTIVE_CLAIM",
    ]
    assert counts(harness) == (2, 1)


def test_setting_limits() -> None:
    """TEN-14: what is not named stays; a profile replaces all; no change writes nothing."""
    harness = RuleHarness("acme")
    assert harness.set_limits(max_active_sessions=7).event_tags == ["limits.set"]
    kept = harness.set_limits(max_concurrent_claims=8)
    assert (kept.reply["max_active_sessions"], kept.reply["max_concurrent_claims"]) == (7, 8)
    assert harness.set_limits(max_concurrent_claims=8).writes == {}
    replaced = harness.run(SetLimits("enterprise", {"max_active_sessions": 9}))
    assert replaced.reply["max_concurrent_claims"] == PROFILES["enterprise"].max_concurrent_claims
    assert replaced.reply["max_active_sessions"] == 9


def test_the_shortest_lease_is_not_above_the_longest() -> None:
    """TEN-8, TEN-9: limits that no lease could meet are refused, and set together they are not."""
    harness = RuleHarness("acme")
    with pytest.raises(Invalid, match="shortest") as raised:
        harness.set_limits(min_lease_duration_seconds=3601)
    assert raised.value.hint
    assert harness.records == {}
    assert harness.set_limits(min_lease_duration_seconds=5000, max_lease_duration_seconds=5000).event_tags


def test_a_long_retention_does_not_stop_the_line() -> None:
    """TEN-11: however long history is kept, what is due stays in the order of time and is swept."""
    harness = RuleHarness("acme")
    harness.set_limits(claim_history_retention_days=12_000_000)
    harness.claim()
    harness.release()
    harness.claim()
    harness.sweep(now=LATE)
    assert harness.keys("expired/") == [f"expired/{LATE}/p/t"]
    assert [claim.task_id for claim in harness.expired(now=LATE)] == ["t"]
