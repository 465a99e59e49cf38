"""What `coord init` adds to a repository or to a user's settings, and `coord uninstall` takes out."""

import os
from collections.abc import Mapping, Sequence

from coord.core.errors import Invalid
from coord.host.repository import Repository
from coord.integrations.setup import agent_docs as texts
from coord.integrations.setup.changes import Plan, Planner
from coord.integrations.setup.files import Content, read
from coord.integrations.setup.git_hooks import GitPart
from coord.integrations.setup.journal import read_record
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


def record_folder(repository: Repository) -> str:
    """Return where the record of a repository is: beside its pin."""
    return f"{repository.commondir}/coord"


def user_folder(environ: Mapping[str, str]) -> str:
    """Return where the record of a user is."""
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
    """Plan all that holds agents to the locks in one repository.

    Without `tools`: those that are found. `by_user`: their hooks are among the user's settings.
    `protected`: the branches that the gate of a shared bare repository guards; without any, as before.
    `tenant`: by whose locks; who pushes does not choose that.
    """
    folder = record_folder(repository)
    git = GitPart(repository, folder)
    planner = Planner(folder, git.strip_config)
    worktrees = git.worktrees
    if tools is None:
        tools = [tool for tool in TOOLS if any(tool.present(root, environ) for root in worktrees)]
    if git.is_shared:
        protected = protected or planner.old.protected
        tenant = tenant or planner.old.tenant
        git.plan_gate(planner, protected, tenant)
        return planner.done(protected=protected, tenant=tenant)
    git.plan_hooks(planner)
    if not by_user:
        for root in worktrees:
            _Worktree(planner, git, root, environ).plan(tools, shared=shared)
        if not shared:
            git.plan_exclude(planner, _plan_templates(planner, git, tools))
    scope = USER if by_user else SHARED if shared else LOCAL
    return planner.done(scope, [tool.name for tool in tools])


def plan_user(environ: Mapping[str, str], tools: Sequence[Tool]) -> Plan:
    """Plan the hooks of a user's own settings, which hold in all repositories."""
    planner = Planner(user_folder(environ), lambda now, _: now)
    for tool in tools:
        home = tool.home(environ)
        _want_hooks(planner, os.path.realpath(f"{home}/{tool.user}"), tool)
        _want_block(planner, os.path.realpath(f"{home}/{tool.guide}"))
    return planner.done(USER, [tool.name for tool in tools])


def plan_again(repository: Repository, environ: Mapping[str, str]) -> list[Plan]:
    """Plan what was set up before once more, in the same way: what comes of it is wrong now."""
    old = read_record(record_folder(repository))
    tools = [tool for tool in TOOLS if tool.name in old.tools]
    by_user = old.scope == USER
    plans = [plan_repository(repository, environ, tools, shared=old.scope == SHARED, by_user=by_user)]
    if by_user:
        plans.append(plan_user(environ, tools))
    return plans


def plan_removal(repository: Repository) -> Plan:
    """Plan that everything in a repository is as it was before."""
    folder = record_folder(repository)
    git = GitPart(repository, folder)
    planner = Planner(folder, git.strip_config)
    kept = {
        os.path.relpath(edit.path, git.templates)
        for edit in planner.old.edits
        if _is_below(edit.path, git.templates)
    }
    for root in git.worktrees:
        for name in sorted(kept):
            planner.forget_copy(root, name, f"{git.templates}/{name}")
    return planner.done()


def plan_user_removal(environ: Mapping[str, str]) -> Plan:
    """Plan that a user's settings are as they were before."""
    return Planner(user_folder(environ), lambda now, _: now).done()


class _Worktree:
    """The files of one worktree that explain coord to agents."""

    def __init__(self, planner: Planner, git: GitPart, root: str, environ: Mapping[str, str]) -> None:
        self._planner = planner
        self._git = git
        self._root = root
        self._environ = environ

    def plan(self, tools: Sequence[Tool], *, shared: bool) -> None:
        names = [name for tool in tools for name in (tool.local, tool.shared, tool.guide)] + [
            texts.SKILL_PATH
        ]
        tracked = self._git.tracked(self._root, names)
        for tool in tools:
            self._plan_hooks(tool, tracked, shared=shared)
            if shared or tool.guide not in tracked:
                _want_block(self._planner, self._real(tool.guide))
            else:
                self._note(
                    f"{tool.guide} is in git, and stays as it is (coord init --shared adds a part to it)"
                )
        if any(tool.name == "claude" for tool in tools) and (shared or texts.SKILL_PATH not in tracked):
            self._plan_skill()

    def _plan_hooks(self, tool: Tool, tracked: set[str], *, shared: bool) -> None:
        name = tool.shared if shared else tool.local
        elsewhere = [f"{tool.home(self._environ)}/{tool.user}"]
        if not shared and tool.shared != tool.local:
            elsewhere.append(f"{self._root}/{tool.shared}")
        for path in elsewhere:
            if self._planner.old.find(os.path.realpath(path)) is None and our_hooks(settings_in(path)):
                self._note(f"{tool.title} has its hooks in {path} already")
                return
        if not shared and name in tracked:
            self._note(f"{tool.title} gets no hooks: {name} is in git (see coord init --shared and --user)")
            return
        _want_hooks(self._planner, self._real(name), tool, shared=shared, of=self._git.commondir)

    def _plan_skill(self) -> None:
        path = self._real(texts.SKILL_PATH)
        base = self._planner.base(path)
        if base is None or base.text == texts.SKILL:
            self._planner.want(path, "whole", Content(texts.SKILL.encode()))
        else:
            self._note(f"{texts.SKILL_PATH} is another one, and stays as it is")

    def _real(self, name: str) -> str:
        """Return the file that a name leads to; one outside of the worktree is not ours to change."""
        path = os.path.realpath(f"{self._root}/{name}")
        if not _is_below(path, self._root):
            raise Invalid(
                f"{self._root}/{name} leads to {path}, outside of the repository",
                hint="use coord init --user",
            )
        return path

    def _note(self, text: str) -> None:
        if text not in self._planner.notes:
            self._planner.notes.append(text)


def _plan_templates(planner: Planner, git: GitPart, tools: Sequence[Tool]) -> list[str]:
    """Keep what the hook puts into a new worktree; return the names, which git shall not see."""
    made = {name for root in git.worktrees for name in planner.made_below(root)}
    kept: list[str] = []
    for tool in tools:
        if any(planner.wants(f"{root}/{tool.local}") for root in git.worktrees):
            _want_hooks(planner, f"{git.templates}/{tool.local}", tool, of=git.commondir)
            kept.append(tool.local)
        if tool.guide in made:
            _want_block(planner, f"{git.templates}/{tool.guide}")
            kept.append(tool.guide)
    if texts.SKILL_PATH in made:
        planner.want(f"{git.templates}/{texts.SKILL_PATH}", "whole", Content(texts.SKILL.encode()))
        kept.append(texts.SKILL_PATH)
    return kept


def _want_hooks(planner: Planner, path: str, tool: Tool, *, shared: bool = False, of: str = "") -> None:
    base = planner.base(path) or Content(b"")
    recorded = not our_hooks(settings_of(base.text, path))
    without = base.text if recorded else without_hooks(base.text, path)
    text = with_hooks(without, hooks_of(tool, shared=shared, of=of), path)
    if not recorded:
        if our_hooks(settings_of(base.text, path)) == our_hooks(settings_of(text, path)):
            return
        planner.rebase(path, None if without.strip() == "{}" else base.with_text(without))
    now = read(path)
    if now is not None and our_hooks(settings_of(now.text, path)) == our_hooks(settings_of(text, path)):
        planner.want(path, "json", now)  # others may have put it into another order
    else:
        planner.want(path, "json", base.with_text(text))


def _want_block(planner: Planner, path: str) -> None:
    base = planner.base(path) or Content(b"")
    text = with_block(base.text, texts.BLOCK, MARKDOWN)
    if text != base.text and has_block(base.text, MARKDOWN):  # an older one that nobody recorded
        without = without_block(base.text, MARKDOWN)
        planner.rebase(path, base.with_text(without) if without.strip() else None)
    now = read(path)
    if now is not None and with_block(now.text, texts.BLOCK, MARKDOWN) == now.text:
        planner.want(path, "block", now)
    else:
        planner.want(path, "block", base.with_text(text))


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")
