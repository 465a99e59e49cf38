"""Named locks: which commands and which files need one."""

import pytest

from coord.integrations.hooks.named_locks import ACTIONS, Action, locks_for, locks_for_paths
from coord.integrations.shell_commands.line import CommandLine


def locks(
    line: str, actions: tuple[Action, ...] = ACTIONS, branch: str = "", main_tree: bool = True
) -> tuple[str, ...]:
    """The locks that a line needs, by its commands and by the files that it writes."""
    read = CommandLine(line, "/", {"HOME": "/home/x"})
    found = locks_for(read.words(), actions, branch=branch, main_tree=main_tree)
    paths = [(write.path, write.tree) for write in read.writes]
    return tuple(sorted({*found, *locks_for_paths(paths, actions, "/home/x")}))


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("git checkout main", ["name:main-branch"]),
        ("git switch main", ["name:main-branch"]),
        ("git -C ../there -c a=b checkout -f master", ["name:main-branch"]),
        ("git checkout -b maintenance", []),
        ("git checkout feature/main-thing", []),
        ("git push origin main", ["name:main-push"]),
        ("git push -f origin HEAD:main", ["name:main-push"]),
        ("git push origin feature:refs/heads/main", ["name:main-push"]),
        ("git push origin feature", []),
        ("git push --all", ["name:main-push"]),
        ("make && git push origin main || true", ["name:main-push"]),
        ("cd x; GIT_SSH=y sudo -E git push origin main", ["name:main-push"]),
        ("bash -lc 'git push origin main'", ["name:main-push"]),
        ("echo $(git push origin main)", ["name:main-push"]),
        ("if true; then git push origin main; fi", ["name:main-push"]),
        ("git \\\n  push origin main", ["name:main-push"]),
        ("echo 'git push origin main'", []),
        ("coord guard main-push -- git push origin main", []),
        ("gh pr merge 7 --squash", ["name:pr-merge-queue"]),
        ("gh pr view 7", []),
        ("cargo build --release", ["name:cargo-build"]),
        ("cargo test", []),
        ("mv new ~/.local/bin/engram", ["name:engram-serve"]),
        ("pkill -f engram", ["name:engram-serve"]),
        ("cp x ~/.claude/CLAUDE.md", ["name:claude-config"]),
        ("git checkout main && git push origin main", ["name:main-branch", "name:main-push"]),
        ("it's not closed; git push origin main", ["name:main-push"]),
        ("", []),
    ],
)
def test_what_needs_which_lock(line: str, needed: list[str]) -> None:
    """The table of actions and their locks, however the command is dressed.

    INT-12, LCK-60, LCK-61, LCK-62, LCK-63, LCK-64, LCK-65, PRB-10, PRB-11.
    """
    assert list(locks(line, ACTIONS, "feature", True)) == needed


def test_a_push_without_a_branch_means_the_one_checked_out() -> None:
    """LCK-61: `git push` on main pushes main."""
    for line in ("git push", "git push origin", "git push -u origin HEAD"):
        assert locks(line, ACTIONS, "main", True) == ("name:main-push",)
        assert locks(line, ACTIONS, "other", True) == ()


def test_a_build_in_a_worktree_of_its_own_is_in_nobody_s_way() -> None:
    """LCK-63: only the main worktree's build is locked."""
    assert locks("cargo build", ACTIONS, "", False) == ()
