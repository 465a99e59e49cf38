"""Mutants of the command line."""

from tests.mutation.mutant import Mutant

MUTANTS = [
    Mutant(
        "guard does not release its locks",
        "coord.transports.cli.handlers.guard:_run",
        "held.end(failed=True)",
        "pass",
        ("tests/unit/transports/cli/handlers/test_guard.py::test_the_lock_is_held_while_the_command_runs",),
    ),
    Mutant(
        "processes that left the group of a command keep running",
        "coord.transports.cli.work.task:TaskCommand._run",
        "end_orphans(others)",
        "pass",
        (
            "tests/unit/transports/cli/work/test_run.py::test_what_a_command_leaves_in_the_background_ends_with_its_task",
        ),
    ),
]
