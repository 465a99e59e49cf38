"""Plans for `coord init`, in a repository and in a user's settings; removal.py plans `coord uninstall`."""

import os
from collections.abc import Mapping, Sequence

from coord.host.caller import TENANT
from coord.host.repository import Repository
from coord.integrations.setup.agent_files import AgentFiles, plan_block, plan_templates, plan_tool_hooks
from coord.integrations.setup.changes import Plan, Planner
from coord.integrations.setup.ephemeral import ephemeral_folder
from coord.integrations.setup.git_hooks import GitSetup
from coord.integrations.setup.journal import read_journal
from coord.integrations.setup.sandbox import plan_sandbox
from coord.integrations.setup.tools import TOOLS, HttpForm, Tool
from coord.integrations.setup.unrecorded import plan_unrecorded_removal

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
    tools: Sequence[Tool] = TOOLS,
    *,
    shared: bool = False,
    by_user: bool = False,
    removed: Sequence[Tool] = (),
    protected: Sequence[str] = (),
    tenant: str = "",
    http: HttpForm | None = None,
) -> Plan:
    """Plan the hooks, texts and gates of one repository.

    `tools`: exactly the tools that have hooks afterwards. `by_user`: the hooks are in the user's settings.
    `removed`: tools whose hooks are removed even where no journal names them.
    `protected`: the branches that the gate of a bare repository protects; empty keeps the former ones.
    `tenant`: the tenant whose locks the gate checks, whatever the environment of a push says.
    `http`: Claude Code asks the hub by HTTP around each call; without it all hooks are commands.
    """
    folder = journal_folder(repository)
    git = GitSetup(repository, folder)
    planner = Planner(folder, git.strip_config)
    if git.is_shared:
        protected = protected or planner.previous.protected
        tenant = tenant or planner.previous.tenant
        git.plan_gate(planner, protected, tenant)
        return planner.finish(protected=protected, tenant=tenant)
    tenant = tenant or planner.previous.tenant or TENANT
    git.plan_hooks(planner, tenant)
    if not by_user:
        for root in git.worktrees:
            AgentFiles(planner, git, root, environ, http).plan(tools, shared=shared)
            plan_unrecorded_removal(planner, git, root, removed)
    hidden = [] if by_user or shared else plan_templates(planner, git, tools, http)
    git.plan_exclude(planner, [*hidden, *plan_sandbox(planner, git, environ, tools)])
    scope = USER if by_user else SHARED if shared else LOCAL
    names = [tool.name for tool in tools]
    return planner.finish(scope, names, tenant=tenant, ephemeral=ephemeral_folder(environ), http=http or ())


def plan_user(environ: Mapping[str, str], tools: Sequence[Tool]) -> Plan:
    """Plan the hooks in a user's settings, which apply to all repositories."""
    planner = Planner(user_folder(environ), lambda current, _: current)
    for tool in tools:
        home = tool.home(environ)
        with planner.reporting(os.path.realpath(f"{home}/{tool.user}"), tool.name):
            plan_tool_hooks(planner, os.path.realpath(f"{home}/{tool.user}"), tool)
            plan_block(planner, os.path.realpath(f"{home}/{tool.guide}"))
    return planner.finish(USER, [tool.name for tool in tools], ephemeral=ephemeral_folder(environ))


def tools_with(folder: str, added: Sequence[Tool]) -> list[Tool]:
    """Return the tools of an earlier setup and those that are added to them."""
    had = read_journal(folder).tools
    return [tool for tool in TOOLS if tool in added or tool.name in had]
