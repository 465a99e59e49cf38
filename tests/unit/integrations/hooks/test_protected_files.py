"""Files that only people may change."""

import os
from pathlib import Path

import pytest

from coord.integrations.hooks.events import Event, Kind
from coord.integrations.hooks.protected_files import check_edit, check_settings
from coord.integrations.shell_commands.line import CommandLine

Call = tuple[Event, CommandLine | None]


def edit(path: str = "", command: str | None = None, cwd: str = "/r") -> Call:
    event = Event(
        "claude", "PreToolUse", Kind.BEFORE, "s", cwd=cwd, writes=(path,) if path else (), command=command
    )
    environ = {"HOME": "/home/x"}
    return event, None if command is None else CommandLine(command, cwd, environ)


@pytest.mark.parametrize(
    ("call", "refused"),
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
        (edit("coord.toml"), False),
        (edit("/r/.git/hooks/pre-commit"), True),
        (edit("/srv/shared.git/hooks/pre-receive"), True),
        (edit(".GIT/config"), True),
        (edit(command="cd .claude && sed -i s/a/b/ settings.local.json"), True),
        (edit(command="cd .claude; cd ..; cp x .claude/settings.json"), True),
        (edit(command="(cd .codex && tee config.toml) < x"), True),
        (edit(command="bash -c 'cd .gemini && rm settings.json'"), True),
        (edit(command="D=.claude; mv x $D/settings.json"), True),
        (edit(command="ln -sf x ../r/.claude/settings.local.json"), True),
        (edit(command="truncate -s0 ~/.claude/settings.json"), True),
        (edit(command="dd if=/dev/null of=.git/config"), True),
        (edit(command="chmod -x .git/hooks/pre-commit"), True),
        (edit(command="python3 -c \"open('.claude/settings.json', 'w')\""), True),
        (edit(command="python3 - <<E\nopen('.claude/settings.json', 'w')\nE"), True),
        (edit(command="echo 'see .claude/settings.json' >> notes.md"), False),
        (edit(command="cp .claude/settings.json backup.json"), False),
        (edit(command="git config core.hooksPath /dev/null"), True),
        (edit(command="git branch -C evil main"), True),
        (edit(command="git branch -f --copy evil master"), True),
        (edit(command="git branch -C main backup"), False),
        (edit(command="git branch -a"), False),
        (edit(command="git symbolic-ref refs/heads/main refs/heads/evil"), True),
        (edit(command="git symbolic-ref --delete refs/heads/main"), True),
        (edit(command="git symbolic-ref HEAD refs/heads/main"), False),
        (edit(command="git symbolic-ref --short HEAD"), False),
        (edit(command="git config --unset Core.HooksPath"), True),
        (edit(command="git config set core.hooksPath x"), True),
        (edit(command="git config --global include.path x"), True),
        (edit(command="git config --edit"), True),
        (edit(command="git config core.hooksPath"), False),
        (edit(command="git config user.name ada"), False),
        (edit(command="git config -f other.cfg core.hooksPath x"), False),
        (edit(command="git -c core.hooksPath=/dev/null commit -m x"), True),
        (edit(command="git -c user.name=ada commit -m x"), False),
        (
            edit(
                command="GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=x git commit"
            ),
            True,
        ),
        (edit(command="GIT_CONFIG_GLOBAL=x git commit -m x"), True),
        (edit(command="export GIT_CONFIG_SYSTEM=x; git commit -m x"), True),
        (edit(command="GIT_CONFIG_GLOBAL=/dev/null git log"), False),
        (edit(command="git config --global user.name ada"), False),
        (edit(command="rm .git/coord.id"), True),
        (edit("/r/.git/coord.id"), True),
        (edit("/r/.git/info/exclude"), False),
        (edit(command="env -u CLAUDECODE git commit -m x"), True),
        (edit(command="unset CLAUDECODE COORD_SESSION_ID; git commit -m x"), True),
        (edit(command="CLAUDECODE= git push"), True),
        (edit(command="env -i git commit -m x"), True),
        (edit(command="env -u CLAUDECODE sh -c 'git commit -m x'"), True),
        (edit(command="env -u PAGER git log"), False),
        (edit(command="coord uninstall --yes"), True),
        (edit(command="coord decide q1 allow"), True),
        (edit(command="cd x && coord --json decide q1 allow &"), True),
        (edit(command="setsid coord decide q1 allow"), True),
        (edit(command="coord decisions; coord ask decide; coord send bob status decide"), False),
        (edit(command="coord lock a"), False),
    ],
)
def test_the_configuration_of_hooks_is_for_people(call: Call, refused: bool) -> None:
    """An agent neither edits nor removes what holds it."""
    assert bool(check_edit(*call)) is refused


def test_the_git_configuration_of_the_user_is_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git really reads is protected, by any name and with what it includes; dotfiles are files."""
    home, dotfiles = tmp_path / "home", tmp_path / "dotfiles"
    for folder in (home / ".config/git", home / "work", dotfiles / ".config/git", dotfiles / ".config/coord"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / ".gitconfig").write_text('[include]\n\tpath = work/git.inc\n[includeIf "gitdir:/"] path="~/a"\n')
    (home / "work/git.inc").write_text("[include]\n\tPath=../deep # not this\n\tpath = ../deep\n")
    (dotfiles / "linked").write_text("")
    (home / ".config/git/config").symlink_to(dotfiles / "linked")
    (home / ".config/coord").mkdir()
    for name in (".gitconfig", "work/git.inc", "a", "deep", ".config/git/config", ".config/coord/coord.toml"):
        assert check_edit(*edit(f"{home}/{name}")), name
        assert check_edit(*edit(command=f"echo x >> {home}/.config/../{name}", cwd="/")), name
    assert check_edit(*edit("linked", cwd=str(dotfiles)))
    for name in (".config/git", "work", ".config"):
        assert check_edit(*edit(command=f"rm -rf {name}", cwd=str(home))), name
    for name in (".gitconfig", ".config/git/config", ".config/coord/coord.toml"):
        assert check_edit(*edit(name, cwd=str(dotfiles))) == "", name
        assert check_edit(*edit(command=f"echo x >> {name}", cwd=str(dotfiles))) == "", name
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(dotfiles / ".gitconfig"))
    assert check_edit(*edit(".gitconfig", cwd=str(dotfiles)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(dotfiles / ".config"))
    assert check_edit(*edit(".config/git/config", cwd=str(dotfiles)))


def test_a_link_to_the_configuration_is_the_configuration(tmp_path: Path) -> None:
    """Another name for the file does not help."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text("{}")
    os.symlink(tmp_path / ".claude/settings.json", tmp_path / "notes.txt")
    assert check_edit(*edit(str(tmp_path / "notes.txt")))


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


def test_the_configuration_of_coord_is_for_people(tmp_path: Path) -> None:
    """`coord.toml` decides which store and which hooks count; a file of that name elsewhere is a file."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "examples").mkdir()
    here = str(tmp_path)
    assert check_edit(*edit("coord.toml", cwd=here))
    assert check_edit(*edit(command="cd examples && sed -i s/a/b/ ../coord.toml", cwd=here))
    assert check_edit(*edit(command="rm $PWD/coord.toml", cwd=here))
    assert check_edit(*edit(command="git mv coord.toml other", cwd=here)) == ""
    assert check_edit(*edit("examples/coord.toml", cwd=here)) == ""


def test_consents_and_the_user_store_are_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent neither writes a consent that no person gave, nor removes the locks of the machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state/coord/trusted").mkdir(parents=True)
    here = str(tmp_path)
    refused = (
        "touch state/coord/trusted/x",
        "cd state/coord && rm coord.db",
        "rm -rf state/coord",
        "rm -r state",
    )
    for line in refused:
        assert check_edit(*edit(command=line, cwd=here)), line
    assert check_edit(*edit("state/coord/trusted/x", cwd=here))
    assert check_edit(*edit(command="touch state/other", cwd=here)) == ""
    assert check_edit(*edit(command="ls state/coord; cat state/coord/trusted/*", cwd=here)) == ""


def test_a_folder_with_configuration_is_for_people(tmp_path: Path) -> None:
    """Nobody removes or replaces the folder around a protected file; a scratch clone is its maker's."""
    repository, clone = tmp_path / "repository", tmp_path / "clone"
    for root in (repository, clone):
        for folder in ("objects", "refs"):
            (root / ".git" / folder).mkdir(parents=True)
        (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (root / ".claude").mkdir()
        (root / ".claude/settings.json").write_text("{}")
        (root / "src").mkdir()
    (repository / ".git/coord").mkdir()
    (repository / "link").symlink_to(".claude")
    here = str(repository)
    refused = (
        "rm -rf .claude",
        "mv .claude x",
        "rm -rf .git",
        "rm -rf ../repository",
        "rm -rf link/",
        "rm -rf ..",
    )
    for line in refused:
        assert check_edit(*edit(command=line, cwd=here)), line
    for line in ("rm -rf src", "rm -rf ../clone", "cp -r .claude src"):
        assert check_edit(*edit(command=line, cwd=here)) == "", line
