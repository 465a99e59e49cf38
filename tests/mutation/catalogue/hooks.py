"""Mutants of the hooks that stand between a tool and a file."""

from tests.mutation.mutant import Mutant

MUTANTS = [
    Mutant(
        "a hook lets a tool pass when the store was removed",
        "coord.integrations.hooks.targets:_in_use",
        "location.pinned or not event.installed_for or location.repository is None",
        "True",
        (
            "tests/unit/integrations/hooks/test_handler.py::test_where_the_store_was_removed_the_hook_does_not_guess",
        ),
    ),
    Mutant(
        "a hook does not see background processes of a shell",
        "coord.integrations.hooks.handler:HookHandler._before",
        '(self.event.background or outlives_call(self.event.command or ""))',
        "self.event.background",
        ("tests/unit/integrations/hooks/test_handler.py::test_an_action_does_not_outlive_its_line",),
    ),
    Mutant(
        "a hook looks at a patch of two worktrees in one of them",
        "coord.integrations.hooks.targets:targets_of",
        "target.worktree",
        'worktree_of(home) if home else ""',
        (
            "tests/unit/integrations/hooks/test_handler.py::test_a_patch_of_two_worktrees_is_looked_at_in_both",
        ),
    ),
    Mutant(
        "a hook does not report that tools write single files",
        "coord.integrations.hooks.handler:HookHandler._begin",
        "exact=target.exact,",
        "",
        ("tests/unit/integrations/hooks/test_handler.py::test_beside_a_held_glob_other_files_are_written",),
    ),
    Mutant(
        "a refusal in one store keeps the locks taken in another",
        "coord.integrations.hooks.handler:HookHandler._before",
        "self._undo(begun)",
        "pass",
        (
            "tests/unit/integrations/hooks/test_handler.py::test_an_action_of_the_host_is_locked_for_all_repositories",
        ),
    ),
    Mutant(
        "a hook leaves half-done edits of a session that lost the lock",
        "coord.integrations.hooks.handler:HookHandler._before",
        "reply.after_loss",
        "reply.after_loss and not reply.ok",
        ("tests/unit/integrations/hooks/test_handler.py::test_what_the_last_holder_left_is_put_aside_first",),
    ),
    Mutant(
        "an ignored file counts as clean",
        "coord.integrations.git.clean_files:_changed",
        "traditional",
        "no",
        ("tests/unit/integrations/hooks/test_handler.py::test_an_ignored_file_is_not_clean",),
    ),
    Mutant(
        "a hook looks for a file in the wrong worktree",
        "coord.integrations.hooks.targets:_target_of",
        "location, repository.root",
        "location, (location.repository or repository).root or ''",
        ("tests/unit/integrations/hooks/test_handler.py::test_an_edit_in_a_worktree_is_looked_at_there",),
    ),
    Mutant(
        "a sub-agent acts as its session",
        "coord.integrations.hooks.identity:owner_of",
        'check_id("session id", f"{session}.{event.agent}") if event.agent else ',
        "",
        ("tests/unit/integrations/hooks/test_handler.py::test_a_sub_agent_owns_what_it_edits",),
    ),
    Mutant(
        "an agent may edit the configuration of its hooks",
        "coord.integrations.hooks.protected_files:check_edit",
        "is_configuration(os.path.join(event.cwd, path))",
        "False",
        (
            "tests/unit/integrations/hooks/test_shell_parser.py::test_the_configuration_of_hooks_is_for_people",
        ),
    ),
    Mutant(
        "a hook ignores a command behind a wrapper",
        "coord.integrations.hooks.shell_parser:_parse_scripts",
        "scripts += [script for words in commands for script in _scripts(words)]",
        "pass",
        ("tests/unit/integrations/hooks/test_shell_parser.py::test_what_needs_which_lock",),
    ),
    Mutant(
        "a command line that redirects counts as read-only",
        "coord.integrations.hooks.shell_parser:OUTPUT_SIGNS",
        '(">", "`", "$(", "<(", "--output")',
        '("`", "$(", "<(")',
        ("tests/unit/integrations/hooks/test_shell_parser.py::test_what_is_known_for_only_reading",),
    ),
    Mutant(
        "an orphaned hook registers its session",
        "coord.integrations.hooks.main:Hook._answer",
        "if runs.gone:",
        "if False:",
        ("tests/system/processes/test_identity.py::test_a_tool_killed_while_its_hook_starts_leaves_nothing",),
    ),
    Mutant(
        "a session is told of those in other repositories",
        "coord.integrations.hooks.welcome:welcome",
        " and _works_here(peer, client)",
        "",
        ("tests/unit/integrations/hooks/test_welcome.py::test_a_start_speaks_of_this_repository_only",),
    ),
]
