"""Mutants of large results and of tasks that were split."""

from tests.mutants.mutant import Mutant

BLOB, LARGE = "core/tasks/chunks.py", "sdk/client/results.py"
LARGE_TESTS = "tests/unit/sdk/client/test_results.py"
SPLIT_TESTS = ("tests/unit/core/plans/test_subtasks.py",)

RESULT_MUTANTS = [
    Mutant(
        "a result is accepted before all of its data is there",
        BLOB,
        "    if blob is None or blob.size != size or blob.chunks != chunks_of(size):\n        return False\n",
        "    if blob is None:\n        return False\n",
        (LARGE_TESTS, "-k", "killed and 4"),
    ),
    Mutant(
        "data that results refer to is not counted",
        BLOB,
        "holders=blob.holders + 1",
        "holders=1",
        (LARGE_TESTS, "-k", "two_results"),
    ),
    Mutant(
        "data that nobody refers to stays for ever",
        BLOB,
        '"" if blob.holders else keys.due(until_ms)',
        '""',
        (LARGE_TESTS, "-k", "zombie_sent and memory"),
    ),
    Mutant(
        "damaged data is handed on",
        LARGE,
        "if len(data) != size or _digest(data) != digest:\n",
        "if len(data) != size:\n",
        (LARGE_TESTS, "-k", "damaged and sqlite"),
    ),
    Mutant(
        "a claim does not look at what was expected",
        "core/tasks/claims.py",
        "if command.expects and command.expects != (stands",
        "if False and command.expects != (stands",
        ("tests/unit/sdk/test_claim_repository.py", "-k", "stands_as_expected and memory"),
    ),
    Mutant(
        "a task that was split depends on what it did",
        "core/tasks/dependencies.py",
        "return part_ids(task_id, spec.parts) if spec.parts else spec.depends_on\n",
        "return spec.depends_on\n",
        SPLIT_TESTS,
    ),
    Mutant(
        "a whole stays done when a part is opened again",
        "core/tasks/reset.py",
        "    if task is not None and task.state is DONE:\n",
        "    if False:\n",
        SPLIT_TESTS,
    ),
]
