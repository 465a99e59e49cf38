"""Plans for `coord uninstall`, and for `coord doctor --fix`, which writes an earlier setup again."""

import os
from collections.abc import Mapping, Sequence

from coord.host.repository import Repository
from coord.integrations.setup.changes import Plan, Planner
from coord.integrations.setup.files import DRAFT_SUFFIX, remove_draft
from coord.integrations.setup.git_hooks import GitSetup
from coord.integrations.setup.installer import (
    SHARED,
    USER,
    journal_folder,
    plan_repository,
    plan_user,
    user_folder,
)
from coord.integrations.setup.journal import NAME, UNINSTALL, Journal, read_journal, setup_lock
from coord.integrations.setup.tools import CLAUDE, TOOLS, HttpForm, Tool
from coord.integrations.setup.unrecorded import plan_unrecorded_removal, strip_block, strip_settings


def plan_repair(repository: Repository, environ: Mapping[str, str]) -> list[Plan]:
    """Plan the previous setup again, or finish its removal; the changes are the files that need a repair."""
    previous = read_journal(journal_folder(repository))
    if previous.unfinished == UNINSTALL:
        return [plan_removal(repository)]
    tools = [tool for tool in TOOLS if tool.name in previous.tools]
    by_user = previous.scope == USER
    shared, http = previous.scope == SHARED, http_form(previous)
    plans = [plan_repository(repository, environ, tools, shared=shared, by_user=by_user, http=http)]
    if by_user:
        plans.append(plan_user(environ, tools))
    return plans


def http_form(journal: Journal) -> HttpForm | None:
    """Return the form of the hooks that a setup wrote, if they are sent by HTTP."""
    return HttpForm(*journal.http) if len(journal.http) == len(HttpForm._fields) else None


def repair(repository: Repository, environ: Mapping[str, str]) -> None:
    """Write the previous setup again, or finish its removal; a setup that wrote nothing leaves no draft."""
    folder = journal_folder(repository)
    plans = plan_repair(repository, environ)
    for plan in plans if plans[0].previous.edits else ():
        plan.apply()
    if os.path.lexists(f"{folder}/{NAME}{DRAFT_SUFFIX}"):
        with setup_lock(folder):
            remove_draft(f"{folder}/{NAME}")


def plan_removal(repository: Repository) -> Plan:
    """Plan to restore everything in a repository."""
    folder = journal_folder(repository)
    git = GitSetup(repository, folder)
    planner = Planner(folder, git.strip_config)
    git.plan_unrecorded_removal(planner)
    for root in git.worktrees:
        plan_unrecorded_removal(planner, git, root, TOOLS)
    return planner.finish(removes=True)


def plan_tools_removal(repository: Repository, environ: Mapping[str, str], tools: Sequence[Tool]) -> Plan:
    """Plan to remove the hooks and texts of some tools; those of the others and of git stay."""
    folder = journal_folder(repository)
    previous = read_journal(folder)
    if previous.edits:
        kept = [tool for tool in TOOLS if tool.name in previous.tools and tool not in tools]
        shared, by_user = previous.scope == SHARED, previous.scope == USER
        http = http_form(previous) if CLAUDE in kept else None
        return plan_repository(
            repository, environ, kept, shared=shared, by_user=by_user, removed=tools, http=http
        )._replace(removes=True)
    git = GitSetup(repository, folder)
    planner = Planner(folder, git.strip_config)
    for root in git.worktrees:
        plan_unrecorded_removal(planner, git, root, tools)
    return planner.finish(removes=True)


def plan_user_removal(environ: Mapping[str, str], tools: Sequence[Tool] = TOOLS) -> Plan:
    """Plan to restore a user's settings, or to remove some tools from them."""
    folder = user_folder(environ)
    previous = read_journal(folder)
    kept = [tool for tool in TOOLS if tool.name in previous.tools and tool not in tools]
    if kept:
        return plan_user(environ, kept)._replace(removes=True)
    planner = Planner(folder, lambda current, _: current)
    for tool in tools:
        home = tool.home(environ)
        strip_settings(planner, f"{home}/{tool.user}", home, tool)
        strip_block(planner, f"{home}/{tool.guide}", home)
    return planner.finish(removes=True)
