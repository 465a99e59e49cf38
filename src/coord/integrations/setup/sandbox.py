"""Let the sandbox of Codex write the store of a repository: a setting in `.codex/config.toml`.

Codex reads the file if the person trusts the repository. The list in it replaces the list in the user's own
configuration, so it repeats that one.
"""

import os
from collections.abc import Mapping, Sequence

from coord.core.errors import CoordError
from coord.host.pin import read_pin
from coord.host.store_location import BELOW_THE_PIN, STORE_FOLDER, local_path
from coord.integrations.setup.changes import Planner
from coord.integrations.setup.files import Content, read_file, require_writable
from coord.integrations.setup.git_hooks import GitSetup
from coord.integrations.setup.text.marked_block import HASH, has_block, without_block
from coord.integrations.setup.text.toml_edit import parse, with_root, writable_roots
from coord.integrations.setup.tools import CODEX, Tool
from coord.stores.urls import scheme_of

CONFIG = ".codex/config.toml"


def store_folder(commondir: str) -> str:
    """Return the folder that a sandbox must let agents write; empty: none, or not a folder of coord alone."""
    pin = read_pin(f"{commondir}/coord")
    if pin is None or pin.url == BELOW_THE_PIN:
        return f"{commondir}/coord/{STORE_FOLDER}"
    return local_path(pin.url) if scheme_of(pin.url) == "file" else ""


def plan_sandbox(
    planner: Planner, git: GitSetup, environ: Mapping[str, str], tools: Sequence[Tool]
) -> list[str]:
    """Plan the setting in every worktree, and for new ones; return the files that git must ignore."""
    root = store_folder(git.commondir)
    if CODEX not in tools or not root:
        return []
    others = _user_roots(environ)
    for worktree in git.worktrees:
        try:
            _plan_config(planner, git, worktree, root, others)
        except CoordError as error:
            _note(planner, worktree, root, error.message)
    made = any(CONFIG in planner.created_below(worktree) for worktree in git.worktrees)
    if not made:
        return []
    text = with_root("", root, others)
    if text is not None:
        planner.plan_file(f"{git.templates}/{CONFIG}", "block", Content(text.encode()))
    return [CONFIG]


def _plan_config(planner: Planner, git: GitSetup, worktree: str, root: str, others: list[str]) -> None:
    path = os.path.realpath(f"{worktree}/{CONFIG}")
    if not path.startswith(f"{worktree}/"):
        _note(planner, worktree, root, "it is a link that leaves the repository")
        return
    base = planner.base(path) or Content(b"")
    if has_block(base.text, HASH):  # a copy that no journal has
        without = without_block(base.text, HASH)
        base = base.with_text(without)
        planner.set_base(path, base if without.strip() else None)
    text = with_root(base.text, root, others)
    if text == base.text:
        return
    if git.tracked(worktree, [CONFIG]):
        planner.keep(path)
        _note(planner, worktree, root, "git tracks it")
    elif text is None:
        _note(planner, worktree, root, "coord finds no safe place in it")
    else:
        current = read_file(path)
        same = current is not None and has_block(current.text, HASH) and parse(current.text) == parse(text)
        if not same:
            require_writable(path)
        planner.plan_file(path, "block", current if same and current else base.with_text(text))


def _note(planner: Planner, worktree: str, root: str, why: str) -> None:
    text = (
        f"coord leaves {worktree}/{CONFIG} unchanged: {why}; to let commands in the sandbox of Codex use "
        f"the store, add {root} to sandbox_workspace_write.writable_roots in your own ~/{CONFIG}"
    )
    if text not in planner.notes:
        planner.notes.append(text)


def _user_roots(environ: Mapping[str, str]) -> list[str]:
    """Return the writable roots in the user's own configuration."""
    home = CODEX.home(environ)
    try:
        with open(f"{home}/config.toml", encoding="utf-8") as file:
            config = parse(file.read())
    except (OSError, ValueError):
        return []
    roots = writable_roots(config or {}) or []
    return [root if root.startswith(("/", "~")) else os.path.normpath(f"{home}/{root}") for root in roots]
