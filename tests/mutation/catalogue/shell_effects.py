"""Mutants of shell effects: no session is blamed without proof, nothing else is overwritten."""

from tests.mutation.mutant import Mutant

MUTANTS = [
    Mutant(
        "half of a log of calls counts as one",
        "coord.integrations.shell_effects.call_log:read_calls",
        "if data[: 2 * NUMBER_BYTES] == _head(content):",
        "if True:",
        ("tests/unit/integrations/shell_effects/test_call_log.py::test_half_of_a_log_is_no_log",),
    ),
    Mutant(
        "a command is blamed for what the holder's own tool may have written",
        "coord.integrations.shell_effects.attribution:Attribution._doubt_of_holder",
        'self._calls.may_have_written(self._mine, {*owners, ""}, change.path)',
        "False",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_holder_at_work_leaves_the_author_unknown",
        ),
    ),
    Mutant(
        "a shell of the holder that has ended counts as idle",
        "coord.integrations.shell_effects.call_log:Calls.may_have_written",
        "each.shell or (not each.ended and",
        "not each.ended and (each.shell or",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_holder_at_work_leaves_the_author_unknown",
        ),
    ),
    Mutant(
        "an editor of the holder leaves every file in doubt",
        "coord.integrations.shell_effects.call_log:Calls.may_have_written",
        "name in each.paths or",
        "True or",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_an_editor_of_the_holder_is_no_author_of_other_files",
        ),
    ),
    Mutant(
        "a command that names a file counts as its author",
        "coord.integrations.shell_effects.evidence:wrote_it",
        "return known and (named",
        "return named or (known",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_holder_that_hooks_do_not_see_leaves_the_author_unknown",
        ),
    ),
    Mutant(
        "the script of a call is no evidence",
        "coord.integrations.shell_effects.evidence:wrote_it",
        '*_scripts(text, cwd, f"{root}/{path}")',
        "",
        ("tests/unit/integrations/shell_effects/test_observe.py::test_what_the_call_contains_is_evidence",),
    ),
    Mutant(
        "a command is blamed for what a person may have written",
        "coord.integrations.shell_effects.attribution:Attribution._doubt_of_holder",
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
        "if restore and not each.doubt",
        "if not each.doubt",
        ("tests/unit/integrations/shell_effects/test_observe.py::test_both_sides_hear_of_an_overwrite",),
    ),
    Mutant(
        "a restore overwrites content that is not blamed",
        "coord.integrations.shell_effects.restore:restore_content",
        "read_content",
        "False and read_content",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_content_that_is_not_the_blamed_one_any_more_is_left",
        ),
        also=(
            "coord.integrations.shell_effects.restore:_swap",
            ' and read_content("", taken, BYTES_MAX, folder) == blamed',
            "",
        ),
    ),
    Mutant(
        "only shells are checked by their effects",
        "coord.integrations.hooks.events:Event.writes_anything",
        " or self.opaque",
        "",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_unknown_tools_are_checked_by_their_effects",
        ),
    ),
    Mutant(
        "an edit in an unknown form is not checked",
        "coord.integrations.hooks.events:with_files",
        ", opaque=True",
        "",
        (
            "tests/unit/integrations/hooks/tools/test_formats.py::test_an_edit_in_an_unknown_form_is_checked_by_its_effects",
        ),
    ),
    Mutant(
        "the settings of a tool show the hook known writers only",
        "coord.integrations.setup.tools:CLAUDE",
        "\"PreToolUse\": f\"^(?!({'|'.join(READERS['claude'])})$)\"",
        '"PreToolUse": "^(Write|Edit|MultiEdit|NotebookEdit|Bash|PowerShell|Monitor|mcp__.*)$"',
        (
            "tests/unit/transports/cli/handlers/test_setup.py::test_hooks_are_set_for_all_that_the_client_knows",
        ),
    ),
    Mutant(
        "hooks that a call switched off stay off",
        "coord.integrations.shell_effects.compare:ShellCall.compare_state",
        "notes = check.check(before.enforcement)",
        "notes: list[str] = []",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_a_change_is_put_back_and_reported",
        ),
    ),
    Mutant(
        "what coord init changed is undone",
        "coord.integrations.shell_effects.enforcement_files:EnforcementCheck.check",
        "or journal in changed",
        "",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_what_coord_init_changes_stays",
        ),
    ),
    Mutant(
        "what a person changed in coord.toml is undone",
        "coord.integrations.shell_effects.enforcement_files:EnforcementCheck._check_file",
        "_needs_proof(path) and",
        "False and",
        ("tests/unit/integrations/shell_effects/test_enforcement_files.py::test_coord_toml_takes_proof",),
    ),
    Mutant(
        "a permission that a person gave is undone",
        "coord.integrations.shell_effects.enforcement_files:_changes_enforcement",
        "_hook_fields(before) != _hook_fields(now)",
        "True",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_what_programs_change_there_rightly_stays",
        ),
    ),
    Mutant(
        "a link to settings is put back as a file",
        "coord.integrations.shell_effects.enforcement_files:EnforcementCheck._put_back",
        "stat.S_ISLNK(mode)",
        "False",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_settings_behind_a_link_are_put_back_with_their_link",
        ),
    ),
    Mutant(
        "settings behind a link are not seen",
        "coord.integrations.shell_effects.enforcement_files:enforcement_files",
        "for path in found if os.path.islink(path)",
        "for path in ()",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_settings_behind_a_link_are_put_back_with_their_link",
        ),
    ),
    Mutant(
        "the user's configuration of git is not seen",
        "coord.integrations.hooks.protected_files:settings_files",
        ", *user_files(environ))",
        ")",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_the_git_configuration_of_the_user_is_put_back",
        ),
    ),
    Mutant(
        "nobody hears that an agent changed the hooks",
        "coord.integrations.shell_effects.enforcement_files:EnforcementCheck._check_file",
        "self._report(path, restored=done)",
        "pass",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_a_change_is_put_back_and_reported",
        ),
    ),
    Mutant(
        "a file in doubt is restored",
        "coord.integrations.shell_effects.attribution:Attribution.report",
        "if restore and not each.doubt",
        "if restore",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_holder_at_work_leaves_the_author_unknown",
        ),
    ),
    Mutant(
        "the content before a file in doubt is not kept",
        "coord.integrations.shell_effects.attribution:Attribution.report",
        "kept = self._keep(finding, former.get(finding.change.path))",
        'kept = ""',
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_a_holder_at_work_leaves_the_author_unknown",
        ),
    ),
    Mutant(
        "a changed file of a holder without hooks is not saved before a command",
        "coord.integrations.shell_effects.compare:ShellCall.record_state",
        "held = record_held(self._connection, self._git, self._folder, state.files, calls)",
        "pass",
        ("tests/unit/integrations/shell_effects/test_observe.py::test_what_the_call_contains_is_evidence",),
    ),
    Mutant(
        "content written over a locked file is not salvaged",
        "coord.integrations.shell_effects.restore:Restorer._salvage",
        "ref = save_blobs(self._git, self._session, entries, why)",
        'ref = "HEAD"',
        ("tests/unit/integrations/shell_effects/test_restore.py::test_both_sides_keep_every_byte",),
    ),
    Mutant(
        "filters change what is salvaged",
        "coord.integrations.shell_effects.saved_content:_store",
        '"hash-object", "-w", "--no-filters", "--"',
        '"hash-object", "-w", "--"',
        ("tests/unit/integrations/shell_effects/test_restore.py::test_both_sides_keep_every_byte",),
    ),
    Mutant(
        "what the holder writes after the command is overwritten",
        "coord.integrations.shell_effects.restore:Restorer.restore",
        "elif path in same and _is_same(now, file_stat(self._git.folder, path)):",
        "elif path in same:",
        (
            "tests/unit/integrations/shell_effects/test_restore.py::test_what_the_holder_writes_after_the_command_stays",
        ),
    ),
    Mutant(
        "a file in place of a folder stops the restore",
        "coord.integrations.shell_effects.restore:Restorer._clear_above",
        "moved[above] = self._move_away(above)",
        'return ""',
        (
            "tests/unit/integrations/shell_effects/test_restore.py::test_whatever_was_done_the_holder_has_its_file",
        ),
    ),
    Mutant(
        "a deleted folder is not made again",
        "coord.integrations.shell_effects.restore:restore_content",
        "make=content is not None",
        "make=False",
        (
            "tests/unit/integrations/shell_effects/test_restore.py::test_whatever_was_done_the_holder_has_its_file",
        ),
    ),
    Mutant(
        "secrets get into the repository",
        "coord.integrations.shell_effects.saved_content:store_files",
        "if path not in ignored",
        "",
        (
            "tests/unit/integrations/shell_effects/test_observe.py::test_ignored_files_are_kept_out_of_the_repository",
        ),
    ),
    Mutant(
        "staged content is lost",
        "coord.integrations.shell_effects.restore:restore_index",
        "if staged:",
        "if not staged:",
        ("tests/unit/integrations/shell_effects/test_restore.py::test_staged_content_is_staged_again",),
    ),
    Mutant(
        "a checkout of another commit is undone",
        "coord.integrations.shell_effects.attribution:Attribution.add",
        "if not doubt and from_git:",
        "if not doubt and not from_git and False:",
        ("tests/unit/integrations/shell_effects/test_restore.py::test_a_file_that_git_brings_is_left",),
    ),
    Mutant(
        "nobody hears of a write in the background",
        "coord.integrations.shell_effects.held_files:record_held",
        "_report_unseen_change(connection, git, folder, calls, path, each, unsaved[path])",
        "pass",
        (
            "tests/unit/integrations/shell_effects/test_restore.py::test_a_background_process_is_reported_with_the_next_call",
        ),
    ),
    Mutant(
        "a call whose state before is lost counts as checked",
        "coord.integrations.shell_effects.compare:ShellCall.compare_state",
        "return NOT_CHECKED",
        'return ""',
        ("tests/unit/integrations/shell_effects/test_observe.py::test_damaged_files_of_ours_stop_nothing",),
    ),
    Mutant(
        "a name that cannot be locked is not protected by its folder",
        "coord.integrations.shell_effects.compare:ShellCall._report_changes",
        "texts = {**names, **unlockable}",
        "texts = names",
        (
            "tests/unit/integrations/shell_effects/test_restore.py::test_a_name_that_cannot_be_locked_is_covered_by_its_folder",
        ),
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
        "a changed file is not seen once it is committed",
        "coord.integrations.shell_effects.worktree_state:_answers",
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
        "self._lock({path: names[path] for path in free[:LOCKS_MAX]})",
        "list[str](), dict[str, list[LockInfo]]()",
        ("tests/unit/integrations/shell_effects/test_observe.py::test_a_free_file_is_locked_after_the_fact",),
    ),
    Mutant(
        "a repository that an agent made bare stays so",
        "coord.integrations.shell_effects.enforcement_files:GIT_KEYS",
        ', "core.bare"',
        "",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_a_change_is_put_back_and_reported",
        ),
    ),
    Mutant(
        "a configuration that git cannot read stays",
        "coord.integrations.shell_effects.enforcement_files:_git_settings",
        '["unreadable"]',
        "[]",
        (
            "tests/unit/integrations/shell_effects/test_enforcement_files.py::test_the_git_configuration_of_the_user_is_put_back",
        ),
    ),
]
