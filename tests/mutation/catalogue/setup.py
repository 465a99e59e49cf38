"""Mutants of `coord init`, `coord uninstall` and the checks of the doctor for hooks."""

from tests.mutation.mutant import Mutant

_SETUP = "coord.integrations.setup"
_FILES = "tests/unit/integrations/setup"
_CLI = "tests/unit/transports/cli/handlers"
_TEMPLATES = "tests/unit/integrations/git/worktree/test_templates.py"

MUTANTS = [
    Mutant(
        "init hides that a tool is not protected",
        "coord.transports.cli.handlers.setup:_with_problems",
        "failure=failure",
        "failure=None",
        (f"{_CLI}/test_setup.py::test_a_tool_without_protection_fails_the_setup",),
    ),
    Mutant(
        "an agent may replace the store",
        "coord.transports.cli.handlers.setup:init",
        "args.new_store and _tool()",
        "False",
        (f"{_CLI}/test_setup.py::test_an_agent_does_not_take_its_hooks_out",),
    ),
    Mutant(
        "an agent may withdraw a consent",
        "coord.transports.cli.handlers.trust:trust",
        '_refuse_agent(f"withdraw the consent to {found.file}")',
        "pass",
        (f"{_CLI}/test_trust.py::test_an_agent_cannot_confirm",),
    ),
    Mutant(
        "init ignores a switch that disables hooks",
        f"{_SETUP}.agent_files:AgentFiles.plan",
        "disabling_setting(tool, self._root, self._environ)",
        "None",
        (f"{_FILES}/test_agent_files.py::test_a_tool_that_cannot_be_protected",),
    ),
    Mutant(
        "init writes through a link out of the repository",
        f"{_SETUP}.agent_files:AgentFiles._real",
        "not path.startswith(",
        "False and path.startswith(",
        (f"{_FILES}/test_agent_files.py::test_a_tool_that_cannot_be_protected",),
    ),
    Mutant(
        "init drops the tools of an earlier init",
        f"{_SETUP}.installer:tools_with",
        "tool in added or tool.name in had",
        "tool in added",
        (f"{_CLI}/test_setup.py::test_tools_are_added_and_removed_by_name",),
    ),
    Mutant(
        "a removal without a journal is open to agents",
        f"{_SETUP}.changes:Plan.apply",
        "(installed or self.removes)",
        "installed",
        (f"{_FILES}/test_removal.py::test_an_agent_removes_nothing_either_way",),
    ),
    Mutant(
        "uninstall finds nothing without its journal",
        f"{_SETUP}.removal:plan_removal",
        "plan_unrecorded_removal(planner, git, root, TOOLS)",
        "pass",
        (f"{_FILES}/test_removal.py::test_everything_goes_without_the_folder_of_coord",),
    ),
    Mutant(
        "a killed setup leaves its drafts",
        f"{_SETUP}.changes:Plan.apply",
        "remove_draft(path)",
        "pass",
        (f"{_FILES}/test_kills.py",),
    ),
    Mutant(
        "a killed removal forgets what it was doing",
        f"{_SETUP}.changes:Plan.apply",
        "write_journal(self.folder, under_way)",
        "pass",
        (f"{_FILES}/test_kills.py",),
    ),
    Mutant(
        "a former hook loses both of its names for a moment",
        f"{_SETUP}.changes:Planner._former_hook",
        "named is None or named == current or SIGNATURE in named.data",
        "named is None or SIGNATURE in named.data",
        (f"{_FILES}/test_kills.py",),
    ),
    Mutant(
        "coord worktree add leaves agents without hooks",
        "coord.integrations.git.worktree.worktree:_finish_setup",
        "restore_templates(repository.commondir)",
        "pass",
        (f"{_TEMPLATES}::test_a_worktree_of_coord_has_hooks",),
    ),
    Mutant(
        "no command gives a worktree its hooks",
        "coord.transports.cli.connect:connected",
        "restore_templates(client.location.repository.commondir)",
        "pass",
        (f"{_TEMPLATES}::test_the_next_command_closes_the_gap",),
    ),
    Mutant(
        "no hook gives a worktree its hooks",
        "coord.integrations.hooks.handler:HookHandler._restore_templates",
        "restore_templates(home.repository.commondir)",
        "pass",
        (f"{_TEMPLATES}::test_the_hooks_of_agents_close_the_gap",),
    ),
    Mutant(
        "templates are written through a link",
        "coord.integrations.git.worktree.templates:_copy",
        'f"{os.path.realpath(folder)}/".startswith(f"{inside}/")',
        "True",
        (f"{_TEMPLATES}::test_nothing_is_written_through_a_link",),
    ),
    Mutant(
        "the doctor looks at one worktree only",
        f"{_SETUP}.checks:_check_worktrees",
        "_worktrees(repository)[1:]",
        "list[str]()",
        (f"{_TEMPLATES}::test_the_doctor_repairs_every_worktree",),
    ),
    Mutant(
        "a hook whose program is gone lets a call pass",
        f"{_SETUP}.tools:_refuse",
        "exit 2",
        "exit 1",
        (f"{_FILES}/test_tools.py::test_a_program_that_is_gone",),
    ),
    Mutant(
        "a hook that fails lets a call pass",
        f"{_SETUP}.tools:_watched",
        ">&2; exit 2",
        ">&2; exit 1",
        (f"{_FILES}/test_tools.py::test_a_program_that_fails",),
    ),
    Mutant(
        "the shell takes a failed hook for an answer of the hook",
        f"{_SETUP}.probe:probe_hook",
        "if failure:",
        "if False:",
        (f"{_CLI}/test_setup_doctor.py::test_a_hook_that_only_its_shell_answers_is_noticed",),
    ),
    Mutant(
        "the doctor does not measure a hook",
        f"{_SETUP}.probe:probe_hook",
        "took > deadline_s()",
        "False",
        (f"{_CLI}/test_setup_doctor.py::test_a_hook_that_is_too_slow_is_noticed",),
    ),
    Mutant(
        "a cache counts as an installation",
        f"{_SETUP}.ephemeral:is_ephemeral",
        "if above in tops or",
        "if",
        (f"{_FILES}/test_ephemeral.py::test_where_a_program_does_not_stay",),
    ),
    Mutant(
        "the doctor forgets that a program may vanish",
        f"{_SETUP}.checks:examine_hooks",
        "if journal.ephemeral:",
        "if False:",
        (f"{_CLI}/test_setup_doctor.py::test_an_ephemeral_program_is_reported",),
    ),
    Mutant(
        "nobody hears that codex --worktree has no hooks",
        "coord.integrations.setup.checks:examine_hooks",
        "found += _check_codex_worktrees(root, environ)",
        "pass",
        (
            "tests/unit/transports/cli/handlers/test_setup_doctor.py::test_codex_worktrees_without_hooks_are_told",
        ),
    ),
]
