"""The settings for hooks in a repository's `coord.toml`.

[hooks]
writes_without_store = "open"    # default: "closed"
reads_without_store = "closed"   # default: "open"
restore = false                  # default: true
watched = [".env", "config/*.local"]   # ignored files to observe; default: .env, .env.local
permission_wait = "5m"           # wait for `coord decide` when a tool asks for a permission; default: "0"

[brief]
inject = false                   # default: true; agents read what others do
every_s = 30                     # default: 2; at most one brief in this time

[ledger]
reads = false                    # default: true; the ledger has the files that agents read
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.host.consent import Configuration
from coord.integrations.hooks.named_locks import ACTIONS, Action, with_presets
from coord.integrations.shell_effects.watched_files import WATCHED

WORDS = ("open", "closed")
KNOWN = ("writes_without_store", "reads_without_store", "restore", "watched", "actions", "permission_wait")
WATCHED_MAX = 64
PERMISSION_WAIT_S_MAX = 600
"""Tools wait no longer for a hook by default."""


class Settings(msgspec.Struct, frozen=True):
    """The behaviour of hooks in a repository."""

    closed_for_writes: bool = True
    closed_for_reads: bool = False
    restore: bool = True
    watched: tuple[str, ...] = WATCHED
    actions: tuple[Action, ...] = ACTIONS
    inject_brief: bool = True
    brief_every_ms: int = 2_000
    permission_wait_s: float = 0.0
    log_reads: bool = True


def read_settings(found: Configuration) -> Settings:
    """Return the settings of a worktree; the defaults without a `coord.toml` that a person has confirmed."""
    path, configuration = found.file, found.tables
    if not configuration:
        return Settings()
    from coord.host.presets import lock_presets

    given = configuration.get("hooks", {})
    if not isinstance(given, dict):
        raise Invalid(f"hooks in {path} is not a table", hint="write [hooks] and the settings below it")
    unknown = sorted(set(given) - set(KNOWN))
    if unknown:
        raise Invalid(f"{path} has no setting hooks.{unknown[0]}", hint=f"use {', '.join(KNOWN)}")
    restore = given.get("restore", True)
    if not isinstance(restore, bool):
        raise Invalid(f"hooks.restore in {path} is {restore!r}", hint="use true or false")
    return Settings(
        _closed(given, "writes_without_store", path, "closed"),
        _closed(given, "reads_without_store", path, "open"),
        restore,
        _watched(given.get("watched", list(WATCHED)), path),
        (*with_presets(lock_presets(configuration)), *_actions(given.get("actions", []), path)),
        *_brief(configuration.get("brief", {}), path),
        _permission_wait(given.get("permission_wait", "0"), path),
        _log_reads(configuration, path),
    )


def _brief(given: object, path: str) -> tuple[bool, int]:
    """Return whether agents are briefed, and how many milliseconds apart at least."""
    if not isinstance(given, dict):
        raise Invalid(f"brief in {path} is not a table", hint="write [brief] and the settings below it")
    unknown = sorted(set(given) - {"inject", "every_s"})
    if unknown:
        raise Invalid(f"{path} has no setting brief.{unknown[0]}", hint="use inject, every_s")
    inject, every_s = given.get("inject", True), given.get("every_s", 2)
    if not isinstance(inject, bool):
        raise Invalid(f"brief.inject in {path} is {inject!r}", hint="use true or false")
    if isinstance(every_s, bool) or not isinstance(every_s, int | float) or not 0.001 <= every_s <= 86_400:
        raise Invalid(f"brief.every_s in {path} is {every_s!r}", hint="use a number of seconds, such as 2")
    return inject, round(every_s * 1000)


def _log_reads(configuration: Mapping[str, Any], path: str) -> bool:
    """Return whether the ledger has the files that agents read."""
    if "ledger" not in configuration:
        return True
    from coord.core.activity.settings import ledger_settings

    return ledger_settings(configuration, path).reads


def _permission_wait(given: object, path: str) -> float:
    """Return how long a hook waits for a person, in seconds."""
    if given == "0":
        return 0.0
    import re

    found = re.fullmatch(r"([0-9]{1,4})([sm]?)", given) if isinstance(given, str) else None
    seconds = int(found[1]) * (60 if found[2] == "m" else 1) if found is not None else -1
    if not 0 <= seconds <= PERMISSION_WAIT_S_MAX:
        raise Invalid(
            f"hooks.permission_wait in {path} is {given!r}", hint='use "0" to "10m", for example "90s"'
        )
    return float(seconds)


def _closed(given: Mapping[str, Any], name: str, path: str, default: str) -> bool:
    word = given.get(name, default)
    if word not in WORDS:
        raise Invalid(f"hooks.{name} in {path} is {word!r}", hint='use "open" or "closed"')
    return bool(word == "closed")


def _watched(given: object, path: str) -> tuple[str, ...]:
    """Return the files to observe; all of them are below the worktree."""
    if not isinstance(given, list) or len(given) > WATCHED_MAX:
        raise Invalid(
            f"hooks.watched in {path} is not a list of at most {WATCHED_MAX} files",
            hint='write watched = [".env"]',
        )
    for text in given:
        plain = isinstance(text, str) and text and "\0" not in text
        if not plain or text.startswith(("/", ":")) or ".." in text.split("/"):
            raise Invalid(
                f"hooks.watched in {path} has {text!r}", hint="name files inside the worktree, such as .env"
            )
    return tuple(given)


def _actions(given: object, path: str) -> list[Action]:
    if not isinstance(given, list):
        raise Invalid(
            f"hooks.actions in {path} is not a list", hint="write [[hooks.actions]] above each action"
        )
    return [_action(each, path) for each in given]


def _action(given: object, path: str) -> Action:
    if not isinstance(given, dict) or set(given) - {"command", "lock", "main_tree"}:
        raise Invalid(f"an action in {path} has unknown fields", hint="use command, lock and main_tree")
    command, lock, main_tree = given.get("command"), given.get("lock"), given.get("main_tree", False)
    if not isinstance(command, str) or not command.split() or not isinstance(lock, str) or not lock:
        raise Invalid(f"an action in {path} needs command and lock", hint='command = "npm publish"')
    if not isinstance(main_tree, bool):
        raise Invalid(f"main_tree in {path} is {main_tree!r}", hint="use true or false")
    if not lock.startswith(("name:", "project:")):
        lock = f"name:{lock}"
    return Action(command, lock, main_tree)
