"""The configuration of hooks is for people: an agent that changed it would not be held by hooks any more."""

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
"""What of a git directory says which of its hooks run, or who holds what."""
SWITCH = "disableAllHooks"
HOOK_MARKS = ("coord/integrations/hooks/main.py", "coord hook ")
"""What the command of our own hook contains."""
SETTINGS_BYTES_MAX = 4 * 1024 * 1024
NEXT = "A person changes it; `coord uninstall` takes the hooks out."


def check_edit(event: Event) -> str:
    """Return why a call may not be made that would change the configuration of hooks, or nothing."""
    for path in event.writes:
        if is_configuration(os.path.join(event.cwd, path)):
            return f"{path} holds the configuration of hooks, which agents do not change. {NEXT}"
    line = event.command or ""
    if (SWITCH in line or any(name in line for name in FILES)) and not only_reads(line):
        return f"This command would change the configuration of hooks, which agents do not do. {NEXT}"
    return ""


def is_configuration(path: str) -> bool:
    """Whether a file says which hooks run, those of git too; a link to such a file is one."""
    for each in (os.path.normpath(path).casefold(), os.path.realpath(path).casefold()):
        parts = each.split("/")
        inside = parts[parts.index(".git") + 1 :] if ".git" in parts else []
        if each.endswith(tuple(f"/{name}" for name in FILES)) or any(name in inside for name in IN_GIT):
            return True
    return False


def check_settings(event: Event, payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return why changed settings of Claude Code may not take effect, or nothing."""
    changed = payload.get("file_path")
    if not isinstance(changed, str) or not is_configuration(changed):
        return ""
    settings = _read(changed)
    if settings is None:
        return f"{changed} cannot be read any more, and with it the hooks of coord. {NEXT}"
    if settings.get(SWITCH):
        return f"{changed} would disable all hooks, those of coord too. {NEXT}"
    home = environ.get("HOME", "") or os.path.expanduser("~")
    roots = dict.fromkeys((environ.get("CLAUDE_PROJECT_DIR", "") or event.cwd, event.cwd, home))
    places = [f"{root}/{name}" for root in roots for name in FILES[:2]]
    if not any(_has_hook(_read(place) or {}) for place in places):
        return f"with {changed} no hook of coord would be left. {NEXT}"
    return ""


def _has_hook(settings: Mapping[str, Any]) -> bool:
    return any(mark in str(fields_in(settings, "hooks").get("PreToolUse", "")) for mark in HOOK_MARKS)


def _read(path: str) -> Mapping[str, Any] | None:
    """Return settings; a missing file has none, one that cannot be understood is None."""
    import json

    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(SETTINGS_BYTES_MAX) or b"{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
