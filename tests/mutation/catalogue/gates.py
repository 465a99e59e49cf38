"""Mutants of the git gates: which commits count as checked, and what a caller could change about that."""

from tests.mutation.mutant import Mutant

_TESTS = "tests/unit/integrations/git/gate/test_ref_moves.py"

MUTANTS = [
    Mutant(
        "a branch that was moved without its gate is trusted",
        "coord.integrations.git.gate.accepted:ProtectedBranch.known",
        "self.accepted if self.bypassed or not self.tip else (self.tip,)",
        "(self.tip,) if self.tip else ()",
        (f"{_TESTS}::test_way_to_move_a_branch[branch -C]",),
    ),
    Mutant(
        "a branch of any remote counts as checked",
        "coord.integrations.git.gate.hooks:_check_move",
        "known = [tip for each in branches for tip in each.known]",
        'known = [*(tip for each in branches for tip in each.known), *tips(gate.git, "refs/remotes/")]',
        (
            f"{_TESTS}::test_way_to_move_a_branch[refs/remotes]",
            f"{_TESTS}::test_way_into_a_shared_repository[refs/remotes]",
        ),
    ),
    Mutant(
        "a remote that an agent added counts",
        "coord.integrations.git.gate.upstream:note_trusted",
        "if by:",
        "if False:",
        (f"{_TESTS}::test_only_noted_remotes_count",),
    ),
    Mutant(
        "a noted remote may be answered from elsewhere",
        "coord.integrations.git.gate.upstream:_tips",
        'git.run("ls-remote", "--get-url", "--", address).text != address',
        "not address",
        (f"{_TESTS}::test_only_noted_remotes_count",),
    ),
    Mutant(
        "an agent renames a branch to main unchecked",
        "coord.integrations.git.gate.hooks:_reference_transaction",
        'if new.strip("0") or renamed.tip:',
        'if new.strip("0"):',
        (f"{_TESTS}::test_way_to_move_a_branch_freely[branch -M]",),
    ),
    Mutant(
        "a branch that may not be renamed is lost",
        "coord.integrations.git.gate.hooks:_reference_transaction",
        "if code and renamed.tip:",
        "if False:",
        (f"{_TESTS}::test_way_to_move_a_branch[branch -M]",),
    ),
    Mutant(
        "an agent deletes a protected branch",
        "coord.integrations.git.gate.hooks:_reference_transaction",
        "elif not gate.person and not _prunes(gate, branch):",
        "elif False:",
        (f"{_TESTS}::test_agent_cannot_delete_a_protected_branch",),
    ),
    Mutant(
        "packing refs counts as deleting them",
        "coord.integrations.git.gate.hooks:_prunes",
        'return f"{branch.tip} {branch.ref}\\n" in file',
        "return False",
        (f"{_TESTS}::test_what_moves_no_protected_branch_is_free[pack-refs]",),
    ),
    Mutant(
        "a branch that main leads to moves unchecked",
        "coord.integrations.git.gate.hooks:_moved",
        "if ref in (branch.ref, branch.target)",
        "if ref == branch.ref",
        (f"{_TESTS}::test_protected_symbolic_ref_moves_with_its_branch",),
    ),
    Mutant(
        "the caller's tenant decides by whose locks a gate checks",
        "coord.integrations.git.gate.hooks:_tenant",
        "return ours or theirs",
        "return theirs",
        (f"{_TESTS}::test_way_into_a_shared_repository[COORD_TENANT]",),
    ),
    Mutant(
        "a local gate follows another tenant silently",
        "coord.integrations.git.gate.hooks:_tenant",
        "if ours and ours != theirs and not shared:",
        "ours = ours if shared else theirs\n    if False:",
        (f"{_TESTS}::test_environment_does_not_move_the_judgement[COORD_TENANT]",),
    ),
    Mutant(
        "a gate believes whatever repository git names",
        "coord.integrations.git.gate.hooks:_check_repository",
        "if stub and commondir_of_stub(stub) != commondir:",
        "if False:",
        (f"{_TESTS}::test_environment_does_not_move_the_judgement[GIT_COMMON_DIR]",),
    ),
    Mutant(
        "a gate reads the objects that its caller names",
        "coord.integrations.git.gate.environment:_KEPT",
        '"GIT_PREFIX"',
        '"GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"',
        (f"{_TESTS}::test_environment_does_not_move_the_judgement[GIT_OBJECT_DIRECTORY]",),
    ),
    Mutant(
        "a gate believes in grafts",
        "coord.integrations.git.gate.environment:gate_git",
        '"GIT_GRAFT_FILE": os.devnull, ',
        "",
        (f"{_TESTS}::test_way_to_move_a_branch[grafts]",),
    ),
    Mutant(
        "a gate runs the git that its caller names",
        "coord.integrations.git.gate.environment:gate_git",
        "if not foreign or each != foreign",
        "if each",
        (f"{_TESTS}::test_environment_does_not_move_the_judgement[GIT_EXEC_PATH]",),
    ),
    Mutant(
        "a stub reads its input with the caller's programs",
        "coord.integrations.git.gate.stubs:_LINES",
        "PATH=/usr/bin:/bin:$PATH; cat",
        "cat",
        (f"{_TESTS}::test_environment_does_not_move_the_judgement[PATH]",),
    ),
    Mutant(
        "only pushes are checked in a shared repository",
        "coord.integrations.git.gate.stubs:SHARED_HOOKS",
        '(SHARED_HOOK, "reference-transaction")',
        "(SHARED_HOOK,)",
        (f"{_TESTS}::test_way_into_a_shared_repository[fetch there]",),
    ),
    Mutant(
        "an agent replaces what all branches show",
        "coord.integrations.git.gate.hooks:_reference_transaction",
        "if ref.startswith(REPLACE)",
        "if False",
        (f"{_TESTS}::test_agent_cannot_replace_what_main_shows",),
    ),
]
