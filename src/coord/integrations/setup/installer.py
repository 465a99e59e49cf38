"""Plans for `coord init` and `coord uninstall`, in a repository and in a user's settings."""

import os
from collections.abc import Mapping, Sequence

from coord.core.errors import Invalid
from coord.host.repository import Repository
from coord.integrations.setup import agent_docs
from coord.integrations.setup.changes import Plan, Planner
from coord.integrations.setup.files import Content, read_file
from coord.integrations.setup.git_hooks import GitSetup
from coord.integrations.setup.journal import read_journal
from coord.integrations.setup.marked_block import MARKDOWN, has_block, with_block, without_block
from coord.integrations.setup.tools import (
    TOOLS,
    Tool,
    hooks_of,
    our_hooks,
    settings_in,
    settings_of,
    with_hooks,
    without_hooks,
)

LOCAL, SHARED, USER = "local", "shared", "user"


def journal_folder(repository: Repository) -> str:
    """Return the folder of a repository's journal; its pin is there too."""
    return f"{repository.commondir}/coord"


def user_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of a user's journal."""
    base = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME') or os.path.expanduser('~')}/.config"
    return f"{base}/coord"


def plan_repository(
    repository: Repository,
    environ: Mapping[str, str],
    tools: Sequence[Tool] | None = None,
    *,
    shared: bool = False,
    by_user: bool = False,
    protected: Sequence[str] = (),
    tenant: str = "",
) -> Plan:
    """Plan the hooks, texts and gates of one repository.

    `tools`: the agent tools; None: those that are found. `by_user`: the hooks are in the user's settings.
    `protected`: the branches that the gate of a bare repository protects; empty keeps the former ones.
    `tenant`: the tenant whose locks the gate checks, whatever the environment of a push says.
    """
    folder = journal_folder(repository)
    git = GitSetup(repository, folder)
    planner = Planner(folder, git.strip_config)
    worktrees = git.worktrees
    if tools is None:
        tools = [tool for tool in TOOLS if any(tool.is_present(root, environ) for root in worktrees)]
    if git.is_shared:
        protected = protected or planner.previous.protected
        tenant = tenant or planner.previous.tenant
        git.plan_gate(planner, protected, tenant)
        return planner.finish(protected=protected, tenant=tenant)
    git.plan_hooks(planner)
    if not by_user:
        for root in worktrees:
            _Worktree(planner, git, root, environ).plan(tools, shared=shared)
        if not shared:
            git.plan_exclude(planner, _plan_templates(planner, git, tools))
    scope = USER if by_user else SHARED if shared else LOCAL
    return planner.finish(scope, [tool.name for tool in tools])


def plan_user(environ: Mapping[str, str], tools: Sequence[Tool]) -> Plan:
    """Plan the hooks in a user's settings, which apply to all repositories."""
    planner = Planner(user_folder(environ), lambda current, _: current)
    for tool in tools:
        home = tool.home(environ)
        _plan_tool_hooks(planner, os.path.realpath(f"{home}/{tool.user}"), tool)
        _plan_block(planner, os.path.realpath(f"{home}/{tool.guide}"))
    return planner.finish(USER, [tool.name for tool in tools])


def plan_repair(repository: Repository, environ: Mapping[str, str]) -> list[Plan]:
    """Plan the previous setup again; its changes are the files that need a repair."""
    previous = read_journal(journal_folder(repository))
    tools = [tool for tool in TOOLS if tool.name in previous.tools]
    by_user = previous.scope == USER
    plans = [plan_repository(repository, environ, tools, shared=previous.scope == SHARED, by_user=by_user)]
    if by_user:
        plans.append(plan_user(environ, tools))
    return plans


def plan_removal(repository: Repository) -> Plan:
    """Plan to restore everything in a repository."""
    folder = journal_folder(repository)
    git = GitSetup(repository, folder)
    planner = Planner(folder, git.strip_config)
    kept = {
        os.path.relpath(edit.path, git.templates)
        for edit in planner.previous.edits
        if _is_below(edit.path, git.templates)
    }
    for root in git.worktrees:
        for name in sorted(kept):
            planner.plan_copy_removal(root, name, f"{git.templates}/{name}")
    return planner.finish()


def plan_user_removal(environ: Mapping[str, str]) -> Plan:
    """Plan to restore a user's settings."""
    return Planner(user_folder(environ), lambda current, _: current).finish()


class _Worktree:
    """Plans the settings and texts for agents in one worktree."""

    def __init__(self, planner: Planner, git: GitSetup, root: str, environ: Mapping[str, str]) -> None:
        self._planner = planner
        self._git = git
        self._root = root
        self._environ = environ

    def plan(self, tools: Sequence[Tool], *, shared: bool) -> None:
        names = [name for tool in tools for name in (tool.local, tool.shared, tool.guide)] + [
            agent_docs.SKILL_PATH
        ]
        tracked = self._git.tracked(self._root, names)
        for tool in tools:
            self._plan_hooks(tool, tracked, shared=shared)
            if shared or tool.guide not in tracked:
                _plan_block(self._planner, self._real(tool.guide))
            else:
                self._note(
                    f"git tracks {tool.guide}, and coord leaves it unchanged (coord init --shared adds to it)"
                )
        if any(tool.name == "claude" for tool in tools) and (shared or agent_docs.SKILL_PATH not in tracked):
            self._plan_skill()

    def _plan_hooks(self, tool: Tool, tracked: set[str], *, shared: bool) -> None:
        name = tool.shared if shared else tool.local
        elsewhere = [f"{tool.home(self._environ)}/{tool.user}"]
        if not shared and tool.shared != tool.local:
            elsewhere.append(f"{self._root}/{tool.shared}")
        for path in elsewhere:
            if self._planner.previous.find(os.path.realpath(path)) is None and our_hooks(settings_in(path)):
                self._note(f"{path} already has the hooks for {tool.title}")
                return
        if not shared and name in tracked:
            self._note(f"{tool.title} gets no hooks: git tracks {name} (use coord init --shared or --user)")
            return
        _plan_tool_hooks(
            self._planner, self._real(name), tool, shared=shared, git_directory=self._git.commondir
        )

    def _plan_skill(self) -> None:
        path = self._real(agent_docs.SKILL_PATH)
        base = self._planner.base(path)
        if base is None or base.text == agent_docs.SKILL:
            self._planner.plan_file(path, "whole", Content(agent_docs.SKILL.encode()))
        else:
            self._note(f"coord leaves {agent_docs.SKILL_PATH} unchanged: somebody else wrote it")

    def _real(self, name: str) -> str:
        """Return the real path of a file; raise Invalid if it is outside of the worktree."""
        path = os.path.realpath(f"{self._root}/{name}")
        if not _is_below(path, self._root):
            raise Invalid(
                f"{self._root}/{name} is a link to {path}, outside of the repository",
                hint="use coord init --user",
            )
        return path

    def _note(self, text: str) -> None:
        if text not in self._planner.notes:
            self._planner.notes.append(text)


def _plan_templates(planner: Planner, git: GitSetup, tools: Sequence[Tool]) -> list[str]:
    """Plan the templates for new worktrees; return their names, which git must ignore."""
    made = {name for root in git.worktrees for name in planner.created_below(root)}
    kept: list[str] = []
    for tool in tools:
        if any(planner.has_plan_for(f"{root}/{tool.local}") for root in git.worktrees):
            _plan_tool_hooks(planner, f"{git.templates}/{tool.local}", tool, git_directory=git.commondir)
            kept.append(tool.local)
        guides = [planner.base(os.path.realpath(f"{root}/{tool.guide}")) for root in git.worktrees]
        if tool.guide in made and not any(map(_has_rules, guides)):
            _plan_block(planner, f"{git.templates}/{tool.guide}")
            kept.append(tool.guide)
        elif git.hides(planner, tool.guide):
            planner.notes.append(
                f"git no longer ignores {tool.guide}, because you have written into it: git add {tool.guide}"
            )
    if agent_docs.SKILL_PATH in made:
        planner.plan_file(
            f"{git.templates}/{agent_docs.SKILL_PATH}", "whole", Content(agent_docs.SKILL.encode())
        )
        kept.append(agent_docs.SKILL_PATH)
    return kept


def _has_rules(guide: Content | None) -> bool:
    """Whether a person has written into a guide."""
    return guide is not None and bool(without_block(guide.text, MARKDOWN).strip())


def _plan_tool_hooks(
    planner: Planner, path: str, tool: Tool, *, shared: bool = False, git_directory: str = ""
) -> None:
    base = planner.base(path) or Content(b"")
    recorded = not our_hooks(settings_of(base.text, path))
    without = base.text if recorded else without_hooks(base.text, path)
    text = with_hooks(without, hooks_of(tool, shared=shared, git_directory=git_directory), path)
    if not recorded:
        if our_hooks(settings_of(base.text, path)) == our_hooks(settings_of(text, path)):
            return
        planner.set_base(path, None if without.strip() == "{}" else base.with_text(without))
    current = read_file(path)
    if current is not None and our_hooks(settings_of(current.text, path)) == our_hooks(
        settings_of(text, path)
    ):
        planner.plan_file(path, "json", current)  # others may have reordered it
    else:
        planner.plan_file(path, "json", base.with_text(text))


def _plan_block(planner: Planner, path: str) -> None:
    base = planner.base(path) or Content(b"")
    text = with_block(base.text, agent_docs.BLOCK, MARKDOWN)
    if text != base.text and has_block(base.text, MARKDOWN):  # an older block that no journal has
        without = without_block(base.text, MARKDOWN)
        planner.set_base(path, base.with_text(without) if without.strip() else None)
    current = read_file(path)
    if current is not None and with_block(current.text, agent_docs.BLOCK, MARKDOWN) == current.text:
        planner.plan_file(path, "block", current)
    else:
        planner.plan_file(path, "block", base.with_text(text))


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")
