"""Git runs our hooks and existing ones, in every worktree and with every hook manager."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from coord.core.errors import Busy
from coord.host.repository import find_repository
from coord.integrations.git.gate.hidden_guides import hidden_guides
from coord.integrations.setup.changes import Planner
from coord.integrations.setup.checks import examine_hooks
from coord.integrations.setup.git_hooks import GitSetup
from coord.integrations.setup.installer import journal_folder
from coord.integrations.setup.shared_gate import install_gate
from coord.sdk.client.open import initialise
from tests.support.git_folders import found, git, made_repository
from tests.support.setup_folders import planned, set_up, snapshot, take_out, write

REFUSES = '#!/bin/sh\necho former $(basename "$0") "$1" >> "$(git rev-parse --show-toplevel)"/told\nexit 1\n'
TELLS = REFUSES.replace("exit 1", "exit 0")


def commit(folder: Path) -> int:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode


def told(folder: Path) -> list[str]:
    path = folder / "told"
    return [line.rstrip() for line in path.read_text().splitlines()] if path.exists() else []


def test_a_hook_that_was_there_goes_on(shop: Path) -> None:
    """A former hook runs after the gate and can refuse; uninstall restores its name."""
    write(shop / ".git/hooks/pre-commit", REFUSES, 0o755)
    write(shop / ".git/hooks/pre-push", REFUSES, 0o644)
    set_up(shop)
    assert commit(shop) == 1
    assert told(shop) == ["former pre-commit.coord-former"]
    write(shop / ".git/hooks/pre-commit.coord-former", TELLS, 0o755)
    assert commit(shop) == 0
    take_out(shop)
    assert (shop / ".git/hooks/pre-commit").read_text() == TELLS  # changed under the other name
    assert commit(shop) == 0
    assert len(told(shop)) == 3


@pytest.mark.parametrize("named", [".husky/_", "absolute", "~/hooks"])
def test_a_hooks_path_that_was_set(shop: Path, home: Path, named: str) -> None:
    """The folder of a hook manager stays unchanged: core.hooksPath names ours, which forwards to it."""
    folder = {"absolute": shop.parent / "elsewhere", "~/hooks": home / "hooks"}.get(named, shop / ".husky/_")
    git(shop, "config", "core.hooksPath", str(folder) if named == "absolute" else named)
    for hook in ("pre-commit", "commit-msg", "post-commit"):
        write(folder / hook, TELLS, 0o755)
    before = snapshot(folder)
    set_up(shop)
    assert commit(shop) == 0
    assert told(shop) == ["former pre-commit", "former commit-msg .git/COMMIT_EDITMSG", "former post-commit"]
    assert snapshot(folder) == before
    assert git(shop, "rev-parse", "--git-path", "hooks") == str(shop / ".git/coord/hooks")
    git(shop, "config", "branch.main.remote", "origin")  # git writes its configuration all the time
    plan = take_out(shop)
    assert git(shop, "config", "core.hooksPath") == (str(folder) if named == "absolute" else named)
    assert git(shop, "config", "branch.main.remote") == "origin"
    assert [note for note in plan.notes if "coord removes only its part" in note]


def test_a_manager_that_takes_its_place_back(shop: Path) -> None:
    """A manager that sets core.hooksPath again disables the gates; the plan shows it, a setup repairs it."""
    git(shop, "config", "core.hooksPath", ".husky/_")
    set_up(shop)
    assert planned(shop).changes == []
    git(shop, "config", "core.hooksPath", ".husky/_")
    assert [change.path for change in planned(shop).changes] == [str(shop / ".git/config")]
    set_up(shop)
    assert planned(shop).changes == []
    assert git(shop, "config", "core.hooksPath") == str(shop / ".git/coord/hooks")


def test_hooks_in_the_configuration(shop: Path) -> None:
    """If git supports hooks in its configuration, ours are there, and no other hook file changes."""
    repository = find_repository(str(shop))
    assert repository is not None
    write(shop / ".git/hooks/pre-commit", REFUSES, 0o755)
    before = snapshot(shop)

    def plan(*, out: bool = False):
        part = GitSetup(repository, journal_folder(repository))
        planner = Planner(journal_folder(repository), part.strip_config)
        if not out:
            part.plan_hooks(planner, version=(2, 54))
        return planner.finish()

    plan().apply()
    stub = git(shop, "config", "hook.coord-pre-commit.command")
    assert (git(shop, "config", "hook.coord-pre-commit.event"), os.access(stub, os.X_OK)) == (
        "pre-commit",
        True,
    )
    assert (shop / ".git/hooks/pre-commit").read_text() == REFUSES
    assert plan().changes == []
    git(shop, "config", "user.nick", "a")
    plan(out=True).apply()
    assert git(shop, "config", "--list", "--local").count("coord") == 0
    git(shop, "config", "--remove-section", "user")
    assert snapshot(shop) == before


def test_a_new_worktree_gets_it_all(shop: Path) -> None:
    """GIT-24: a new worktree gets the untracked files, git ignores them there, uninstall removes them."""
    write(shop / ".git/hooks/post-checkout", TELLS, 0o755)
    set_up(shop)
    second = shop.parent / "second"
    git(shop, "worktree", "add", "-q", "--detach", str(second))
    names = [".claude/settings.local.json", ".codex/hooks.json", ".gemini/settings.json", "CLAUDE.md"]
    assert all((second / name).read_bytes() == (shop / name).read_bytes() for name in names)
    assert git(second, "status", "--porcelain") == "?? told"
    assert planned(second).changes == []
    git(second, "checkout", "-q", "--detach")
    (second / ".codex/hooks.json").write_text((second / ".codex/hooks.json").read_text() + "\n")
    take_out(shop)
    assert sorted(path.name for path in second.iterdir()) == [".git", "src", "told"]


def test_a_folder_that_leads_elsewhere(shop: Path) -> None:
    """coord writes nothing through a link out of the repository, here or in a new worktree."""
    outside = shop.parent / "outside"
    outside.mkdir()
    (shop / ".gemini").symlink_to(outside)
    plan = set_up(shop)
    assert [(each.subject, each.hint) for each in plan.problems] == [("gemini", "use coord init --user")]
    assert (list(outside.iterdir()), (shop / ".claude/settings.local.json").exists()) == ([], True)
    git(shop, "add", ".gemini")
    git(shop, "commit", "-q", "-m", "link")
    (shop / ".gemini").unlink()
    set_up(shop)
    git(shop, "worktree", "add", "-q", "--detach", str(shop.parent / "second"))
    assert list(outside.iterdir()) == []
    assert (shop.parent / "second/.codex/hooks.json").exists()


def test_a_bare_repository(tmp_path: Path, home: Path) -> None:
    """Issue 5: only `coord gate` installs the gate of a bare repository; init renews it."""
    bare = tmp_path / "shop.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    before = snapshot(bare)
    assert "coord gate" in set_up(bare).notes[0]
    assert snapshot(bare) == before
    locks = made_repository(tmp_path / "locks").root or ""
    install_gate(initialise(locks, {"HOME": str(home)}), str(bare), ["release/*"])
    assert sorted(set(snapshot(bare)) - set(before)) == [
        str(bare / name)
        for name in (
            *("coord", "coord.id", "coord/coord.id", "coord/setup.json"),
            *("hooks/pre-receive", "hooks/reference-transaction"),
        )
    ]
    (bare / "hooks/pre-receive").unlink()
    assert [finding.state for finding in examine_hooks(found(bare), {})] == ["bad", "ok"]
    set_up(bare)
    assert [finding.state for finding in examine_hooks(found(bare), {})] == ["ok", "ok"]
    assert "COORD_PROTECTED='release/*'" in (bare / "hooks/pre-receive").read_text()
    take_out(bare)
    shutil.rmtree(bare / "coord")
    (bare / "coord.id").unlink()
    assert snapshot(bare) == before


def test_what_is_in_git_stays(shop: Path) -> None:
    """By default tracked files stay unchanged, and notes name them; --shared changes them."""
    for name in (".gemini/settings.json", "CLAUDE.md"):
        write(shop / name, "{}" if name.endswith("json") else "# Ours\n")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "settings")
    plan = set_up(shop)
    assert git(shop, "status", "--porcelain") == ""
    assert [note.split()[0] for note in plan.notes] == ["git"]
    (problem,) = plan.problems
    assert problem.message == f"Gemini CLI gets no hooks in {shop}: git tracks .gemini/settings.json"
    set_up(shop, shared=True)
    changed = git(shop, "status", "--porcelain").split("\n")
    assert {line.split()[-1] for line in changed} == {
        *(".claude/", ".codex/", ".gemini/settings.json", "CLAUDE.md", "AGENTS.md", "GEMINI.md")
    }
    assert "coord hook gemini" in (shop / ".gemini/settings.json").read_text()
    assert str(shop.parent) not in (shop / ".gemini/settings.json").read_text()
    take_out(shop)
    assert git(shop, "status", "--porcelain") == ""


def test_what_others_wrote_since_stays(shop: Path) -> None:
    """A file that somebody else changed loses only our part, and a note names it."""
    write(shop / "AGENTS.md", "# Ours\n")
    set_up(shop)
    for name in ("AGENTS.md", ".git/info/exclude"):
        (shop / name).write_text("first\n" + (shop / name).read_text() + "last\n")
    write(shop / ".git/hooks/pre-push", TELLS, 0o755)
    (shop / ".codex/hooks.json").write_text("broken")
    plan = take_out(shop)
    assert [each.message.startswith(f"{shop}/.codex/hooks.json is not JSON") for each in plan.problems] == [
        True
    ]
    assert (shop / ".codex/hooks.json").read_text() == "broken"
    assert (shop / "AGENTS.md").read_text() == "first\n# Ours\nlast\n"
    assert (shop / ".git/info/exclude").read_text().endswith("last\n")
    assert "coord" not in (shop / ".git/info/exclude").read_text()
    assert (shop / ".git/hooks/pre-push").read_text() == TELLS
    assert not (shop / "CLAUDE.md").exists()
    assert len(plan.notes) == 4


def test_lines_of_others_behind_ours_are_no_change_of_ours(shop: Path) -> None:
    """The mirrors and people add to git's exclude file, too; a lost line of ours is a change."""
    set_up(shop)
    exclude = shop / ".git/info/exclude"
    write(exclude, f"{exclude.read_text()}\nmine.txt\n")
    assert list(planned(shop).changes) == []
    write(exclude, exclude.read_text().replace("/AGENTS.md\n", ""))
    assert [Path(each.path) for each in planned(shop).changes] == [exclude]


def test_a_record_that_was_lost(shop: Path) -> None:
    """Without a journal a setup recognises our parts: none is there twice, and uninstall removes them."""
    write(shop / ".git/hooks/pre-commit", TELLS, 0o755)
    before = snapshot(shop)
    set_up(shop)
    (shop / ".git/coord/setup.json").unlink()
    for name in ("CLAUDE.md", ".claude/settings.local.json"):
        path = shop / name
        path.write_text(
            path.read_text().replace("by itself", "alone").replace('"timeout": 10', '"timeout": 9')
        )
    set_up(shop)
    assert (shop / ".claude/settings.local.json").read_text().count('PreToolUse"') == 1
    take_out(shop)
    left = {path for path in snapshot(shop) if path not in before}
    assert (shop / ".git/hooks/pre-commit").read_text() == TELLS
    assert not {path for path in left if "hooks/" in path and ".codex" not in path}
    assert not (shop / "CLAUDE.md").exists()
    assert not (shop / ".claude/settings.local.json").exists()


def test_two_at_once(shop: Path) -> None:
    """The second of two setups, or one whose file has just changed, writes nothing and is refused."""
    first, second = planned(shop), planned(shop, "claude")
    first.apply()
    with pytest.raises(Busy, match="finished first"):
        second.apply()
    third = planned(shop, "claude")
    write(shop / "AGENTS.md", "mine\n")
    before = snapshot(shop)
    with pytest.raises(Busy, match="has changed; nothing was written"):
        third.apply()
    assert snapshot(shop) == before


def test_rules_of_a_person_are_not_hidden(shop: Path) -> None:
    """A guide that coord made is ignored by git only while nobody else has written into it."""
    set_up(shop)
    assert git(shop, "status", "--porcelain") == ""
    guide = shop / "CLAUDE.md"
    guide.write_text(f"# My rules\n\n{guide.read_text()}")
    repository = find_repository(str(shop))
    assert repository is not None
    assert hidden_guides(repository) == ["CLAUDE.md"]
    plan = planned(shop)
    assert any("git no longer ignores CLAUDE.md" in note for note in plan.notes)
    plan.apply()
    assert git(shop, "status", "--porcelain") == "?? CLAUDE.md"
    assert hidden_guides(repository) == []
    assert planned(shop).changes == []
    take_out(shop)
    assert guide.read_text() == "# My rules\n"


def test_rules_in_one_worktree_are_not_hidden_by_another(shop: Path) -> None:
    """The exclude file is the same for all worktrees."""
    set_up(shop)
    second = shop.parent / "second"
    git(shop, "worktree", "add", "-q", "--detach", str(second))
    (second / "AGENTS.md").write_text("# Rules\n")
    planned(shop).apply()
    assert "?? AGENTS.md" in git(second, "status", "--porcelain")
