"""`coord import contract`: the tasks of another tool, once."""

import json
import os
from pathlib import Path

import pytest

from tests.support.cli import Coord


@pytest.fixture
def queue(repository: Path) -> Path:
    folder = repository / ".contract/queue"
    folder.mkdir(parents=True)
    return folder


def put(queue: Path, name: str, **fields: object) -> None:
    (queue / name).write_text(json.dumps(fields))


def states(coord: Coord) -> dict[str, str]:
    return {task["task_id"]: task["state"] for task in coord("ann task list").answer["tasks"]}


def test_any_json_with_a_task_id_is_a_task(coord: Coord, queue: Path) -> None:
    """AMB-7: `task_123.json`, `task123.json` and any other name; fields of the document, others kept."""
    put(
        queue,
        "task_123.json",
        task_id="task-123",
        description="Add email validation",
        type="code_gen",
        priority=5,
        created_at="2025-11-03T10:30:00Z",
        requirements={"needs": "internet"},
        affects=["a.py"],
    )
    put(queue, "task124.json", task_id="task-124")
    put(queue, "whatever.json", task_id="T-9")
    put(queue, "settings.json", colour="blue")
    (queue / "notes.txt").write_text("task_id")
    dry = coord("ann import contract --dry-run")
    assert dry.answer["added"] == ["T-9", "task-123", "task-124"]
    assert states(coord) == {}
    said = coord("ann import contract")
    assert said.answer["added"] == ["T-9", "task-123", "task-124"]
    assert said.answer["ignored"] == ["settings.json"]
    task = coord("ann task show task-123").answer["task"]
    assert (task["description"], task["type"], task["priority"]) == ("Add email validation", "code_gen", 5)
    assert task["requirements"] == {"affects": ["a.py"], "needs": "internet"}


def test_an_import_counts_once(coord: Coord, queue: Path) -> None:
    """AMB-7: a second import changes nothing, not even what the file says differently by now."""
    put(queue, "task_1.json", task_id="task-1", description="first")
    coord("ann import contract")
    coord("ann task claim task-1")
    put(queue, "task_1.json", task_id="task-1", description="second")
    said = coord("ann import contract")
    assert (said.answer["added"], said.answer["known"]) == ([], ["task-1"])
    assert coord("ann task show task-1").answer["task"]["description"] == "first"
    assert states(coord) == {"task-1": "in_progress"}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"task_id": 5}',
        '{"task_id": "../up"}',
        '{"task_id": "a", "priority": "high"}',
        '{"task_id": "a", "requirements": [1]}',
        '{"task_id": "a", "description": 7}',
        '{"task_id": "good", "description": "another text"}',
        "\xff",
    ],
)
def test_a_bad_file_is_named_and_nothing_is_imported(coord: Coord, queue: Path, text: str) -> None:
    put(queue, "good.json", task_id="good")
    (queue / "zbad.json").write_bytes(text.encode().decode("unicode_escape").encode("latin-1"))
    said = coord("ann import contract")
    assert said.code != 0
    assert "zbad.json" in said.line
    assert states(coord) == {}


def test_only_regular_files_are_read(coord: Coord, queue: Path, tmp_path: Path) -> None:
    """A link or a pipe is named as bad: neither is followed, and no import waits for a pipe."""
    os.mkfifo(queue / "pipe.json")
    said = coord("ann import contract")
    assert said.code != 0
    assert "pipe.json" in said.line
    (queue / "pipe.json").unlink()
    (tmp_path / "secret").write_text('{"task_id": "stolen"}')
    (queue / "link.json").symlink_to(tmp_path / "secret")
    assert coord("ann import contract").code != 0
    assert states(coord) == {}


def test_our_own_mirror_is_not_imported(coord: Coord, queue: Path) -> None:
    """The files of the mirror are no tasks of others, whatever its state."""
    coord("ann mirror on contract")
    coord("ann task add T1")
    assert (queue / "task_T1.json").exists()
    put(queue, "theirs.json", task_id="T2")
    said = coord("ann import contract")
    assert (said.answer["added"], said.answer["known"]) == (["T2"], [])


def test_a_folder_that_is_missing_is_named(coord: Coord) -> None:
    said = coord("ann import contract nowhere")
    assert said.code != 0
    assert "nowhere" in said.line
