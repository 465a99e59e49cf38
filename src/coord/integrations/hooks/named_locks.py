"""Commands and files that need a named lock while a call runs (INT-12).

A command matches an action if it has the action's words in the same order; other words may stand between
them, and `*` in a word matches anything. A file matches if it is the action's path or lies below it, whether
a tool edits it or a command writes it. The git commands are built in. `coord.host.presets` adds an
example set, and a repository adds its own commands or drops the example in its `coord.toml`:

    [presets]
    locks = false

    [[hooks.actions]]
    command = "npm publish"
    lock = "release"
"""

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from coord.host.presets import LOCKS, LockPreset
from coord.host.runtime.seen_files import real_path


class Action(msgspec.Struct, frozen=True):
    """A command or a path that needs a lock; `main_tree`: only in the first worktree of a repository."""

    command: str
    lock: str
    main_tree: bool = False
    path: str = ""
    """A file or folder; `~` is the home of the user."""


BRANCHES = ("main", "master")
GIT_ACTIONS = (
    *(
        action
        for branch in BRANCHES
        for action in (
            Action(f"git checkout {branch}", "name:main-branch"),
            Action(f"git switch {branch}", "name:main-branch"),
            Action(f"git push {branch}", "name:main-push"),
            Action(f"git push *:{branch}", "name:main-push"),
            Action(f"git push *refs/heads/{branch}", "name:main-push"),
            Action(f"git push +{branch}", "name:main-push"),
        )
    ),
    Action("git push --all", "name:main-push"),
    Action("git push --mirror", "name:main-push"),
    Action("gh pr merge", "name:pr-merge-queue"),
)


def with_presets(presets: Iterable[LockPreset]) -> tuple[Action, ...]:
    """Return the built-in actions and those of some presets."""
    return (
        *GIT_ACTIONS,
        *(
            Action(command, preset.resource, preset.main_tree)
            for preset in presets
            for command in preset.commands
        ),
        *(Action("", preset.resource, path=path) for preset in presets for path in preset.paths),
    )


ACTIONS = with_presets(LOCKS)
PUSH_WORDS = 2
"""`git push origin` names no branch, so it pushes the one that is checked out."""


def locks_for(
    commands: Iterable[list[str]], actions: Iterable[Action], *, branch: str, main_tree: bool
) -> tuple[str, ...]:
    """Return the locks that some commands need."""
    branched = [_with_branch(words, branch) for words in commands]
    found = {
        action.lock: None
        for action in actions
        if (main_tree or not action.main_tree)
        and any(_matches(action.command.split(), words) for words in branched)
    }
    return tuple(found)


def locks_for_paths(
    paths: Iterable[tuple[str, bool]], actions: Iterable[Action], home: str
) -> tuple[str, ...]:
    """Return the locks that writes to absolute paths need; a marked path counts with all below it."""
    paths_needed = [(action, _resolved(action.path, home)) for action in actions if action.path]
    found: dict[str, None] = {}
    for path, tree in paths if paths_needed else ():
        spellings = {os.path.normpath(path), real_path(path)}
        for action, needed in paths_needed:
            for each in spellings:
                if f"{each}/".startswith(f"{needed}/") or (tree and f"{needed}/".startswith(f"{each}/")):
                    found[action.lock] = None
    return tuple(found)


def _resolved(path: str, home: str) -> str:
    return real_path(f"{home}/{path[2:]}" if path.startswith("~/") else path)


def _with_branch(words: list[str], branch: str) -> list[str]:
    """Return a push with its branch: the one that is checked out, unless the push names another."""
    if words[:2] != ["git", "push"] or not branch:
        return words
    named = [word for word in words[2:] if not word.startswith("-")]
    if len(named) < PUSH_WORDS or named[1] == "HEAD":
        return [*words, branch]
    return words


def _matches(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a command starts with the first word of a pattern and has the others in order."""
    if not pattern or not words or not fnmatchcase(words[0], pattern[0]):
        return False
    rest = iter(words[1:])
    return all(any(fnmatchcase(word, wanted) for word in rest) for wanted in pattern[1:])
