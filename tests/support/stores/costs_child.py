"""A process that claims, renews, submits and releases, marking each in its system calls (url, tenant)."""

import os
import sys

from coord import TaskCoordinator

MARK = "/coord-marks/"
"""A name that exists nowhere: asking for it shows in the trace which operation follows."""

NOW = 1_700_000_000_000


def main(url: str, tenant: str) -> None:
    coordinator = TaskCoordinator.open(url, clock=lambda: NOW)
    # What the first commits cost once (a file made, a header written) is not the price of an operation.
    for number in range(3):
        coordinator.claim_task(tenant, "shop", f"warm-{number}", "agent", "warm")
    mark("claim")
    claim = coordinator.claim_task(tenant, "shop", "task", "agent", "session").claim
    assert claim is not None
    mark("refused claim")
    coordinator.claim_task(tenant, "shop", "task", "agent", "other")
    mark("claim refused again")
    coordinator.claim_task(tenant, "shop", "task", "agent", "other")
    mark("question")
    coordinator.get_task_state(tenant, "shop", "task")
    mark("renewal")
    coordinator.renew_lease(tenant, "shop", "task", "session", claim.generation)
    mark("release")
    coordinator.release_claim(tenant, "shop", "task", "session", claim.generation)
    mark("second claim")
    coordinator.claim_task(tenant, "shop", "task", "agent", "session")
    mark("submission")
    assert coordinator.submit_result(tenant, "shop", "task", "session", 2, {"ok": True}).accepted
    mark("batch of claims")
    coordinator.batch_claim([(tenant, "shop", f"task-{n}") for n in range(50)], ("agent", "session", 300))
    mark("end")
    coordinator.close()


def mark(name: str) -> None:
    os.access(MARK + name, os.F_OK)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
