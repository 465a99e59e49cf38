"""The SUBAGENT CONTEXT of a worker that coord starts: who it is, where, and beside whom (CTX-18).

Header and steps are those of the founding documents. The commands below the steps are coord's: the files that
those documents name are only mirrors here, and nothing that is written to them counts.
"""

import os
from collections.abc import Sequence
from shlex import quote as shell_quote

from coord.core.errors import CoordError
from coord.core.plans.commands import TaskInfo
from coord.sdk.brief.plain_text import field
from coord.sdk.client.client import Client

SIBLINGS_MAX = 12
NONE = "none"
TEXT = """\
## SUBAGENT CONTEXT (You are a parallel worker)

**SUBAGENT_ID:** {subagent}
**WORKTREE_PATH:** {worktree}
**PARALLEL_GROUP:** {group}
**SIBLING_TASKS:** {siblings}

### MANDATORY: Follow the agent-sync protocol

You are running in parallel with other agents. Before editing ANY file:

1. Initialize your status file:
   coord update --status starting --task {task}

2. Check claims before editing:
   coord locks

3. Claim files before editing
   coord lock FILE

4. Release claims when done
   coord unlock FILE
"""


def subagent_context(client: Client, task: TaskInfo, session: str) -> str:
    """Return the context of a worker that begins a task; without siblings if the queue cannot be read."""
    try:
        siblings = _siblings(client, task)
    except CoordError:
        siblings = []
    return TEXT.format(
        subagent=field(session, 200),
        worktree=field(_worktree(client), 200),
        group=field(task.track or client.project),
        siblings=_listed(siblings),
        task=shell_quote(task.task_id),
    )


def _siblings(client: Client, task: TaskInfo) -> list[str]:
    """Return the tasks beside this one, in work and ready: those of its track, or without a track as well."""
    queue = client.queue()
    beside = [
        each
        for each in (*queue.working, *queue.ready)
        if each.task_id != task.task_id and each.track == task.track
    ]
    return [each.task_id for each in beside]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SIBLINGS_MAX} more" if len(names) > SIBLINGS_MAX else ""
    return ", ".join(field(name) for name in names[:SIBLINGS_MAX]) + more or NONE


def _worktree(client: Client) -> str:
    """Return the worktree, relative to the repository's folder if it lies below that."""
    repository = client.location.repository
    if repository is None or repository.root is None:
        return "."
    below = os.path.relpath(repository.root, repository.folder)
    return repository.root if below.startswith("..") else below
