"""Mutants of reading without writing, and of what a sandbox may write."""

from tests.mutation.mutant import Mutant

SETUP = "tests/unit/integrations/setup/test_sandbox.py"
CHECKS = "tests/unit/integrations/setup/test_sandbox_checks.py"
READ_ONLY = "tests/unit/stores/sqlite/test_read_only.py"

MUTANTS = [
    Mutant(
        "a WAL that cannot be read is ignored",
        "coord.stores.sqlite.read_only:Reader._lock_closed_file",
        'os.path.exists(f"{self._path}-wal")',
        "False",
        (f"{READ_ONLY}::test_a_wal_that_cannot_be_read_is_not_ignored",),
    ),
    Mutant(
        "a reader takes the file for the whole state beside a WAL",
        "coord.stores.sqlite.read_only:Reader.connect",
        'os.path.exists(f"{self._path}-shm")',
        "False",
        (f"{READ_ONLY}::test_the_wal_of_a_killed_writer_is_read",),
    ),
    Mutant(
        "a reader does not notice that somebody opened the file",
        "coord.stores.sqlite.read_only:Reader.is_outdated",
        "self._file >= 0",
        "False",
        (f"{READ_ONLY}::test_a_reader_that_stays_sees_every_commit",),
    ),
    Mutant(
        "a reader holds no lock, so a writer comes and goes unnoticed",
        "coord.stores.sqlite.read_only:Reader._lock_closed_file",
        "lock_bytes(self._file, fcntl.F_RDLCK, _SHARED_FIRST, _SHARED_SIZE)",
        "pass",
        (f"{READ_ONLY}::test_a_writer_that_came_and_went_is_noticed",),
    ),
    Mutant(
        "a reader takes pages from before and after a checkpoint for one state",
        "coord.stores.sqlite.read_only:Reader.check",
        "self._now() != self._status",
        "False",
        (f"{READ_ONLY}::test_what_was_read_while_the_file_changed_is_refused",),
    ),
    Mutant(
        "opening a store takes the write lock",
        "coord.stores.sqlite.store:SqliteDatabase._prepare",
        "self.reading() if tables else self.writing()",
        "self.writing()",
        (f"{READ_ONLY}::test_opening_a_store_needs_no_write_lock",),
    ),
    Mutant(
        "init leaves the log of the tenant to the first command",
        "coord.sdk.client.open:initialise",
        "database.log(find_tenant(environ))",
        "pass",
        ("tests/unit/transports/cli/test_read_only.py::test_a_whole_repository_may_be_read_only",),
    ),
    Mutant(
        "the sandbox may write the pin and the copies of hooks",
        "coord.integrations.setup.sandbox:store_folder",
        'f"{commondir}/coord/{STORE_FOLDER}"',
        'f"{commondir}/coord"',
        (f"{SETUP}::test_only_the_folder_of_the_store_is_writable",),
    ),
    Mutant(
        "the sandbox may write the folder of any SQLite file",
        "coord.integrations.setup.sandbox:store_folder",
        'local_path(pin.url) if scheme_of(pin.url) == "file" else ""',
        "os.path.dirname(local_path(pin.url))",
        (f"{SETUP}::test_a_store_elsewhere",),
    ),
    Mutant(
        "the roots of the user are lost",
        "coord.integrations.setup.sandbox:plan_sandbox",
        "_user_roots(environ)",
        "[]",
        (f"{SETUP}::test_the_roots_of_the_user_stay_writable",),
    ),
    Mutant(
        "a configuration in git is changed",
        "coord.integrations.setup.sandbox:_plan_config",
        "git.tracked(worktree, [CONFIG])",
        "False",
        (f"{SETUP}::test_a_file_in_git_stays_and_the_way_out_is_named",),
    ),
    Mutant(
        "a root is added wherever the text looks right",
        "coord.integrations.setup.text.toml_edit:with_root",
        "if parse(edited) == wanted",
        "if edited",
        ("tests/unit/integrations/setup/text/test_toml_edit.py::test_a_root_comes_and_goes",),
    ),
    Mutant(
        "uninstall leaves the copies in worktrees",
        "coord.integrations.setup.unrecorded:plan_unrecorded_removal",
        "CODEX in tools and CONFIG not in tracked",
        "False",
        (f"{SETUP}::test_a_copy_that_no_journal_names_is_removed",),
    ),
    Mutant(
        "the doctor believes in the sandbox without trying it",
        "coord.integrations.setup.sandbox_checks:_check",
        'if "store" in said:',
        "if said:",
        (f"{CHECKS}::test_a_store_that_cannot_be_written_names_the_next_step",),
    ),
    Mutant(
        "the doctor does not notice a sandbox that may write the hooks of git",
        "coord.integrations.setup.sandbox_checks:_check",
        'if "git" in said:',
        "if False:",
        (f"{CHECKS}::test_a_sandbox_that_lets_too_much_through",),
    ),
    Mutant(
        "a sandbox that does not start passes for one that works",
        "coord.integrations.setup.sandbox_checks:_check",
        'if "ran" not in said:',
        "if False:",
        (f"{CHECKS}::test_a_sandbox_that_does_not_start",),
    ),
    Mutant(
        "coord commit leaves the reason to git",
        "coord.integrations.git.writable:require_writable_git",
        "if not os.access(folder, os.W_OK):",
        "if False:",
        ("tests/unit/integrations/git/test_writable.py::test_a_commit_says_what_to_do",),
    ),
    Mutant(
        "a merge in a sandbox ends with git's own error",
        "coord.integrations.git.merge.merge:merge",
        'require_writable_git(client.location.repository, "coord merge")',
        "pass",
        ("tests/unit/integrations/git/test_writable.py",),
    ),
    Mutant(
        "a worktree in a sandbox ends with git's own error",
        "coord.integrations.git.worktree.worktree:add",
        'require_writable_git(client.location.repository, "coord worktree add")',
        "pass",
        ("tests/unit/integrations/git/test_writable.py",),
    ),
]
