"""Import the tasks of a contract folder, which an earlier tool wrote, once."""

import os
import stat
from collections.abc import Container
from typing import Any

import msgspec

from coord.core.errors import CoordError, Invalid, NotFound
from coord.core.messages.quoting import quote_name
from coord.core.plans.commands import NewTask
from coord.followers.mirrors.mirror import ContractMirror
from coord.followers.mirrors.state import StateFile
from coord.sdk.client.client import Client
from coord.sdk.validation.tasks import new_task

FILE_BYTES_MAX = 1024 * 1024
FILES_MAX = 10_000
NAMED_MAX = 5
FIELDS = ("task_id", "description", "type", "priority", "requirements")
"""The fields of a task file that coord knows; `created_at` is when coord gets it."""


class ImportReply(msgspec.Struct, frozen=True):
    """What an import did, or would do."""

    added: list[str]
    known: list[str]
    ignored: list[str]
    """Files without a `task_id`."""


def import_tasks(client: Client, folder: str = "", *, dry_run: bool = False) -> ImportReply:
    """Add the tasks of every `.json` file with a `task_id` (AMB-7); tasks that exist stay as they are."""
    queue = _queue_folder(client, folder)
    tasks: dict[str, NewTask] = {}
    problems: list[str] = []
    ignored: list[str] = []
    for name in _names(client, queue):
        try:
            task = _read(f"{queue}/{name}")
        except CoordError as error:
            problems.append(f"{quote_name(name)}: {error.message}")
            continue
        if task is None:
            ignored.append(name)
        elif task.task_id in tasks and task != tasks[task.task_id]:
            problems.append(
                f"{quote_name(name)}: another file has a different task {quote_name(task.task_id)}"
            )
        else:
            tasks[task.task_id] = task
    if problems:
        more = f" and {len(problems) - NAMED_MAX} more" if len(problems) > NAMED_MAX else ""
        raise Invalid(
            f"nothing was imported: {'; '.join(problems[:NAMED_MAX])}{more}",
            hint="correct these files or move them away, then import again",
        )
    known = _known(client, tasks)
    new = [task for name, task in tasks.items() if name not in known]
    added = [task.task_id for task in new] if dry_run else client.add_tasks(new).added if new else []
    return ImportReply(sorted(added), sorted(known), ignored)


def _queue_folder(client: Client, folder: str) -> str:
    if not folder:
        repository = client.location.repository
        folder = f"{repository.root or '.'}/.contract" if repository is not None else ".contract"
    for each in (os.path.join(folder, "queue"), folder):
        if os.path.isdir(each):
            return each
    raise NotFound(f"there is no folder {quote_name(folder)}", hint="coord import contract DIR names it")


def _names(client: Client, queue: str) -> list[str]:
    """Return the files to read, without those that our own mirror wrote."""
    state = StateFile(client.location.folder, ContractMirror.name).load()
    own = {
        os.path.realpath(f"{path}/{name}")
        for path, root in (state.roots.items() if state else ())
        for name in root.files
    }
    found = sorted(name for name in os.listdir(queue) if name.endswith(".json"))
    if len(found) > FILES_MAX:
        raise Invalid(
            f"{quote_name(queue)} has {len(found)} files", hint=f"import at most {FILES_MAX} at once"
        )
    return [name for name in found if os.path.realpath(f"{queue}/{name}") not in own]


def _read(path: str) -> NewTask | None:
    """Return the task of a file; None if it has no `task_id`."""
    found = _content(path)
    try:
        record = msgspec.json.decode(found)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"no JSON: {error}") from error
    if not isinstance(record, dict) or "task_id" not in record:
        return None
    task_id, requirements = record["task_id"], record.get("requirements") or {}
    if not isinstance(task_id, str) or not isinstance(requirements, dict):
        raise Invalid("task_id has to be a text and requirements an object")
    if not isinstance(record.get("priority", 0), int):
        raise Invalid("priority has to be a whole number")
    more: dict[str, Any] = {
        name: value for name, value in record.items() if name not in (*FIELDS, "created_at")
    }
    return new_task(
        task_id,
        description=record.get("description") or "",
        type=record.get("type") or "",
        priority=record.get("priority", 0),
        requirements={**more, **requirements},
    )


def _content(path: str) -> bytes:
    """Return the content of a regular file: a pipe would block, and a link leads anywhere."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Invalid(f"cannot be read: {error.strerror}") from error
    with open(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise Invalid("is no regular file")
        if status.st_size > FILE_BYTES_MAX:
            raise Invalid(f"has more than {FILE_BYTES_MAX} bytes")
        return opened.read(FILE_BYTES_MAX)


def _known(client: Client, names: Container[str]) -> set[str]:
    """Return those tasks that coord has already."""
    return {task.task_id for page in client.task_pages() for task in page.tasks if task.task_id in names}
