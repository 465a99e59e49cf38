"""The SUBAGENT CONTEXT of a worker, letter for letter."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coord.core.plans.commands import TaskInfo
from coord.sdk.brief.subagent import SIBLINGS_MAX, subagent_context
from coord.sdk.client.client import Client, connect
from tests.support.git_folders import git, made_repository

CONTEXT = """\
## SUBAGENT CONTEXT (You are a parallel worker)

**SUBAGENT_ID:** subagent-8-2
**WORKTREE_PATH:** .worktrees/plan-task-8-2
**PARALLEL_GROUP:** phase-8-admin
**SIBLING_TASKS:** 8.1, 8.3

### MANDATORY: Follow the agent-sync protocol

You are running in parallel with other agents. Before editing ANY file:

1. Initialize your status file:
   coord update --status starting --task 8.2

2. Check claims before editing:
   coord locks

3. Claim files before editing
   coord lock FILE

4. Release claims when done
   coord unlock FILE
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Client]:
    """A client in a worktree of its own."""
    made_repository(tmp_path / "shop")
    git(tmp_path / "shop", "worktree", "add", "-q", ".worktrees/plan-task-8-2")
    folder = str(tmp_path / "shop/.worktrees/plan-task-8-2")
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    with connect(session="subagent-8-2", cwd=folder, environ=environ) as client:
        yield client


def begin(worker: Client, task_id: str) -> TaskInfo:
    worker.claim_task(task_id)
    return worker.show_task(task_id)


def test_context_letter_for_letter(worker: Client) -> None:
    """CTX-18: the example of the founding documents, with the commands of coord."""
    worker.set_track("phase-8-admin", 3)
    for task_id in ("8.1", "8.2", "8.3"):
        worker.add_task(task_id, track="phase-8-admin")
    worker.add_task("9.1", track="phase-9")
    assert subagent_context(worker, begin(worker, "8.2"), "subagent-8-2") == CONTEXT


def test_without_a_track_the_project_is_the_group(worker: Client) -> None:
    worker.add_task("only")
    text = subagent_context(worker, begin(worker, "only"), "s")
    assert "**PARALLEL_GROUP:** shop\n**SIBLING_TASKS:** none\n" in text


def test_many_siblings_are_cut(worker: Client) -> None:
    for number in range(SIBLINGS_MAX + 3):
        worker.add_task(f"t{number:02}")
    assert "t12 and 2 more\n" in subagent_context(worker, begin(worker, "t00"), "s")
