"""Mutants of the command line."""

from tests.mutation.mutant import Mutant

TEST_GUARD = "tests/unit/transports/cli/handlers/test_guard.py"

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
    Mutant(
        "the command of a guard does not join the group of its watchdog",
        "coord.transports.cli.handlers.guard:_run",
        "group=watchdog.group",
        "group=0",
        (f"{TEST_GUARD}::test_a_guard_killed_outright_takes_its_command_along_and_frees_the_lock",),
    ),
    Mutant(
        "the watchdog of a guard does not release its locks",
        "coord.transports.cli.release:main",
        "release_use(client, wanted.names, wanted.use)",
        "pass",
        (f"{TEST_GUARD}::test_a_guard_killed_outright_takes_its_command_along_and_frees_the_lock",),
    ),
    Mutant(
        "the watchdog of a guard releases what others need",
        "coord.transports.cli.release:main",
        "wanted.names, wanted.use",
        "wanted.names, ''",
        (f"{TEST_GUARD}::test_a_killed_guard_frees_only_its_own_use",),
    ),
    Mutant(
        "a guard is not woken by a lost lock",
        "coord.transports.cli.handlers.guard:guard",
        "on_lost=lambda error: _lost(over, notices, error)",
        "on_lost=None",
        (f"{TEST_GUARD}::test_a_stolen_lock_ends_the_command_at_once",),
    ),
    Mutant(
        "a body imitates another message in a terminal",
        "coord.transports.cli.handlers.messages:_texts",
        "room, MARK",
        'room, ""',
        ("tests/unit/transports/cli/handlers/test_messages.py::test_a_body_cannot_imitate_another_message",),
    ),
    Mutant(
        "a blocked agent seems to work on one of its tasks",
        "coord.transports.cli.top.dashboard:queue_depth",
        'session.state == "working"',
        "True",
        ("tests/unit/transports/cli/top/test_dashboard.py::test_the_rows_of_the_first_document",),
    ),
]
