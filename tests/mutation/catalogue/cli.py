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
    Mutant(
        "coord top steals a lock that changed hands",
        "coord.transports.cli.top.actions:changed",
        "(each.owner, each.fence) == (before.owner, before.fence)",
        "each.resource == before.resource",
        ("tests/unit/transports/cli/top/test_actions.py::test_a_lock_is_the_same_only_with_its_fence",),
    ),
    Mutant(
        "coord top does not look again before it steals",
        "coord.transports.cli.top.screen:Screen._run",
        "if problem:",
        "if False:",
        ("tests/unit/transports/cli/top/test_screen.py::test_a_lock_that_changed_hands_is_not_stolen",),
    ),
    Mutant(
        "coord top takes a reason for a flag",
        "coord.transports.cli.top.actions:_flag",
        'value.startswith("-") or not value',
        "not value",
        ("tests/unit/transports/cli/top/test_actions.py::test_a_reason_and_a_name_arrive_as_they_are",),
    ),
    Mutant(
        "coord top takes a name for a flag",
        "coord.transports.cli.top.actions:_line",
        '"--", *words',
        "*words",
        ("tests/unit/transports/cli/top/test_actions.py::test_a_message_arrives_as_it_is",),
    ),
    Mutant(
        "coord top steals without a yes",
        "coord.transports.cli.top.view:TopView._type",
        'key.name == "y" and ',
        "",
        (
            "tests/unit/transports/cli/top/test_view.py::test_a_foreign_lock_is_stolen_for_a_reason_and_with_consent",
        ),
    ),
    Mutant(
        "coord top steals without a reason",
        "coord.transports.cli.top.view:TopView._enter",
        "if not text:",
        "if False:",
        (
            "tests/unit/transports/cli/top/test_view.py::test_a_foreign_lock_is_stolen_for_a_reason_and_with_consent",
        ),
    ),
    Mutant(
        "coord top acts on the rows before the filter",
        "coord.transports.cli.top.view:TopView.press",
        "self._find(time.monotonic())",
        "pass",
        (
            "tests/unit/transports/cli/top/test_view.py::test_keys_that_come_together_act_on_the_rows_they_mean",
        ),
    ),
    Mutant(
        "coord top asks a busy log without a pause",
        "coord.transports.cli.top.screen:Watcher._watch",
        "self._asked.clear()",
        "pass",
        (
            "tests/unit/transports/cli/top/test_screen.py::test_it_waits_for_the_log_and_asks_once_for_each_commit",
        ),
    ),
    Mutant(
        "coord top ends when its store is away",
        "coord.transports.cli.top.screen:Screen._read",
        "except CoordError as error",
        "except KeyError as error",
        ("tests/unit/transports/cli/top/test_screen.py::test_a_store_that_is_gone_for_a_while_ends_nothing",),
    ),
    Mutant(
        "coord top names files from the top of the repository",
        "coord.transports.cli.top.actions:spelled",
        "os.path.realpath(current_folder())",
        "repository.root",
        ("tests/unit/transports/cli/top/test_view.py::test_commands_are_right_in_a_folder",),
    ),
    Mutant(
        "coord top writes what others command the terminal",
        "coord.transports.cli.top.view:TopView._safe",
        "visible(text)",
        "text",
        ("tests/unit/transports/cli/top/test_view.py::test_hostile_texts_command_nothing",),
    ),
    Mutant(
        "coord top follows a mesh of waits again and again",
        "coord.transports.cli.top.details:_chain",
        "if session in known:",
        "if False:",
        ("tests/unit/transports/cli/top/test_details.py::test_a_mesh_of_waits_is_shown_once",),
    ),
    Mutant(
        "a pasted text presses keys",
        "coord.transports.cli.top.keys:Keys._next",
        "if left.startswith(_PASTE):",
        "if False:",
        ("tests/unit/transports/cli/top/test_keys.py::test_a_pasted_text_is_one_key_and_no_command",),
    ),
    Mutant(
        "a closed window is an error of coord top",
        "coord.transports.cli.top.screen:_full_screen",
        "suppress(TerminalGone, termios.error)",
        "suppress(KeyError)",
        ("tests/unit/transports/cli/top/test_screen.py::test_a_terminal_that_is_closed_ends_it",),
    ),
    Mutant(
        "coord top draws into a pipe",
        "coord.transports.cli.handlers.top:_check_terminal",
        "not is_terminal(sys.stdout) or not is_terminal(sys.stdin)",
        "False",
        ("tests/unit/transports/cli/top/test_screen.py::test_without_a_terminal_it_names_the_dashboard",),
    ),
]
