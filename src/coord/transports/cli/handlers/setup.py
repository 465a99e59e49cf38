"""Commands that prepare a repository and a shell, and those about coord itself."""

import os
import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING

from coord.transports.cli.connect import connected
from coord.transports.cli.output import Answer, is_terminal, say

if TYPE_CHECKING:
    from coord.host.repository import Repository
    from coord.integrations.setup.changes import Plan


def init(options: SimpleNamespace, given: SimpleNamespace) -> Answer | str:
    """Prepare and pin the store of this repository; put hooks where agents and git look for them."""
    from coord.integrations.setup.installer import plan_repository, plan_user
    from coord.integrations.setup.tools import TOOLS, named_tools
    from coord.sdk.client.open import initialise
    from coord.stores.urls import shown

    tools = named_tools(given.tools) if given.tools else None
    place = None
    if not given.dry_run:
        place = initialise(os.getcwd(), os.environ, url=options.url, new_store=given.new_store)
    plans = [plan_repository(_repository(), os.environ, tools, shared=given.shared, by_user=given.user)]
    if given.user:
        found = [tool for tool in TOOLS if tool.name in plans[0].record.tools]
        plans.append(plan_user(os.environ, tools or found))
    if place is None:
        return "".join(plan.diff() for plan in plans)
    fields = {
        "url": shown(place.url),
        "store_id": place.store_id,
        "epoch": place.epoch,
        "repository_id": place.repository_id,
    }
    line = f"The store of this repository is {shown(place.url)}"
    return _carry_out(plans, fields, line, agreed=given.yes or _agrees(plans, line))


def uninstall(_: SimpleNamespace, given: SimpleNamespace) -> Answer | str:
    """Take out what `init` put into files."""
    from coord.integrations.setup.installer import plan_removal, plan_user_removal

    plan = plan_user_removal(os.environ) if given.user else plan_removal(_repository())
    if given.dry_run:
        return plan.diff()
    plan.apply(by=_tool())
    changed = [change.path for change in plan.changes]
    notes = "".join(f"; {note}" for note in plan.notes)
    said = f"{len(changed)} files are as they were" if changed else "There is nothing to take out"
    return Answer({"changed": changed, "notes": plan.notes}, said + notes)


def _repository() -> "Repository":
    from coord.core.errors import Invalid
    from coord.host.repository import find_repository

    repository = find_repository(os.getcwd())
    if repository is None:
        raise Invalid(f"{os.getcwd()} is in no git repository", hint="git init makes one")
    return repository


def _tool() -> str:
    """Return the agent tool that calls; a person's is empty."""
    from coord.host.caller import find_caller

    return find_caller(os.environ).tool


def _agrees(plans: "list[Plan]", line: str) -> bool:
    """Show a person what would be changed, and ask."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)) or not any(plan.changes for plan in plans):
        return False
    say(line)
    for row in "".join(plan.diff() for plan in plans).splitlines():
        say(row)
    say("Change these files? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _carry_out(plans: "list[Plan]", fields: dict[str, object], line: str, *, agreed: bool) -> Answer:
    paths = [change.path for plan in plans for change in plan.changes]
    notes = [note for plan in plans for note in plan.notes]
    if agreed:
        for plan in plans:
            plan.apply(by=_tool())
        tools = ", ".join(plans[0].record.tools) or "none found"
        line += f"; hooks for git and agents ({tools}): {len(paths)} files changed"
    elif paths:
        line += f"; coord init --yes puts hooks into {len(paths)} files (--dry-run shows them)"
    done = {"changed": paths if agreed else [], "proposed": [] if agreed else paths, "notes": notes}
    return Answer({**fields, **done}, "".join((line, *(f"; {note}" for note in notes))))


def completion(options: SimpleNamespace, given: SimpleNamespace) -> str:
    """Return the script for a shell, or the words that such a script asks for."""
    from coord.transports.cli.completion import SCRIPTS, candidates, quietly

    if given.shell in SCRIPTS:
        return SCRIPTS[given.shell]

    def ask(what: str) -> Iterable[str]:
        with connected(options) as client:
            if what == "tasks":
                return [task.task_id for task in client.task_list()]
            if what == "held":
                return [lock.resource for lock in client.locks()]
            return [peer.session_id for peer in client.peers()]

    return "".join(f"{word}\n" for word in candidates(given.word, quietly(ask)))


def version(_options: SimpleNamespace, _given: SimpleNamespace) -> Answer:
    """Return the version of coord and of its Python, and the folder of the package."""
    import coord

    python = ".".join(map(str, sys.version_info[:3]))
    folder = os.path.dirname(coord.__file__)
    fields = {"version": coord.__version__, "python": python, "folder": folder}
    return Answer(fields, f"coord {coord.__version__} (Python {python}, in {folder})")


def explain(_options: SimpleNamespace, given: SimpleNamespace) -> str:
    """Return the same text as `--help` after the command."""
    from coord.transports.cli.help import help_of
    from coord.transports.cli.parser import parse

    request = parse([*given.command, "--help"])
    return help_of(request.command, request.noun)
