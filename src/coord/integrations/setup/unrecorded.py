"""Parts of coord in a worktree that no journal names, found by their marks.

They are in copies that a hook made for a new worktree, and everywhere after somebody removed `.git/coord`.
"""

import os
from collections.abc import Sequence

from coord.integrations.setup.changes import Planner
from coord.integrations.setup.files import Content, read_file
from coord.integrations.setup.git_hooks import GitSetup
from coord.integrations.setup.sandbox import CONFIG
from coord.integrations.setup.text import agent_docs
from coord.integrations.setup.text.marked_block import HASH, MARKDOWN, Marks, has_block, without_block
from coord.integrations.setup.tools import CLAUDE, CODEX, OUR_COMMANDS, Tool, without_hooks


def plan_unrecorded_removal(planner: Planner, git: GitSetup, root: str, tools: Sequence[Tool]) -> None:
    """Plan to remove the parts of some tools in a worktree; files that git tracks stay."""
    names = [name for tool in tools for name in (tool.local, tool.shared, tool.guide)]
    tracked = git.tracked(root, [*names, agent_docs.SKILL_PATH, CONFIG])
    if CODEX in tools and CONFIG not in tracked:
        strip_block(planner, f"{root}/{CONFIG}", root, HASH)
    for tool in tools:
        for name in dict.fromkeys((tool.local, tool.shared)):
            if name not in tracked:
                strip_settings(planner, f"{root}/{name}", root, tool)
        if tool.guide not in tracked:
            strip_block(planner, f"{root}/{tool.guide}", root)
    skill = f"{root}/{agent_docs.SKILL_PATH}"
    if CLAUDE in tools and agent_docs.SKILL_PATH not in tracked:
        found = _unrecorded(planner, skill)
        if found is not None and found.text == agent_docs.SKILL:
            planner.remove_unrecorded(skill, None, root)


def strip_settings(planner: Planner, path: str, root: str, tool: Tool) -> None:
    """Plan a settings file without our hooks."""
    path = os.path.realpath(path)
    with planner.reporting(path, tool.name):
        current = _unrecorded(planner, path)
        if current is None or not any(mark in current.text for mark in OUR_COMMANDS):
            return
        text = without_hooks(current.text, path)
        if text != current.text:
            planner.remove_unrecorded(path, None if text.strip() == "{}" else current.with_text(text), root)


def strip_block(planner: Planner, path: str, root: str, marks: Marks = MARKDOWN) -> None:
    """Plan a guide or a configuration without our block."""
    path = os.path.realpath(path)
    with planner.reporting(path, "guide"):
        current = _unrecorded(planner, path)
        if current is not None and has_block(current.text, marks):
            text = without_block(current.text, marks)
            planner.remove_unrecorded(path, current.with_text(text) if text.strip() else None, root)


def _unrecorded(planner: Planner, path: str) -> Content | None:
    """Return a file that the journal does not name."""
    return None if planner.previous.find(path) else read_file(path)
