"""Files that only people may change: an agent could switch its hooks off by editing them."""

import os
from collections.abc import Mapping
from typing import Any

from coord.integrations.hooks.events import Event, fields_in
from coord.integrations.hooks.shell_parser import only_reads

FILES = (
    *(".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json", ".codex/config.toml"),
    ".gemini/settings.json",
)
IN_GIT = ("hooks", "coord", "config", "config.worktree")
"""The parts of a git directory that decide which hooks run and where the locks are."""
SWITCH = "disableAllHooks"
HOOK_MARKS = ("coord/integrations/hooks/main.py", "coord hook ")
"""Texts that only the command of our hook contains."""
SETTINGS_BYTES_MAX = 4 * 1024 * 1024
NEXT = "Next: ask a person to change it; `coord uninstall` removes the hooks."


def check_edit(event: Event) -> str:
    """Return why a call may not change the settings of hooks, or ""."""
    for path in event.writes:
        if is_configuration(os.path.join(event.cwd, path)):
            return f"coord: {path} configures hooks, and agents may not change it. {NEXT}"
    line = event.command or ""
    if (SWITCH in line or any(name in line for name in FILES)) and not only_reads(line):
        return f"coord: this command would change the settings of hooks, and agents may not do that. {NEXT}"
    return ""


def settings_files(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings of all tools: those of a worktree by name, those of the user by path."""
    home = environ.get("HOME", "") or os.path.expanduser("~")
    return (*FILES, *(f"{home}/{name}" for name in FILES))


def is_configuration(path: str) -> bool:
    """Whether a file, or the target of a link, configures the hooks of a tool or of git."""
    for each in (os.path.normpath(path).casefold(), os.path.realpath(path).casefold()):
        parts = each.split("/")
        inside = parts[parts.index(".git") + 1 :] if ".git" in parts else []
        if each.endswith(tuple(f"/{name}" for name in FILES)) or any(name in inside for name in IN_GIT):
            return True
    return False


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
    home = environ.get("HOME", "") or os.path.expanduser("~")
    roots = dict.fromkeys((environ.get("CLAUDE_PROJECT_DIR", "") or event.cwd, event.cwd, home))
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
