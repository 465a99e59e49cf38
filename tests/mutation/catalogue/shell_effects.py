"""Mutants of shell effects: no session is blamed without proof, nothing else is overwritten."""

from tests.mutation.mutant import Mutant

MUTANTS = [
    Mutant(
        "a command is blamed for what the holder's own tool may have written",
        "coord.integrations.shell_effects.attribution:Attribution._doubt_of_calls",
        "any(call.session in owners for call in others)",
        "False",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_holder_at_work_leaves_the_author_unknown",
        ),
    ),
    Mutant(
        "one of two shells is blamed",
        "coord.integrations.shell_effects.attribution:Attribution._doubt_of_calls",
        "any(call.shell for call in others)",
        "False",
        ("tests/unit/integrations/shell_effects/test_observe.py::test_two_shells_leave_the_author_unknown",),
    ),
    Mutant(
        "a command is blamed for what a person may have written",
        "coord.integrations.shell_effects.attribution:Attribution._doubt_of_calls",
        "any(owner not in self._calls.sessions for owner in owners)",
        "False",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_holder_that_hooks_do_not_see_leaves_the_author_unknown",
        ),
    ),
    Mutant(
        "the holder's own content counts as an overwrite",
        "coord.integrations.shell_effects.attribution:Attribution.add",
        "any(self._is_as_left(change, saved) for saved in left)",
        "False",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_the_holders_own_content_is_no_overwrite",
        ),
    ),
    Mutant(
        "an overwrite is undone against the setting",
        "coord.integrations.shell_effects.attribution:Attribution.report",
        "if restore and",
        "if",
        ("tests/unit/integrations/shell_effects/test_observe.py::test_both_sides_hear_of_an_overwrite",),
    ),
    Mutant(
        "a restore overwrites content that is not blamed",
        "coord.integrations.shell_effects.saved_content:restore_content",
        "read_content",
        "False and read_content",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_content_that_is_not_the_blamed_one_any_more_is_left",
        ),
        also=(
            "coord.integrations.shell_effects.saved_content:_swap",
            ' and read_content("", taken, BYTES_MAX, folder) == blamed',
            "",
        ),
    ),
    Mutant(
        "content written over a locked file is not saved",
        "coord.integrations.shell_effects.attribution:Attribution._restore",
        "save_to_ref(self._git, self._mine.session, [change.path], why)",
        '""',
        ("tests/unit/integrations/shell_effects/test_observe.py::test_what_was_written_over_is_kept",),
    ),
    Mutant(
        "a damaged list of calls counts as empty",
        "coord.integrations.shell_effects.call_log:CallFolder._new_calls",
        '1, [Call("", "", True, 1, written_s + DOUBT_S)]',
        "1",
        (
            "tests/unit/integrations/shell_effects/test_call_log.py::test_a_damaged_file_leaves_everything_in_doubt_for_an_hour",
        ),
    ),
    Mutant(
        "a changed file is not file_stat once it is committed",
        "coord.integrations.shell_effects.worktree_state:_query.ask",
        ", GIT_INDEX_FILE=index",
        "",
        (
            "tests/unit/integrations/shell_effects/test_worktree_state.py::test_every_way_to_change_a_file_is_seen",
        ),
    ),
    Mutant(
        "a coarse clock hides a change",
        "coord.integrations.shell_effects.worktree_state:_changed",
        "and (not was.content or was.content == _digest(root, name))",
        "",
        ("tests/unit/integrations/shell_effects/test_worktree_state.py::test_a_coarse_clock_hides_nothing",),
    ),
    Mutant(
        "changed files without a lock are not locked afterwards",
        "coord.integrations.shell_effects.compare:ShellCall._report_changes",
        "self._lock({path: names[path] for path in dirty[:LOCKS_MAX]})",
        "list[str](), dict[str, list[LockInfo]]()",
        ("tests/unit/integrations/shell_effects/test_observe.py::test_a_free_file_is_locked_after_the_fact",),
    ),
]
