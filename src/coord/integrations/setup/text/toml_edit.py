"""Add a folder to `sandbox_workspace_write.writable_roots` in a Codex configuration, in a marked block.

The text stays as it is, with its comments and its order. Every possible place is tried, and the result is
parsed: it counts only if it says what was there before, and the new folder.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from coord.integrations.setup.text.marked_block import HASH, block_of, with_block

TABLE, KEY = "sandbox_workspace_write", "writable_roots"
_HEADER = re.compile(rf"^[ \t]*\[[ \t]*{TABLE}[ \t]*\][^\n]*(?:\n|\Z)", re.MULTILINE)
_ARRAY = re.compile(rf"{KEY}[ \t]*=[ \t]*\[")
Config = dict[str, Any]


def writable_roots(config: Config) -> list[str] | None:
    """Return the folders that a configuration lets the sandbox write; None if it names no list."""
    table = config.get(TABLE)
    found = table.get(KEY) if isinstance(table, dict) else None
    return [root for root in found if isinstance(root, str)] if isinstance(found, list) else None


def parse(text: str) -> Config | None:
    """Return a configuration; None if it cannot be read."""
    try:
        text.encode()
        return tomllib.loads(text)
    except ValueError:
        return None


def with_root(text: str, root: str, others: Sequence[str] = ()) -> str | None:
    """Return a configuration with one more writable root; None if no place for it is safe.

    `others` are added too if the configuration has no list yet: its list replaces that of the user.
    """
    config = parse(text)
    if config is None or not isinstance(config.get(TABLE, {}), dict):
        return None
    present = writable_roots(config)
    if present is not None and root in present:
        return text
    roots = [root] if present is not None else [root, *(other for other in others if other != root)]
    wanted = {**config, TABLE: {**config.get(TABLE, {}), KEY: [*roots, *(present or ())]}}
    return next((edited for edited in _edits(text, config, roots) if parse(edited) == wanted), None)


def _edits(text: str, config: Config, roots: list[str]) -> Iterator[str]:
    quoted = ", ".join(json.dumps(root, ensure_ascii=False) for root in roots)
    end = "\r\n" if "\r\n" in text else "\n"
    if writable_roots(config) is not None:
        block = block_of(f"{quoted},", HASH, end)
        yield from (f"{text[:at]}{end}{block}{text[at:]}" for at in _ends(_ARRAY, text))
        return
    if TABLE not in config:
        yield with_block(text, f"[{TABLE}]\n{KEY} = [{quoted}]", HASH)
        return
    block = block_of(f"{KEY} = [{quoted}]", HASH, end)
    line = text if text.endswith("\n") else text + end
    yield from (f"{line[:at]}{block}{line[at:]}" for at in _ends(_HEADER, line))
    yield block_of(f"{TABLE}.{KEY} = [{quoted}]", HASH, end) + text


def _ends(pattern: re.Pattern[str], text: str) -> list[int]:
    return [found.end() for found in pattern.finditer(text)]
