"""The mutants of effects: nobody is blamed without proof, and nothing is overwritten that is not blamed."""

from tests.mutants.mutant import Mutant

STATE, VERDICT, CONTENT = (
    "integrations/shell_effects/worktree_state.py",
    "integrations/shell_effects/attribution.py",
    "integrations/shell_effects/saved_content.py",
)
CALLS, LOOK = "integrations/shell_effects/call_log.py", "integrations/shell_effects/compare.py"


def effects(name: str) -> tuple[str, ...]:
    """A test of what is done about the effects of a command."""
    return (f"tests/unit/integrations/shell_effects/test_observe.py::test_{name}",)


def state(name: str) -> tuple[str, ...]:
    """A test of how files stand."""
    return (f"tests/unit/integrations/shell_effects/test_worktree_state.py::test_{name}",)


EFFECT_MUTANTS = [
    Mutant(
        "a command is blamed for what the holder's own tool may have written",
        VERDICT,
        "if any(call.session in owners for call in beside):",
        "if False:",
        effects("a_holder_at_work_leaves_the_author_unknown"),
    ),
    Mutant(
        "one of two shells is blamed",
        VERDICT,
        "if any(call.shell for call in beside):",
        "if False:",
        effects("two_shells_leave_the_author_unknown"),
    ),
    Mutant(
        "a command is blamed for what a person may have written",
        VERDICT,
        "if any(owner not in self._calls.sessions for owner in owners):",
        "if False:",
        effects("a_holder_that_hooks_do_not_see_leaves_the_author_unknown"),
    ),
    Mutant(
        "the holder's own content counts as a stomp",
        VERDICT,
        "if any(self._is_as_left(change, kept) for kept in left):",
        "if False:",
        effects("the_holders_own_content_is_no_stomp"),
    ),
    Mutant(
        "a stomp is undone although nobody asked for it",
        VERDICT,
        "if restore and not finding.doubt else",
        "if not finding.doubt else",
        effects("a_stomp_is_told_to_both"),
    ),
    Mutant(
        "a content that is not the blamed one is overwritten",
        CONTENT,
        "if read_content(git.folder, path, BYTES_MAX) != blamed or",
        "if False and read_content(git.folder, path, BYTES_MAX) != blamed or",
        effects("a_content_that_is_not_the_blamed_one_any_more_is_left"),
        (
            CONTENT,
            'if placed and read_content("", taken, BYTES_MAX, folder) == blamed:',
            "if placed:",
        ),
    ),
    Mutant(
        "what was written over a held file is thrown away",
        VERDICT,
        "ref = keep(self._git, self._mine.session, [change.path], why)",
        'ref = ""',
        effects("what_was_written_over_is_kept"),
    ),
    Mutant(
        "a damaged list of calls is taken for an empty one",
        CALLS,
        'return Calls(1, [Call("", "", True, 1, written_s + DOUBT_S)])',
        "return Calls(1)",
        (
            "tests/unit/integrations/shell_effects/test_call_log.py::test_a_damaged_file_leaves_everything_in_doubt_for_an_hour",
        ),
    ),
    Mutant(
        "a clean file that is changed is not seen once it is committed",
        STATE,
        "timeout_s=deadline_s() * GIT_SHARE, GIT_INDEX_FILE=index)",
        "timeout_s=deadline_s() * GIT_SHARE)",
        state("every_way_to_change_a_file_is_seen"),
    ),
    Mutant(
        "a coarse clock hides a change",
        STATE,
        "and (not was.content or was.content == _digest(root, name))",
        "",
        state("a_coarse_clock_hides_nothing"),
    ),
    Mutant(
        "what is free is not locked after the fact",
        LOOK,
        "locked, taken = self._lock({path: names[path] for path in dirty[:LOCKS_MAX]})",
        "locked, taken = list[str](), dict[str, list[LockShown]]()",
        effects("a_free_file_is_locked_after_the_fact"),
    ),
]
