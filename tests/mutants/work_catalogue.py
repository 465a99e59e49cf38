"""Mutants of the worker: what it hands in, when it stops, what it leaves behind."""

from tests.mutants.mutant import Mutant

WORKER, WORK, RENEWAL = "sdk/worker/worker.py", "sdk/worker/work.py", "sdk/client/lease.py"
RUN_TASK, CORE_WORK, QUEUE = "transports/cli/work/task.py", "core/tasks/planned.py", "core/plans/queue.py"


def of_worker(name: str) -> tuple[str, ...]:
    return ("tests/unit/sdk/worker/test_worker.py", "-k", name)


def of_command(name: str) -> tuple[str, ...]:
    return ("tests/unit/transports/cli/work/test_run.py", "-k", name)


WORK_MUTANTS = [
    Mutant(
        "a worker hands in under a claim it does not trust",
        WORKER,
        """        if work.lost:
            return Ending.LOST, work.why_lost
        command_id""",
        "        command_id",
        of_worker("silent_for_too_long"),
    ),
    Mutant(
        "a lost answer is asked for as something new",
        WORKER,
        "submit_task(*names, result, command_id=command_id)",
        "submit_task(*names, result, command_id=os.urandom(16).hex())",
        of_worker("outage_shorter"),
    ),
    Mutant(
        "a lease is trusted to its very end",
        RENEWAL,
        "return now < self.until - self.margin_s",
        "return now < self.until",
        ("tests/unit/core/tasks/test_claims_lease.py",),
    ),
    Mutant(
        "a refused renewal is taken for one",
        WORK,
        "if reply.reason is not RenewalReason.RENEWED:",
        "if False:",
        of_worker("lost_claim_is_noticed"),
    ),
    Mutant(
        "what left the group of a command goes on",
        RUN_TASK,
        "                end_orphans(others)\n",
        "",
        of_command("background"),
    ),
    Mutant(
        "a rate limit is a failure",
        WORKER,
        "        except GiveBack as error:\n            return self._give_back(work, error)\n",
        "",
        of_worker("says_how_it_goes_on"),
    ),
    Mutant(
        "who loses a task by force stays on its track",
        CORE_WORK,
        "if name != goes or tasks > 1}",
        "if tasks}",
        of_worker("forced_claim"),
    ),
    Mutant(
        "the dead keep their tasks until the lease ends",
        QUEUE,
        "    if bury_holders(view, working, session.session_id, now):\n",
        "    if False:\n",
        of_command("killed_outright"),
    ),
]
