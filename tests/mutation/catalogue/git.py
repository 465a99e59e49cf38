"""Mutants of commits, merges, worktrees and salvage."""

from tests.mutation.mutant import SOON, Mutant

_UNFINISHED = "tests/unit/integrations/git/test_unfinished.py"
_BRANCH = "tests/unit/integrations/git/test_branch_diff.py"

MUTANTS = [
    Mutant(
        "a git that takes too long says that there is no such branch",
        "coord.integrations.git.run:Git.at_most",
        "process.returncode and expired.is_set()",
        "False",
        (f"{_BRANCH}::test_a_slow_git_is_killed_and_is_no_answer",),
    ),
    Mutant(
        "a commit that another one overtook fails",
        "coord.integrations.git.run:_ANOTHER_WAS_FASTER",
        "cannot lock ref 'HEAD': is at",
        "no such text",
        ("tests/unit/integrations/git/commit/test_commit.py::test_a_commit_that_lands_first_is_built_upon",),
    ),
    Mutant(
        "a file is in scope no matter which session held it last",
        "coord.integrations.git.merge.scope:_Holders.last",
        "if own and not",
        "if not",
        (
            "tests/unit/integrations/git/merge/test_merge.py::test_who_was_not_the_last_to_hold_a_file_did_not_hold_it",
        ),
    ),
    Mutant(
        "a merge trusts any fence that a commit names",
        "coord.integrations.git.merge.scope:_with_proofs",
        "[fence for fence in commit.trailers.fences if fence in known]",
        "list(commit.trailers.fences)",
        (
            "tests/unit/integrations/git/merge/test_merge.py::test_a_fence_that_was_never_granted_proves_nothing",
        ),
    ),
    Mutant(
        "a read lock brings a file into scope",
        "coord.integrations.git.merge.scope:_Holders._tenures",
        "each.mode != Mode.READ",
        "True",
        ("tests/unit/integrations/git/merge/test_merge.py::test_a_read_lock_is_none",),
    ),
    Mutant(
        "coordination files are merged",
        "coord.integrations.git.merge.tree:without_coordination",
        "theirs == ours",
        "True",
        ("tests/unit/integrations/git/merge/test_merge.py::test_coordination_files_are_never_merged",),
    ),
    Mutant(
        "a merge does not look again after its check",
        "coord.integrations.git.merge.merge:_Queue.merge",
        "self._request.check",
        "False",
        (
            "tests/unit/integrations/git/merge/test_check.py::test_what_is_superseded_during_the_check_is_refused",
        ),
    ),
    Mutant(
        "a branch that moved during the merge counts as merged",
        "coord.integrations.git.merge.merge:_Queue._move",
        "not done.code and not",
        "True or",
        ("tests/unit/integrations/git/merge/test_check.py::test_main_that_moves_meanwhile_is_merged_onto",),
    ),
    Mutant(
        "a failing check refuses no branch",
        "coord.integrations.git.merge.merge:_Queue._failing_check",
        "if last.passed",
        "if True",
        ("tests/unit/integrations/git/merge/test_check.py::test_the_culprit_is_found_and_the_others_get_in",),
    ),
    Mutant(
        "a commit under an expired lock is recorded",
        "coord.core.git_log:record_commit",
        " or ended_by_time(lock, now) is not None",
        "",
        ("tests/unit/core/test_git_log.py::test_a_commit_under_a_lost_lock_is_not_told[ran out]",),
    ),
    Mutant(
        "a commit under another fence is recorded",
        "coord.core.git_log:record_commit",
        " or lock.fence != fence",
        "",
        ("tests/unit/core/test_git_log.py::test_a_commit_under_a_lost_lock_is_not_told[other fence]",),
    ),
    Mutant(
        "a commit without gates is not sign_message",
        "coord.integrations.git.commit.commit:commit",
        "sign_message(git, client, client.caller, message, [change.path for change in selection.files])",
        "message",
        ("tests/unit/integrations/git/commit/test_commit.py::test_a_commit_is_signed_once",),
    ),
    Mutant(
        "a commit includes files that others staged",
        "coord.integrations.git.commit.commit:_run_commit",
        '"--only", ',
        '"--include", ',
        ("tests/unit/integrations/git/commit/test_commit.py::test_scn_48_only_what_is_held_is_committed",),
    ),
    Mutant(
        "a restore overwrites later changes",
        "coord.integrations.git.salvage.swap:restore_to_head",
        "snapshot(git, head, paths) != tree_of(git, saved_in)",
        "False",
        ("tests/unit/integrations/git/salvage/test_salvage.py::test_what_changed_since_is_not_restored",),
    ),
    Mutant(
        "a swap drops changes of the last moment",
        "coord.integrations.git.salvage.swap:swap_files",
        'save_removed(git, name, f"{work}/taken", taken, beside=saved_in, why=why)',
        '""',
        (
            "tests/unit/integrations/git/salvage/test_salvage.py::test_no_byte_is_lost_that_comes_at_the_worst_moment",
        ),
    ),
    Mutant(
        "unmerged worktrees are cleaned",
        "coord.integrations.git.worktree.clean:_reason_to_keep",
        "if info.unmerged:",
        "if False:",
        (
            "tests/unit/integrations/git/worktree/test_worktree.py::test_cleaning_removes_only_what_would_not_be_lost",
        ),
    ),
    Mutant(
        "coord removes a lock file that was there before",
        "coord.integrations.git.unfinished:clear_locks",
        "if made_ns < began_ns:",
        "if False:",
        (f"{_UNFINISHED}::test_older_lock_file_stays",),
    ),
    Mutant(
        "coord removes a lock file that a process has open",
        "coord.integrations.git.unfinished:clear_locks",
        "if process:",
        "if False:",
        (f"{_UNFINISHED}::test_lock_file_that_a_process_has_open_stays",),
    ),
    Mutant(
        "coord undoes a commit that still runs",
        "coord.integrations.git.unfinished:unfinished",
        "note.process is None or probe(note.process).life is not ProcessState.DEAD",
        "note.process is None",
        (f"{_UNFINISHED}::test_note_of_a_live_command_stays", SOON),
    ),
    Mutant(
        "a killed commit leaves its lock files",
        "coord.integrations.git.commit.recover:recover_commits",
        "cleared = clear_locks(left, git.folder, lock_files(git, git_dir, left))",
        "cleared = []",
        (f"{_UNFINISHED}::test_own_lock_files_are_removed", SOON),
    ),
    Mutant(
        "the start of a worktree may be an option",
        "coord.integrations.git.worktree.worktree:add",
        "commit_of(git, start)",
        "pass",
        (f"{_UNFINISHED}::test_names_are_never_options[worktree add x --from=--force]",),
    ),
    Mutant(
        "a merge takes a revision for a branch",
        "coord.integrations.git.merge.merge:_tip",
        "named.code or done.code",
        "done.code",
        (f"{_UNFINISHED}::test_branch_is_not_a_revision",),
    ),
    Mutant(
        "a worktree follows a symlink out of the repository",
        "coord.integrations.git.worktree.worktree:_target",
        'if f"{plain}/".startswith(f"{git.folder}/") and not f"{real}/".startswith(f"{root}/"):',
        "if False:",
        (f"{_UNFINISHED}::test_worktree_folder_that_leads_away",),
    ),
    Mutant(
        "clean removes what is behind a symlink",
        "coord.integrations.git.worktree.clean:_remove_exclusively",
        "if os.path.realpath(each.path) != each.path:",
        "if False:",
        (f"{_UNFINISHED}::test_worktree_that_became_a_symlink_is_kept",),
    ),
    Mutant(
        "a worktree goes where everybody may write",
        "coord.integrations.git.worktree.worktree:_check_folder",
        "if foreign or",
        "if foreign and",
        (f"{_UNFINISHED}::test_worktree_folder_that_everybody_may_write",),
    ),
    Mutant(
        "a killed removal is finished whatever was written since",
        "coord.integrations.git.worktree.clean:_resume",
        "if work := remaining_work(git, admin, each.path):",
        "if work := 0:",
        (f"{_UNFINISHED}::test_work_in_a_half_removed_worktree_is_kept",),
    ),
    Mutant(
        "a repeated merge keeps the lock of the killed one",
        "coord.integrations.git.merge.queue_lock:release_dead_uses",
        "if _is_dead(use):",
        "if False:",
        ("tests/unit/integrations/git/merge/test_killed_merge.py::test_repeated_merge_frees_the_queue",),
    ),
    Mutant(
        "a killed merge leaves its files behind",
        "coord.integrations.git.interrupted_move:recover_moves",
        "if note.kind == CHECKOUT and",
        "if False and",
        (
            "tests/unit/integrations/git/merge/test_killed_merge.py::test_killed_checkout_of_a_merge_is_undone",
        ),
    ),
    Mutant(
        "a file monitor of the repository decides which files changed",
        "coord.integrations.git.run:_SETTINGS",
        "core.fsmonitor=false",
        "core.unknown=false",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_file_monitor_of_the_repository_hides_no_overwrite",
        ),
    ),
    Mutant(
        "git starts gpg for the log that coord reads",
        "coord.integrations.git.run:_SETTINGS",
        "log.showSignature=false",
        "log.unknown=false",
        ("tests/unit/integrations/git/test_run.py::test_settings_of_the_repository_start_no_program",),
    ),
]
