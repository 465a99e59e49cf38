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
    Mutant(
        "a command that hangs keeps its task",
        "coord.sdk.worker.work:Work.over",
        " or self.hung",
        "",
        ("tests/unit/sdk/worker/test_worker.py::test_work_without_progress_is_over_and_counts_as_a_failure",),
    ),
    Mutant(
        "a touch of the progress file is not noticed",
        "coord.transports.cli.work.task:TaskCommand._attend",
        "work.note_progress()",
        "pass",
        ("tests/unit/transports/cli/work/test_run.py::test_progress_restarts_the_time_limit", "-k", "touch"),
    ),
]
