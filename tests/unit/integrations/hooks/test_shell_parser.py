"""Command lines: what they run, whether they only read, and which locks they need."""

import os
import time
from pathlib import Path

import pytest

from coord.core.errors import Invalid
from coord.host.config import parse_configuration
from coord.host.consent import Configuration
from coord.integrations.hooks.config import Settings, read_settings
from coord.integrations.hooks.events import Event, Kind
from coord.integrations.hooks.named_locks import ACTIONS, Action, locks_for
from coord.integrations.hooks.protected_files import check_edit, check_settings
from coord.integrations.hooks.shell_parser import folders_entered, only_reads, simple_commands


@pytest.mark.parametrize(
    ("line", "locks"),
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
def test_what_needs_which_lock(line: str, locks: list[str]) -> None:
    """The table of actions and their locks, however the command is dressed.

    INT-12, LCK-60, LCK-61, LCK-62, LCK-63, LCK-64, LCK-65, PRB-10, PRB-11.
    """
    assert sorted(locks_for(line, ACTIONS, branch="feature", main_tree=True)) == locks


def test_a_push_without_a_branch_means_the_one_checked_out() -> None:
    """LCK-61: `git push` on main pushes main."""
    for line in ("git push", "git push origin", "git push -u origin HEAD"):
        assert locks_for(line, ACTIONS, branch="main", main_tree=True) == ("name:main-push",)
        assert locks_for(line, ACTIONS, branch="other", main_tree=True) == ()


def test_a_build_in_a_worktree_of_its_own_is_in_nobody_s_way() -> None:
    """LCK-63: only the main worktree's build is locked."""
    assert locks_for("cargo build", ACTIONS, branch="", main_tree=False) == ()


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("cat a | grep b", True),
        ("git status && git log -3", True),
        ("git -C x diff", True),
        ("coord doctor", True),
        ("coord lock a", True),
        ("coord guard name:x -- rm a", False),
        ("coord salvage restore 17/1", False),
        ("coord doctor --fix", False),
        ("cat a > b", False),
        ("git commit -m x", False),
        ("cat $(rm x)", False),
        ("python3 -c 'print(1)'", False),
        ("", False),
        ("sudo cat a", True),
        ("uniq a b", False),
        ("git diff --output=a.patch", False),
    ],
)
def test_what_is_known_for_only_reading(line: str, reads: bool) -> None:
    """Where no store answers, what only reads may go on; what cannot be told may not."""
    assert only_reads(line) is reads
    assert only_reads(line, store=False) is (reads and line != "coord lock a")


def test_words_and_folders() -> None:
    """A line comes apart into its commands; where it goes to is known."""
    assert simple_commands("A=1 time -p make -j2 | tee 'a b'") == [["make", "-j2"], ["tee", "a b"]]
    assert folders_entered("cd 'a b' && apply_patch; pushd c") == ["a b", "c"]


def test_a_long_or_deep_line_is_no_trouble() -> None:
    """Hostile lines take bounded work."""
    began = time.process_time()
    for hostile in (
        "$(" * 50_000,
        "`" * 50_000,
        "(" * 50_000,
        "'" * 50_001,
        "sh -c " * 20_000,
        "x;" * 50_000,
    ):
        assert locks_for(hostile + "; git push origin main", ACTIONS, branch="", main_tree=True) is not None
    assert time.process_time() - began < 20
    padded = f"cat <<'EOF'\n{'text ' * 100_000}\nEOF\ngit push origin main"
    assert locks_for(padded, ACTIONS, branch="", main_tree=True) == ("name:main-push",)


def settings_in(text: str) -> Settings:
    return read_settings(Configuration("coord.toml", parse_configuration("coord.toml", text.encode())))


def test_a_repository_adds_actions_and_says_what_happens_without_a_store() -> None:
    """INT-12: the table is open; failing closed or open is a setting."""
    assert read_settings(Configuration("coord.toml")) == Settings()
    settings = settings_in(
        '[hooks]\nwrites_without_store = "open"\nreads_without_store = "closed"\n'
        '[[hooks.actions]]\ncommand = "npm publish"\nlock = "release"\n'
    )
    assert (settings.closed_for_writes, settings.closed_for_reads) == (False, True)
    assert settings.actions[-1] == Action("npm publish", "name:release")
    assert locks_for("npm publish --tag next", settings.actions, branch="", main_tree=True) == (
        "name:release",
    )


def test_a_repository_drops_the_preset_locks() -> None:
    """INT-12: the example of the founding documents goes, the commands of git stay."""
    actions = settings_in("[presets]\nlocks = false\n").actions
    assert locks_for("cargo build", ACTIONS, branch="", main_tree=True) == ("name:cargo-build",)
    assert locks_for("cargo build; pkill engram", actions, branch="", main_tree=True) == ()
    assert locks_for("git push origin main", actions, branch="", main_tree=True) == ("name:main-push",)


@pytest.mark.parametrize(
    "text",
    [
        "hooks = 1",
        "[hooks]\nwrites_without_store = true",
        "[hooks]\nunknown = 1",
        "[hooks]\nactions = 1",
        "[[hooks.actions]]\ncommand = 'x'",
        "[[hooks.actions]]\ncommand = ' '\nlock = 'x'",
        "[[hooks.actions]]\ncommand = 'x'\nlock = 'y'\nother = 1",
        "[[hooks.actions]]\ncommand = 'x'\nlock = 'y'\nmain_tree = 'no'",
        "[hooks]\nrestore = 'x'",
    ],
)
def test_wrong_settings_are_refused_with_a_hint(text: str) -> None:
    """A setting that is not understood is never passed over."""
    with pytest.raises(Invalid) as caught:
        settings_in(text)
    assert caught.value.hint


def edit(path: str = "", command: str | None = None) -> Event:
    return Event(
        "claude", "PreToolUse", Kind.BEFORE, "s", cwd="/r", writes=(path,) if path else (), command=command
    )


@pytest.mark.parametrize(
    ("event", "refused"),
    [
        (edit("/r/.claude/settings.local.json"), True),
        (edit(".claude/../.claude/settings.json"), True),
        (edit("/home/x/.codex/hooks.json"), True),
        (edit(".gemini/settings.json"), True),
        (edit("/r/settings.json"), False),
        (edit(".claude/CLAUDE.md"), False),
        (edit(command="echo '{}' > .claude/settings.local.json"), True),
        (edit(command="echo '{\"disableAllHooks\": true}' | tee x"), True),
        (edit(command="rm -f .codex/hooks.json"), True),
        (edit(command="cat .claude/settings.json"), False),
        (edit(command="grep disableAllHooks -r ."), False),
        (edit(command="make"), False),
    ],
)
def test_the_configuration_of_hooks_is_for_people(event: Event, refused: bool) -> None:
    """An agent neither edits nor removes what holds it."""
    assert bool(check_edit(event)) is refused


def test_a_link_to_the_configuration_is_the_configuration(tmp_path: Path) -> None:
    """Another name for the file does not help."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text("{}")
    os.symlink(tmp_path / ".claude/settings.json", tmp_path / "notes.txt")
    assert check_edit(edit(str(tmp_path / "notes.txt")))


HOOK_MARKS = '{"hooks": {"PreToolUse": [{"hooks": [{"command": "/x/coord/integrations/hooks/main.py"}]}]}}'


@pytest.mark.parametrize(
    ("local", "project", "refused"),
    [
        (HOOK_MARKS, "{}", ""),
        ("{}", HOOK_MARKS, ""),
        ('{"disableAllHooks": true}', HOOK_MARKS, "disable all hooks"),
        ("{}", "{}", "no hook of coord"),
        ("{", HOOK_MARKS, "cannot be read"),
    ],
)
def test_settings_that_lose_the_hooks_do_not_take_effect(
    tmp_path: Path, local: str, project: str, refused: str
) -> None:
    """However the file came to change, Claude Code goes on with the hooks it has."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.local.json").write_text(local)
    (tmp_path / ".claude/settings.json").write_text(project)
    told = {"file_path": str(tmp_path / ".claude/settings.local.json")}
    event = Event("claude", "ConfigChange", Kind.SETTINGS, "s", cwd=str(tmp_path))
    why = check_settings(event, told, {"HOME": str(tmp_path / "home")})
    assert refused in why
    assert bool(why) == bool(refused)
