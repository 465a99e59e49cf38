"""The work that is measured: claims of tasks nobody had before, and submissions of their results.

The tenant is a limited one, so every claim counts towards limits; the limits are raised out of the way.
"""

import itertools
import os
from collections.abc import Iterator
from string import ascii_uppercase
from time import perf_counter, process_time
from typing import NamedTuple, Self

from bench.quiet import freeze_heap
from bench.watched import Watch, WatchedDatabase
from coord import ClaimKey, ClaimTemplate, TaskCoordinator, open_store
from coord.core.ids import work_product_ref
from coord.core.tasks.commands import ClaimTask, SubmitResult
from coord.sdk.validation.results import to_json

TENANT = "bench"
PROJECT = "shop"
AGENT = "agent-a"
LEASE_S = 3600
SESSIONS = 64
RESULT = {
    "summary": "The login form checks its input before it is sent.",
    "files": ["src/login/form.py", "src/login/check.py", "tests/login/test_form.py"],
    "tests": {"passed": 41, "failed": 0},
}


class Claimed(NamedTuple):
    """What a submission needs to know."""

    task: str
    session: str
    generation: int


class Run(NamedTuple):
    """Calls that were timed one by one; making their arguments is not part of it."""

    operations: int
    took: list[float]
    claimed: list[Claimed]
    cpu: float = 0.0
    """Seconds of processor time in all threads."""

    @property
    def rate(self) -> float:
        return self.operations / sum(self.took)


class Workplace:
    """An open store with its limits raised, and names of tasks that are never used twice."""

    def __init__(self, url: str, *, tenant: str = TENANT, keep_commits: bool = False) -> None:
        self._tenant = tenant
        self.watch = Watch(keep_commits=keep_commits)
        self.database = WatchedDatabase(open_store(url), self.watch)
        self.coordinator = TaskCoordinator(self.database)  # type: ignore[arg-type]
        self.coordinator.set_limits(
            tenant,
            max_concurrent_claims=100_000_000,
            max_active_sessions=100_000_000,
            max_generations_per_task=1_000_000,
        )
        self.engine = self.coordinator.engine(tenant)
        self._cpu = 0.0
        self.names = task_names()
        self._sessions = itertools.cycle(session_name(number) for number in range(SESSIONS))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.coordinator.close()

    def claim_batch(self, size: int) -> tuple[float, list[Claimed]]:
        """Claim so many fresh tasks in one call; return how long it took, and the claims."""
        keys = [ClaimKey(self._tenant, PROJECT, next(self.names)) for _ in range(size)]
        session = next(self._sessions)
        template = ClaimTemplate(AGENT, session, LEASE_S)
        began, cpu = perf_counter(), process_time()
        replies = self.coordinator.batch_claim(keys, template)
        took = perf_counter() - began
        self._cpu += process_time() - cpu
        claimed = [
            Claimed(key.task_id, session, reply.claim.generation.generation)
            for key, reply in replies.items()
            if reply.claim is not None
        ]
        assert len(claimed) == size, "every fresh task is granted"
        return took, claimed

    def submit_batch(self, claimed: list[Claimed]) -> float:
        """Submit results in one call, prepared as the facade prepares them; return how long it took."""
        began, cpu = perf_counter(), process_time()
        replies = self.engine.call_many([submission(claim) for claim in claimed])
        took = perf_counter() - began
        self._cpu += process_time() - cpu
        assert all(reply.accepted for reply in replies), "every result of a current claim is accepted"
        return took

    def claim_for(self, seconds: float, size: int) -> Run:
        """Claim batches until so much time was spent in calls."""
        freeze_heap()
        took: list[float] = []
        claimed: list[Claimed] = []
        spent, self._cpu = 0.0, 0.0
        while spent < seconds:
            last, batch = self.claim_batch(size)
            took.append(last)
            claimed += batch
            spent += last
        return Run(len(claimed), took, claimed, self._cpu)

    def submit_all(self, claimed: list[Claimed], size: int) -> Run:
        """Submit the results of these claims, batch by batch."""
        freeze_heap()
        self._cpu = 0.0
        took = [self.submit_batch(batch) for batch in batches(claimed, size)]
        return Run(len(claimed), took, [], self._cpu)


def task_names() -> Iterator[str]:
    """Yield task ids of the grammar, AAA-001-login-form to ZZZ-999-login-form: one track after the other."""
    for letters in itertools.product(ascii_uppercase, repeat=3):
        track = "".join(letters)
        for place in range(1, 1000):
            yield f"{track}-{place:03d}-login-form"


def session_name(number: int) -> str:
    return f"session-{number:03d}"


def batches(claimed: list[Claimed], size: int) -> Iterator[list[Claimed]]:
    for start in range(0, len(claimed), size):
        yield claimed[start : start + size]


def claim_command(task: str, session: str) -> ClaimTask:
    return ClaimTask(TENANT, PROJECT, task, AGENT, session, LEASE_S * 1000)


def submission(claim: Claimed) -> SubmitResult:
    """Make the command that `TaskCoordinator.submit_result` makes."""
    return SubmitResult(
        TENANT,
        PROJECT,
        claim.task,
        claim.session,
        claim.generation,
        to_json("result_data", RESULT),
        work_product_ref(claim.task, claim.generation, os.urandom(16).hex()),
    )
