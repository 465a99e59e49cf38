"""The core, through the engine on the memory store, against the naive model: every reply, every invariant.

Hypothesis looks for a short way to a difference; seeded walks go far into states that take long to reach.
"""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from coord.core.tasks.types import ClaimReason, ReleaseOutcome, RenewalReason, ResetReason, SubmissionReason
from tests.conftest import SOAK
from tests.support.models.compare import SESSIONS, TASKS, TENANTS, Step, TaskComparison
from tests.support.models.naive_tasks import Key

LIMITS = ["max_concurrent_claims", "max_active_sessions", "max_generations_per_task"]
LIMIT_NUMBERS = [1, 2, 2, 3, 9]
REASONS = ["VOLUNTARY", "ERROR", "PREEMPTED"]
LEASES_MS = [30_000, 30_000, 30_000, 45_500, 60_000, 60_000, 60_000, 29_999, 3_600_001]
PAUSES_MS = [1, 500, 15_000, 59_999, 60_000]
# Who speaks: mostly whoever holds or held the last generation.
SPEAKERS = [None, None, None, *SESSIONS]
# Which generation is named: mostly the current one, sometimes an older or one to come.
OFFSETS = [0, 0, 0, 0, 0, -1, -1, -2, 1, 7]

any_key = st.sampled_from(TASKS)
any_speaker = st.sampled_from(SPEAKERS)
any_offset = st.sampled_from(OFFSETS)
claims = st.builds(
    Step,
    st.sampled_from(["claim", "claim", "force"]),
    any_key,
    st.sampled_from(SESSIONS),
    lease_ms=st.sampled_from(LEASES_MS),
)
renewals = st.builds(Step, st.just("renew"), any_key, any_speaker, any_offset)
releases = st.builds(
    Step, st.just("release"), any_key, any_speaker, any_offset, reason=st.sampled_from(REASONS)
)
submissions = st.builds(Step, st.just("submit"), any_key, any_speaker, any_offset, data=st.integers(0, 9))
resets = st.builds(Step, st.just("reset"), any_key)
any_step = st.one_of(claims, claims, submissions, renewals, releases, resets)


class GenerationClock(RuleBasedStateMachine):
    """Everything that can happen, in whatever order hypothesis likes."""

    @initialize(sweeps_itself=st.booleans())
    def begin(self, sweeps_itself: bool) -> None:
        self.comparison = TaskComparison(sweeps_itself=sweeps_itself)

    def teardown(self) -> None:
        if hasattr(self, "comparison"):
            self.comparison.close()

    @invariant()
    def check(self) -> None:
        if hasattr(self, "comparison"):
            self.comparison.check()

    @rule(step=claims)
    def claim(self, step: Step) -> None:
        self.comparison.carry_out([step])

    @rule(step=st.one_of(submissions, submissions, renewals, releases))
    def speak(self, step: Step) -> None:
        self.comparison.carry_out([step])

    @rule(step=resets)
    def reset(self, step: Step) -> None:
        self.comparison.carry_out([step])

    @rule(steps=st.lists(any_step, min_size=2, max_size=6))
    def batch(self, steps: list[Step]) -> None:
        self.comparison.batch(steps)

    @rule(
        session=st.sampled_from(SESSIONS),
        lease_ms=st.sampled_from(LEASES_MS),
        wanted=st.permutations(TASKS),
    )
    def claim_many(self, session: str, lease_ms: int, wanted: list[Key]) -> None:
        self.comparison.claim_many(session, lease_ms, wanted)

    @rule(ms=st.sampled_from(PAUSES_MS))
    def time_passes(self, ms: int) -> None:
        self.comparison.time_passes(ms)

    @rule(past_ms=st.integers(-1, 1))
    def a_deadline_comes(self, past_ms: int) -> None:
        self.comparison.a_deadline_comes(past_ms)

    @rule(tenant=st.sampled_from(TENANTS), most=st.integers(1, 4))
    def sweep(self, tenant: str, most: int) -> None:
        self.comparison.sweep(tenant, most)

    @rule(name=st.sampled_from(LIMITS), number=st.sampled_from(LIMIT_NUMBERS))
    def limits_change(self, name: str, number: int) -> None:
        self.comparison.limits_change(name, number)


def test_generation_clock() -> None:
    """The core and the model answer alike, whatever happens.

    CLM-17, CLM-22, CLM-23, CLM-24, CLM-61, CLM-62.
    """
    run_state_machine_as_test(
        GenerationClock,
        settings=settings(
            max_examples=2_000 if SOAK else 50,
            stateful_step_count=50 if SOAK else 30,
        ),
    )


def random_step(random: Random) -> Step:
    name = random.choices(["claim", "force", "renew", "release", "submit", "reset"], [46, 8, 10, 8, 16, 12])[
        0
    ]
    speakers = SESSIONS if name in {"claim", "force"} else SPEAKERS
    return Step(
        name,
        random.choice(TASKS),
        random.choice(speakers),
        random.choice(OFFSETS),
        random.choice(LEASES_MS),
        random.choice(REASONS),
        random.randrange(10),
    )


def walk_one_step(comparison: TaskComparison, random: Random) -> None:
    match random.choices(
        ["one", "batch", "many", "pause", "deadline", "sweep", "limits"], [56, 12, 5, 5, 12, 4, 6]
    )[0]:
        case "one":
            comparison.carry_out([random_step(random)])
        case "batch":
            comparison.batch([random_step(random) for _ in range(random.randint(2, 8))])
        case "many":
            comparison.claim_many(random.choice(SESSIONS), random.choice(LEASES_MS), random.sample(TASKS, 3))
        case "pause":
            comparison.time_passes(random.choice(PAUSES_MS))
        case "deadline":
            comparison.a_deadline_comes(random.choice([-1, 0, 0, 1]))
        case "sweep":
            comparison.sweep(random.choice(TENANTS), random.randint(1, 4))
        case "limits":
            comparison.limits_change(random.choice(LIMITS), random.choice(LIMIT_NUMBERS))


@pytest.mark.parametrize("seed", range(400 if SOAK else 10))
def test_long_walk(seed: int) -> None:
    """The same over a long time; the seed names the walk.

    CLM-17, CLM-22, CLM-23, CLM-24, CLM-61, CLM-62.
    """
    random = Random(seed)
    comparison = TaskComparison(sweeps_itself=bool(seed % 2))
    try:
        for number in range(1_000 if SOAK else 250):
            walk_one_step(comparison, random)
            if SOAK or number % 5 == 4:  # replies are compared at each step
                comparison.check()
    finally:
        comparison.close()


def test_walks_reach_every_answer() -> None:
    """A walk that never met a refusal would prove nothing about it: together they meet every reason."""
    met: set[object] = set()
    for seed in range(16):
        random, comparison = Random(seed), TaskComparison(sweeps_itself=bool(seed % 2))
        for _ in range(250):
            walk_one_step(comparison, random)
        comparison.close()
        met |= comparison.reasons
    kinds = (ClaimReason, RenewalReason, ReleaseOutcome, SubmissionReason, ResetReason)
    everything = {reason.value for kind in kinds for reason in kind}
    elsewhere = {
        "DENIED_LIMIT_RESULT_SIZE",
        "DENIED_NOT_READY",
        "DENIED_UNEXPECTED",
        "DATA_MISSING",
        "DENIED_LOCKED",
        "LOCK_LOST",
    }
    assert met == everything - elsewhere, "results here are small, and nothing is planned"
