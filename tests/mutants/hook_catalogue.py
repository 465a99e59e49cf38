"""The mutants of hooks: of the rules about calls, and of what stands between a tool and a file."""

from tests.mutants.mutant import Mutant

CALL, HOOKS = "core/locks/tool_calls.py", "integrations/hooks"


def call(name: str) -> tuple[str, ...]:
    """A test of the rules of calls."""
    return (f"tests/unit/core/locks/test_tool_calls.py::test_{name}",)


def gate(name: str) -> tuple[str, ...]:
    """A test of what the hook does about events."""
    return (f"tests/unit/integrations/hooks/test_handler.py::test_{name}",)


def shell(name: str) -> tuple[str, ...]:
    """A test of what is told from a command line."""
    return (f"tests/unit/integrations/hooks/test_shell_parser.py::test_{name}",)


HOOK_MUTANTS = [
    Mutant(
        "a hook is silent where the store was removed",
        f"{HOOKS}/targets.py",
        "if place.pinned or not event.installed or place.repository is None:",
        "if True:",
        gate("where_the_store_was_removed_the_hook_does_not_guess"),
    ),
    Mutant(
        "what a shell leaves in the background is not seen",
        f"{HOOKS}/handler.py",
        'if named and (self.event.background or goes_on(self.event.command or "")):',
        "if named and self.event.background:",
        gate("an_action_does_not_outlive_its_line"),
    ),
    Mutant(
        "a patch of two worktrees is looked at in one",
        f"{HOOKS}/targets.py",
        "where = (part.place.folder, part.worktree)",
        'where = (part.place.folder, root_of(home) if home else "")',
        gate("a_patch_of_two_worktrees_is_looked_at_in_both"),
    ),
    Mutant(
        "a file is given back although a call is about to write it",
        CALL,
        "if _under_way(session, now) or not command.resources:",
        "if not command.resources:",
        call("nothing_is_given_back_while_a_call_is_under_way"),
    ),
    Mutant(
        "a hook gives back what its session asked for by name",
        CALL,
        "if named and standing.hold.worktree and",
        "if named and",
        call("what_was_asked_for_by_name_keeps_its_terms"),
    ),
    Mutant(
        "a hook does not say that tools write files",
        "integrations/hooks/handler.py",
        "            alone=part.alone,\n",
        "",
        gate("beside_a_held_glob_other_files_are_written"),
    ),
    Mutant(
        "a read lock of one's own is taken for a right to write",
        CALL,
        "hold is None or hold.mode is Mode.READ or",
        "hold is None or",
        call("a_read_lock_of_its_own_is_no_right_to_write"),
    ),
    Mutant(
        "who had the file since a lock lapsed is not looked for",
        CALL,
        "        if taken is not None:\n",
        "        if taken is not None and False:\n",
        call("a_lapsed_lock_that_somebody_had_since_is_refused_once"),
    ),
    Mutant(
        "a lock that was promised to another is prolonged",
        CALL,
        "if hold is None or hold.preempted_by or hold.provisional",
        "if hold is None or hold.provisional",
        call("who_was_asked_to_give_way_is_not_renewed"),
    ),
    Mutant(
        "a sub-agent's calls do not keep the locks it works under",
        CALL,
        "    for name in ancestors(view, session.session_id):\n",
        "    for name in ancestors(view, session.session_id)[:0]:\n",
        call("a_call_of_a_sub_agent_keeps_what_its_session_holds"),
    ),
    Mutant(
        "a refusal in one store keeps what was taken in another",
        f"{HOOKS}/handler.py",
        "                self._undo(begun)\n",
        "",
        gate("an_action_of_the_host_is_locked_for_all_repositories"),
    ),
    Mutant(
        "a hook leaves half-done edits of who lost the lock",
        f"{HOOKS}/handler.py",
        "            if reply.after_loss:\n",
        "            if reply.after_loss and not reply.ok:\n",
        gate("what_the_last_holder_left_is_put_aside_first"),
    ),
    Mutant(
        "an ignored file counts as clean",
        "integrations/git/clean_files.py",
        '"--ignored=traditional"',
        '"--ignored=no"',
        gate("an_ignored_file_is_not_clean"),
    ),
    Mutant(
        "a file is looked at in the wrong worktree",
        f"{HOOKS}/targets.py",
        "return Part(place, repository.root, texts)",
        "return Part(place, (place.repository or repository).root or '', texts)",
        gate("an_edit_in_a_worktree_is_looked_at_there"),
    ),
    Mutant(
        "a sub-agent is taken for its session",
        f"{HOOKS}/identity.py",
        'check_id("session id", f"{session}.{event.agent}") if event.agent else session',
        "session",
        gate("a_sub_agent_owns_what_it_edits"),
    ),
    Mutant(
        "an agent may edit what holds it",
        f"{HOOKS}/protected_files.py",
        "if is_configuration(os.path.join(event.cwd, path)):",
        "if False:",
        shell("the_configuration_of_hooks_is_for_people"),
    ),
    Mutant(
        "a command behind a wrapper is not looked at",
        f"{HOOKS}/shell_parser.py",
        "        scripts += [script for words in commands for script in _scripts(words)]\n",
        "",
        shell("what_needs_which_lock"),
    ),
    Mutant(
        "a line that redirects counts as one that reads",
        f"{HOOKS}/shell_parser.py",
        '(">", "`", "$(", "<(", "--output")',
        '("`", "$(", "<(")',
        shell("what_is_known_for_only_reading"),
    ),
]
