"""What `coord uninstall` removes without a journal, and for some tools only."""

import shutil
from pathlib import Path

import pytest

from coord.core.errors import Refused, Unavailable
from coord.host.repository import find_repository
from coord.integrations.setup.removal import plan_removal
from tests.support.git_folders import git
from tests.support.setup_folders import set_up, snapshot, take_out, write

FORMER = "#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize("hooks_path", ["", ".husky/_"])
def test_everything_goes_without_the_folder_of_coord(shop: Path, hooks_path: str) -> None:
    """Issue 15: hooks, git hooks, excluded names and texts are found by their marks, in every worktree."""
    if hooks_path:
        git(shop, "config", "core.hooksPath", hooks_path)
    write(shop / ".git/hooks/pre-commit", FORMER, 0o755)
    write(shop / ".claude/settings.local.json", '{"a": 1}\n')
    write(shop / "AGENTS.md", "# Rules\n")
    git(shop, "worktree", "add", "-q", "--detach", str(shop.parent / "second"))
    before = snapshot(shop.parent)
    set_up(shop)
    shutil.rmtree(shop / ".git/coord")
    take_out(shop)
    after = snapshot(shop.parent)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()


def test_an_agent_removes_nothing_either_way(shop: Path) -> None:
    """The journal is gone, so nothing says that somebody set coord up; an agent is refused all the same."""
    set_up(shop)
    shutil.rmtree(shop / ".git/coord")
    repository = find_repository(str(shop))
    assert repository is not None
    before = snapshot(shop)
    with pytest.raises(Refused, match="claude is an agent"):
        plan_removal(repository).apply(by="claude")
    assert snapshot(shop) == before


def test_hooks_that_a_team_committed_stay(shop: Path) -> None:
    """A clone in which nobody ran init changes nothing that git tracks."""
    set_up(shop, shared=True)
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "hooks")
    shutil.rmtree(shop / ".git/coord")
    take_out(shop)
    assert git(shop, "status", "--porcelain") == ""
    assert not (shop / ".git/hooks/pre-commit").exists()


def test_a_folder_that_cannot_be_opened_is_named(shop: Path) -> None:
    """A file in its place, as in a repository that only another user can write."""
    write(shop / ".git/coord", "no folder\n")
    with pytest.raises(Unavailable, match=r"\.git/coord cannot be opened"):
        take_out(shop)
