"""The mutants of what a merge rests on."""

from tests.mutants.mutant import Mutant

MERGE, SCOPE, TREE = (
    "integrations/git/merge/merge.py",
    "integrations/git/merge/scope.py",
    "integrations/git/merge/tree.py",
)


def rule(name: str) -> tuple[str, ...]:
    """A test of what gets in."""
    return (f"tests/unit/integrations/git/merge/test_merge.py::test_{name}",)


def checked(name: str) -> tuple[str, ...]:
    """A test of checks and of moves meanwhile."""
    return (f"tests/unit/integrations/git/merge/test_check.py::test_{name}",)


MERGE_MUTANTS = [
    Mutant(
        "a file is in scope whoever held it last",
        SCOPE,
        "return fence if own and not ended_before else None\n",
        "return fence if not ended_before else None\n",
        rule("who_was_not_the_last_to_hold_a_file_did_not_hold_it"),
    ),
    Mutant(
        "a fence is believed because a commit names it",
        SCOPE,
        "fences = [fence for fence in commit.trailers.fences if fence in known]\n",
        "fences = list(commit.trailers.fences)\n",
        rule("a_fence_that_was_never_granted_proves_nothing"),
    ),
    Mutant(
        "a read lock brings a file into scope",
        SCOPE,
        "if each.mode != Mode.READ)",
        "if True)",
        rule("a_read_lock_is_none"),
    ),
    Mutant(
        "coordination files are merged",
        TREE,
        "if theirs == ours:\n",
        "if True:\n",
        rule("coordination_files_are_never_merged"),
    ),
    Mutant(
        "what was in order before the check is in order after it",
        MERGE,
        "if self._wanted.check else []\n",
        "if False else []\n",
        checked("what_is_superseded_during_the_check_is_refused"),
    ),
    Mutant(
        "a branch that moved meanwhile is taken for merged",
        MERGE,
        "return not done.code and not git.run",
        "return True or git.run",
        checked("main_that_moves_meanwhile_is_merged_onto"),
    ),
    Mutant(
        "a failing check refuses nobody",
        MERGE,
        "        if last.passed:\n",
        "        if True:\n",
        checked("the_culprit_is_found_and_the_others_get_in"),
    ),
]
