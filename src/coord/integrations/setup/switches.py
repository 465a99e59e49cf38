"""The settings that a tool reads in a worktree, and the switch in them that disables its hooks."""

import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from coord.core.errors import Invalid
from coord.integrations.setup.tools import CLAUDE, CODEX, Tool, settings_in

MANAGED_CLAUDE = "/etc/claude-code/managed-settings.json"
MANAGED_GEMINI = "/etc/gemini-cli/settings.json"
Settings = Mapping[str, Any]


class Switch(NamedTuple):
    """A setting that disables hooks, and its file."""

    path: str
    name: str


def hook_files(tool: Tool, root: str, environ: Mapping[str, str]) -> list[str]:
    """Return the files with hooks that a tool reads in a worktree; the strongest comes first."""
    paths = (f"{root}/{tool.local}", f"{root}/{tool.shared}", f"{tool.home(environ)}/{tool.user}")
    return list(dict.fromkeys(paths))


def disabling_setting(tool: Tool, root: str, environ: Mapping[str, str]) -> Switch | None:
    """Return the switch that disables the hooks of a tool in a worktree."""
    if tool is CODEX:
        return _codex_switch(root, tool.home(environ))
    managed = MANAGED_CLAUDE if tool is CLAUDE else MANAGED_GEMINI
    found = {path: _readable(path) for path in (managed, *hook_files(tool, root, environ))}
    if tool is CLAUDE:
        if found[managed].get("allowManagedHooksOnly") is True:
            return Switch(managed, "allowManagedHooksOnly")
        return _first(found, "disableAllHooks", True)
    parts = {path: _table(settings, "hooksConfig") for path, settings in found.items()}
    for path, part in parts.items():
        named = part.get("disabled")
        if isinstance(named, list) and "coord" in named:
            return Switch(path, "hooksConfig.disabled")
    switch = _first(parts, "enabled", False)
    return switch and switch._replace(name="hooksConfig.enabled")


def _codex_switch(root: str, home: str) -> Switch | None:
    paths = (f"{root}/.codex/config.toml", f"{home}/config.toml")
    switch = _first({path: _table(_read_toml(path), "features") for path in paths}, "hooks", False)
    return switch and switch._replace(name="features.hooks")


def _first(found: Mapping[str, Settings], name: str, value: bool) -> Switch | None:
    """Return the switch if the strongest file that sets it has this value."""
    for path, settings in found.items():
        if isinstance(settings.get(name), bool):
            return Switch(path, name) if settings[name] is value else None
    return None


def _table(settings: Settings, name: str) -> Settings:
    part = settings.get(name)
    return part if isinstance(part, dict) else {}


def _readable(path: str) -> Settings:
    try:
        return settings_in(path)
    except Invalid:  # the tool cannot read it either
        return {}


def _read_toml(path: str) -> Settings:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return {}
