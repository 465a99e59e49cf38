"""The mutants of commits, worktrees and work put aside."""

from tests.mutants.mutant import Mutant

COMMIT, EXCHANGE, CLEAN = (
    "integrations/git/commit/commit.py",
    "integrations/git/salvage/swap.py",
    "integrations/git/worktree/clean.py",
)


def record(name: str) -> tuple[str, ...]:
    """A test of the record of a commit."""
    return ("tests/unit/core/test_git_log.py", "-k", name)


def salvage(name: str) -> tuple[str, ...]:
    """A test of putting work aside."""
    return (f"tests/unit/integrations/git/salvage/test_salvage.py::test_{name}",)


def cleaning(name: str) -> tuple[str, ...]:
    """A test of worktrees."""
    return (f"tests/unit/integrations/git/worktree/test_worktree.py::test_{name}",)


GIT_MUTANTS = [
    Mutant(
        "a commit under a lapsed lock is recorded",
        "core/git_log.py",
        " or ended_by_time(hold, now) is not None:\n",
        ":\n",
        record("ran"),
    ),
    Mutant(
        "a commit under another fence is recorded",
        "core/git_log.py",
        " or hold.fence != fence",
        "",
        record("other"),
    ),
    Mutant(
        "a loss is forgotten",
        "core/locks/locks.py",
        "lost_ms=until_ms if ending in LOST else 0",
        "lost_ms=0",
        record("stolen"),
    ),
    Mutant(
        "a commit without gates is not signed",
        COMMIT,
        "    text = signed(git, client, client.caller, message, [change.path for change in files])\n",
        "    text = message\n",
        ("tests/unit/integrations/git/commit/test_commit.py::test_a_commit_is_signed_once",),
    ),
    Mutant(
        "what others staged is swept into a commit",
        COMMIT,
        '"--only", ',
        '"--include", ',
        ("tests/unit/integrations/git/commit/test_commit.py::test_scn_48_only_what_is_held_is_committed",),
    ),
    Mutant(
        "what was written meanwhile is restored over",
        EXCHANGE,
        "    if snapshot(git, head, paths) != tree_of(git, kept_in):\n",
        "    if False:\n",
        salvage("what_changed_since_is_not_restored"),
    ),
    Mutant(
        "what was written at the last moment is thrown away",
        EXCHANGE,
        'more = keep_taken(git, name, f"{work}/taken", taken, beside=kept_in, why=why)',
        'more = ""',
        salvage("no_byte_is_lost_that_comes_at_the_worst_moment"),
    ),
    Mutant(
        "unmerged worktrees are cleaned",
        CLEAN,
        "    if standing.unmerged:\n",
        "    if False:\n",
        cleaning("cleaning_removes_only_what_would_not_be_lost"),
    ),
]
