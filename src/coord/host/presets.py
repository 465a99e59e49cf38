"""Shipped defaults that carry names: which agents do which tasks best, and well-known locks.

The names come from the documents that coord was founded on. They are an example of a working team, kept
as data in this one file; no other module knows them. A repository replaces them in its `coord.toml`:

    [presets]
    routing = false             # drop AGENTS_BY_TYPE; [routing.types] names your agents
    locks = false               # drop LOCKS; [[hooks.actions]] names your commands

    [locks]
    host = ["deploy-key"]       # lock names that all repositories of this machine share

The tables are Python literals, because importing a TOML parser takes longer than a whole lock command.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from coord.core.errors import Invalid

HOST_NAMES_MAX = 64


class LockPreset(msgspec.Struct, frozen=True):
    """A lock name that everybody uses for the same purpose, and the commands and paths that need it.

    A `host` lock is shared by all repositories of a machine. A `main_tree` lock is needed only in the
    first worktree of a repository.
    """

    name: str
    commands: tuple[str, ...]
    host: bool = False
    main_tree: bool = False
    paths: tuple[str, ...] = ()
    """Files and folders; whatever writes them needs the lock."""

    @property
    def resource(self) -> str:
        """The lock as the core knows it."""
        return f"name:{self.name}"


LOCKS = (
    LockPreset("cargo-build", ("cargo build",), main_tree=True),
    LockPreset("claude-config", (), host=True, paths=("~/.claude",)),
    LockPreset(
        "engram-serve",
        tuple(f"{verb} *engram*" for verb in ("kill", "pkill", "killall")),
        host=True,
        paths=("~/.local/bin/engram",),
    ),
)

HOST_LOCKS = tuple(preset.resource for preset in LOCKS if preset.host)

AGENTS_BY_TYPE: Mapping[str, Mapping[str, Any]] = {
    "code_gen": {
        "agents": ("beatrice", "otto", "rem"),
        "because": "Beatrice writes new code fastest and best; Otto stands in, Rem takes simple ones.",
    },
    "review": {
        "agents": ("otto", "beatrice", "rem"),
        "because": "Otto understands large contexts; Beatrice does plain edits, Rem small ones.",
    },
    "api": {
        "agents": ("rem", "otto", "beatrice"),
        "because": "Rem specialises in web services; Otto is a generalist, Beatrice can write wrappers.",
    },
    "doc": {
        "agents": ("otto", "beatrice", "rem"),
        "because": "Otto explains best in plain language; Beatrice writes technical text, Rem finds facts.",
    },
    "testing": {
        "agents": ("beatrice", "rem", "otto"),
        "because": "Beatrice writes good tests; Rem tests against outside data, Otto decides what to test.",
    },
    "script": {
        "agents": ("otto", "beatrice", "rem"),
        "because": "Otto works in the shell himself; Beatrice can write scripts too, Rem the simpler ones.",
    },
}


def agents_by_type(configuration: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the shipped routing rows by task type; none if `coord.toml` drops them."""
    return AGENTS_BY_TYPE if _keeps(configuration, "routing") else {}


def lock_presets(configuration: Mapping[str, Any]) -> tuple[LockPreset, ...]:
    """Return the shipped well-known locks; none if `coord.toml` drops them."""
    return LOCKS if _keeps(configuration, "locks") else ()


def host_locks(configuration: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the locks that all repositories of this machine share: those of `coord.toml`, or the shipped."""
    table = configuration.get("locks", {})
    if not isinstance(table, dict) or set(table) - {"host"}:
        raise Invalid("[locks] in coord.toml is not understood", hint='write host = ["deploy-key"] below it')
    if "host" not in table:
        return HOST_LOCKS if _keeps(configuration, "locks") else ()
    names = table["host"]
    if not isinstance(names, list) or len(names) > HOST_NAMES_MAX or not all(map(_is_name, names)):
        raise Invalid(
            "locks.host in coord.toml is not a list of lock names",
            hint=f'write host = ["deploy-key"], with at most {HOST_NAMES_MAX} names',
        )
    from coord.core.locks.paths import fold  # noqa: PLC0415 - few repositories name their own

    return tuple(fold(f"name:{name.removeprefix('name:')}") for name in names)


def _keeps(configuration: Mapping[str, Any], preset: str) -> bool:
    """Whether a configuration keeps a shipped table."""
    table = configuration.get("presets", {})
    known = isinstance(table, dict) and not set(table) - {"routing", "locks"}
    if not known or not all(isinstance(value, bool) for value in table.values()):
        raise Invalid("[presets] in coord.toml is not understood", hint="use routing = false, locks = false")
    return bool(table.get(preset, True))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.removeprefix("name:").strip() != ""
