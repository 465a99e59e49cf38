"""A tool that cannot be protected is named with the next step, and stops no other tool."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from coord.integrations.setup.tools import TOOLS, our_hooks, settings_in
from tests.support.git_folders import git
from tests.support.setup_folders import planned, set_up, snapshot, take_out, write


def tracked(shop: Path) -> None:
    write(shop / ".claude/settings.local.json", '{"a": 1}\n')
    git(shop, "add", "-A")


def malformed(shop: Path) -> None:
    write(shop / ".codex/hooks.json", '{"hooks": ')


def no_object(shop: Path) -> None:
    write(shop / ".gemini/settings.json", "[]\n")


def no_list(shop: Path) -> None:
    write(shop / ".gemini/settings.json", '{"hooks": {"BeforeTool": {}}}\n')


def a_file_as_folder(shop: Path) -> None:
    write(shop / ".codex", "mine\n")


def a_folder_as_file(shop: Path) -> None:
    (shop / ".claude/settings.local.json").mkdir(parents=True)


def a_link_out(shop: Path) -> None:
    (shop.parent / "outside").mkdir()
    (shop / ".gemini").symlink_to(shop.parent / "outside")


def disabled(shop: Path) -> None:
    write(shop / ".claude/settings.json", '{"disableAllHooks": true}\n')


def disabled_at_home(shop: Path) -> None:
    write(Path(os.environ["HOME"]) / ".codex/config.toml", "[features]\nhooks = false\n")


CASES: list[tuple[Callable[[Path], None], str, str, str]] = [
    (tracked, "claude", "git tracks .claude/settings.local.json", "use coord init --shared"),
    (malformed, "codex", "hooks.json is not JSON", "correct it by hand"),
    (no_object, "gemini", "is not an object", "correct it by hand"),
    (no_list, "gemini", "hooks.BeforeTool in", "correct it by hand"),
    (a_file_as_folder, "codex", ".codex is not a folder", "move it away"),
    (a_folder_as_file, "claude", "is not a regular file", "move it away"),
    (a_link_out, "gemini", "outside of the repository", "use coord init --user"),
    (disabled, "claude", "settings.json sets disableAllHooks", "remove disableAllHooks from"),
    (disabled_at_home, "codex", "config.toml sets features.hooks", "remove features.hooks from"),
]


@pytest.mark.parametrize(("prepare", "tool", "told", "hint"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_tool_that_cannot_be_protected(
    shop: Path, prepare: Callable[[Path], None], tool: str, told: str, hint: str
) -> None:
    """Issue 15: the reason and the next step; the others have their hooks, and uninstall restores all."""
    prepare(shop)
    before = snapshot(shop)
    plan = set_up(shop)
    (problem,) = plan.problems
    assert (problem.subject, told in problem.message, problem.hint.startswith(hint)) == (tool, True, True)
    for other in TOOLS:
        if other.name != tool:
            assert our_hooks(settings_in(str(shop / other.local)))[other.before]
    assert planned(shop).changes == []
    assert planned(shop).problems == plan.problems
    take_out(shop)
    assert snapshot(shop) == before


def test_a_folder_that_is_read_only(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anything, so the question whether it may is answered for it."""
    (shop / ".gemini").mkdir()
    real = os.access
    refused = str(shop / ".gemini")
    monkeypatch.setattr(os, "access", lambda path, mode: path != refused and real(path, mode))
    (problem,) = set_up(shop).problems
    assert (problem.subject, f"{refused} is read-only" in problem.message) == ("gemini", True)
    assert list((shop / ".gemini").iterdir()) == []


def test_settings_with_our_hooks_that_git_tracks_are_no_problem(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A team that commits the hooks is protected where coord is on the PATH; its files stay unchanged."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    alone = set_up(shop, shared=True)
    assert {each.hint for each in alone.problems} == {"put coord on the PATH"}
    write(tmp_path / "bin/coord", "#!/bin/sh\n", 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "hooks")
    (shop / ".git/coord/setup.json").unlink()
    plan = set_up(shop)
    assert ([each.subject for each in plan.problems], git(shop, "status", "--porcelain")) == ([], "")
    take_out(shop)
    assert git(shop, "status", "--porcelain") == ""


def test_a_switch_that_stronger_settings_turn_back(shop: Path, home: Path) -> None:
    """Claude Code merges settings: the local file counts more than the user's."""
    write(home / ".claude/settings.json", '{"disableAllHooks": true}\n')
    assert [each.subject for each in planned(shop).problems] == ["claude"]
    write(shop / ".claude/settings.local.json", '{"disableAllHooks": false}\n')
    assert planned(shop).problems == ()


def test_settings_of_the_user_that_nobody_can_read(shop: Path, home: Path) -> None:
    """Broken settings in the home do not keep the repository from its hooks."""
    write(home / ".claude/settings.json", "{")
    plan = set_up(shop)
    assert plan.problems == ()
    assert our_hooks(settings_in(str(shop / ".claude/settings.local.json")))["PreToolUse"]


def test_nobody_else_can_write_what_a_setup_creates(shop: Path) -> None:
    """Whatever the umask is: whoever can write into these folders could add a hook."""
    before = set(shop.rglob("*"))
    umask = os.umask(0)
    try:
        set_up(shop)
    finally:
        os.umask(umask)
    made = set(shop.rglob("*")) - before
    assert len(made) > 20
    assert [path for path in made if path.stat().st_mode & 0o002 and ".git/coord/" not in str(path)] == []
