"""Files that only people may change: an agent could switch its hooks off by editing them."""

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from coord.core.errors import CoordError
from coord.host.repository import find_repository
from coord.host.runtime.environment import environment
from coord.host.runtime.seen_files import once_per_hook, real_path
from coord.integrations.hooks.events import Event, fields_in

if TYPE_CHECKING:
    from coord.integrations.shell_commands.line import CommandLine
    from coord.integrations.shell_commands.state import Command

CONFIGURATION = "coord.toml"
FILES = (
    *(".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json", ".codex/config.toml"),
    ".gemini/settings.json",
)
IN_GIT = ("hooks", "coord", "coord.id", "config", "config.worktree")
"""The parts of a git directory that decide which hooks run and where the locks are."""
INCLUDED_MAX = 32
GIT_CONFIG_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
"""Variables that make git read another file of configuration."""
SWITCH = "disableAllHooks"
CONFIG_KEYS = (
    *("core.hookspath", "include.path", "includeif.", "core.worktree", "extensions.worktreeconfig"),
    *("core.bare", "core.sshcommand", "core.gitproxy"),
)
"""Keys of git's configuration that decide which hooks run, whom gates ask, or that load others."""
AGENT_VARIABLES = (
    *("COORD_SESSION_ID", "COORD_AGENT", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID"),
    *("CLAUDE_PID", "CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "GEMINI_CLI"),
    *("GEMINI_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "COPILOT_AGENT", "CURSOR_AGENT"),
    *("OPENCODE", "AI_AGENT"),
)
"""Variables that show git's hooks and coord that an agent calls them."""
HOOK_MARKS = ("coord/integrations/hooks/main.py", "coord hook ", "/v1/hook/claude")
"""Texts that only the command or the URL of our hook contains."""
SETTINGS_BYTES_MAX = 4 * 1024 * 1024
NEXT = "Next: ask a person to change it; `coord uninstall` removes the hooks."


def check_edit(event: Event, line: "CommandLine | None" = None) -> str:
    """Return why a call may not change the settings of hooks, or ""; `line` is its command line."""
    for path in event.writes:
        if is_configuration(os.path.join(event.cwd, os.path.expanduser(path))):
            return f"coord: {path} configures hooks, and agents may not change it. {NEXT}"
    return "" if line is None else _check_line(line)


def _check_line(line: "CommandLine") -> str:
    for write in line.writes:
        if is_configuration(write.path) or (write.tree and contains_configuration(write.path, line.cwd)):
            return (
                f"coord: this command would change {write.path}, which configures hooks, and agents may not "
                f"do that. {NEXT}"
            )
    for command in line.commands:
        if why := _check_command(command):
            return f"coord: this command {why}, and agents may not do that. {NEXT}"
    mentions = SWITCH in line.text or (line.runs_unknown and any(name in line.text for name in FILES))
    if mentions and not line.only_reads():
        return f"coord: this command would change the settings of hooks, and agents may not do that. {NEXT}"
    return ""


def settings_files(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings of all tools and of git: those of a worktree by name, those of the user by path."""
    return (*FILES, *(f"{_home(environ)}/{name}" for name in FILES), *user_files(environ))


def user_files(environ: Mapping[str, str]) -> list[str]:
    """Return the user's configuration of git and of coord, and the files that git's includes."""
    base = environ.get("XDG_CONFIG_HOME") or f"{_home(environ)}/.config"
    of_git = [f"{_home(environ)}/.gitconfig", f"{base}/git/config", environ.get("GIT_CONFIG_GLOBAL", "")]
    found = [path for path in of_git if path and path != os.devnull]
    for path in found:  # it grows
        found += [each for each in _included(path, environ) if each not in found][: INCLUDED_MAX - len(found)]
    return [*found, f"{base}/coord/{CONFIGURATION}"]


def _included(path: str, environ: Mapping[str, str]) -> list[str]:
    """Return the files that a configuration of git includes."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(SETTINGS_BYTES_MAX)
    except OSError:
        return []
    if "[include" not in text.lower():
        return []
    values = [
        after.strip().strip('"')
        for name, equals, after in (line.partition("=") for line in text.splitlines())
        if equals and name.lower().split("]")[-1].strip() == "path"
    ]
    home = _home(environ)
    return [
        os.path.join(os.path.dirname(path), f"{home}/{value[2:]}" if value.startswith("~/") else value)
        for value in values
    ]


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME", "") or os.path.expanduser("~")


def _check_command(command: "Command") -> str:
    """Return how a command would evade the hooks, or ""."""
    if command.name not in ("git", "coord"):
        return ""
    hidden = [name for name in AGENT_VARIABLES if not command.environ.get(name, "-")]
    if hidden or "*" in command.environ:
        return f"hides from {command.name} that an agent runs it ({(hidden or ['env -i'])[0]})"
    if command.name == "coord":
        if next((word for word in command.known[1:] if not word.startswith("-")), "") == "decide":
            return "answers a question to a person"
        return "removes the hooks" if "uninstall" in command.known[1:3] else ""
    from coord.integrations.shell_commands.git_commands import global_options, sets_config

    options, rest = global_options(command.words)
    if _passes_gate(rest):
        return "moves a protected branch in a way that no hook of git sees"
    keys = [value.partition("=")[0].lower() for name, value in options if name in ("-c", "--config-env")]
    keys += [
        (value or "*").lower()
        for name, value in command.environ.items()
        if name.startswith("GIT_CONFIG_KEY_")
    ]
    keys += [
        (value or "*").lower() for name, value in command.environ.items() if name == "GIT_CONFIG_PARAMETERS"
    ]
    keys += ["*" for name in GIT_CONFIG_VARIABLES if command.environ.get(name, "") not in ("", os.devnull)]
    if rest[:1] == ("config",):
        keys += _config_keys(command, rest[1:], sets_config(rest[1:]))
    if rest[:1] == ("clone",) or rest[:1] == ("init",):
        keys = []
    return "changes the hooks of git" if any(_decides_hooks(key) for key in keys) else ""


def _passes_gate(words: Sequence[str | None]) -> bool:
    """Whether a command of git moves a protected branch without a hook: `branch -C`, `symbolic-ref`."""
    from coord.integrations.git.gate.stubs import PROTECTED

    verb, rest = (words[0] if words else ""), [word or "" for word in words[1:]]
    named = [word.removeprefix("refs/heads/") for word in rest if not word.startswith("-")]
    flags = {word for word in rest if word.startswith("-")}
    if verb == "symbolic-ref":
        changes = len(named) > 1 or bool(flags & {"-d", "--delete"})
        return changes and bool(named) and named[0] in PROTECTED
    copies = bool(flags & {"-C", "-c", "--copy"})
    return verb == "branch" and copies and bool(named) and named[-1] in PROTECTED


def _config_keys(command: "Command", words: Sequence[str | None], keys: list[str]) -> list[str]:
    """Return the keys that `git config` changes, unless it changes a file that configures nothing."""
    files = [after for word, after in pairwise(words) if word in ("-f", "--file")]
    files += [word.partition("=")[2] for word in words if word is not None and word.startswith("--file=")]
    changed = [os.path.join(folder or "/", file) for file in files if file for folder in command.folders]
    return keys if not files or any(map(is_configuration, changed)) else []


def _decides_hooks(key: str) -> bool:
    return key == "*" or key.startswith(CONFIG_KEYS) or any(each in key for each in CONFIG_KEYS)


def is_configuration(path: str) -> bool:
    """Whether a file, or the target of a link, configures the hooks of a tool or of git, or coord itself."""
    users = _users()
    for each in _spellings(path):
        lower = each.casefold()
        parts = lower.split("/")
        git = next((number for number, part in enumerate(parts) if part.endswith(".git") and part), None)
        inside = parts[git + 1 :] if git is not None else []
        if lower.endswith(tuple(f"/{name}" for name in FILES)) or any(name in inside for name in IN_GIT):
            return True
        if lower in users or any(f"{lower}/".startswith(f"{own.casefold()}/") for own in _own_folders()):
            return True
        if parts[-1] == ".git" or (
            parts[-1] == CONFIGURATION and os.path.lexists(f"{os.path.dirname(each)}/.git")
        ):
            return True
    return False


@once_per_hook
def _users() -> set[str]:
    """Return the user's configuration of git and of coord, in lower case."""
    return {name.casefold() for file in user_files(environment()) for name in _spellings(file)}


def _spellings(path: str) -> list[str]:
    """Return a path as it is written, and the one that its links lead to."""
    return list(dict.fromkeys((os.path.normpath(path), real_path(path))))


@once_per_hook
def _own_folders() -> list[str]:
    """Return the folders of coord itself: consents and the store of the user; the socket of the hub."""
    from coord.host.consent import state_folder
    from coord.host.runtime.hub_socket import runtime_folder

    runtime = runtime_folder(environment())
    return [real_path(each) for each in (state_folder(environment()), runtime) if each]


def contains_configuration(folder: str, cwd: str) -> bool:
    """Whether a folder contains files that configure the hooks of a repository with coord, or of the user.

    A clone that an agent made elsewhere is its own to remove.
    """
    real = real_path(folder)
    home = real_path(os.path.expanduser("~"))
    roots = [home, real_path(cwd), *_own_folders()]
    if any(f"{root}/".startswith(f"{real.rstrip('/')}/") for root in roots) and real != real_path(cwd):
        return True
    users = [name for file in user_files(environment()) if os.path.lexists(file) for name in _spellings(file)]
    if any(name.startswith(f"{real}/") for name in users):
        return True
    try:
        repository = find_repository(real)
    except CoordError:
        return True
    names = [name.partition("/")[2] for name in FILES if name.startswith(f"{os.path.basename(real)}/")]
    below = any(os.path.lexists(f"{real}/{name}") for name in (*FILES, *names, CONFIGURATION, ".git"))
    if repository is None:
        return below and f"{real}/".startswith(f"{home}/.")
    return below and os.path.lexists(f"{repository.commondir}/coord")


def check_settings(event: Event, payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return why changed settings of Claude Code may not take effect, or ""."""
    changed = payload.get("file_path")
    if not isinstance(changed, str) or not is_configuration(changed):
        return ""
    settings = _read(changed)
    if settings is None:
        return f"coord: {changed} cannot be read, so the hooks of coord would be lost. {NEXT}"
    if settings.get(SWITCH):
        return f"coord: {changed} would disable all hooks, also those of coord. {NEXT}"
    roots = dict.fromkeys((environ.get("CLAUDE_PROJECT_DIR", "") or event.cwd, event.cwd, _home(environ)))
    paths = [f"{root}/{name}" for root in roots for name in FILES[:2]]
    if not any(_has_hook(_read(path) or {}) for path in paths):
        return f"coord: {changed} would leave no hook of coord. {NEXT}"
    return ""


def _has_hook(settings: Mapping[str, Any]) -> bool:
    return any(mark in str(fields_in(settings, "hooks").get("PreToolUse", "")) for mark in HOOK_MARKS)


def _read(path: str) -> Mapping[str, Any] | None:
    """Return the settings in a file: {} if it is missing, None if it cannot be parsed."""
    import json

    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(SETTINGS_BYTES_MAX) or b"{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
