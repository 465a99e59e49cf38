"""Tasks of a plan over HTTP: add, show, submit, and read results."""

from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from coord.core.errors import NotFound
from coord.core.plans.commands import AddTasks, AddTasksReply, GetTasks, NewTask, TaskInfo, TaskList
from coord.core.tasks.commands import GetResult, SubmitResult
from coord.core.tasks.types import SubmissionResult, TaskResult
from coord.sdk.validation.results import to_json
from coord.sdk.validation.tasks import new_task
from coord.transports.hub.api import replies
from coord.transports.hub.api.endpoint import Answer, Asking, Endpoint, role_of
from coord.transports.hub.api.endpoints.commands import TASK, require_session
from coord.transports.hub.api.endpoints.results import read_result, submit
from coord.transports.hub.api.fields import NewTaskBody, Number, OptionalId, PublicBody
from coord.transports.hub.api.resources import read_resources

TASKS_MAX = 250


class AddTasksBody(PublicBody, frozen=True, kw_only=True):
    """Tasks to add; those that others depend on come first."""

    tasks: Annotated[tuple[NewTaskBody, ...], Meta(min_length=1, max_length=TASKS_MAX)]


class SubmitTaskBody(PublicBody, frozen=True, kw_only=True):
    """The result of a claim."""

    session: OptionalId = ""
    generation: Number
    result: dict[str, Any] = {}


class ResultQuery(PublicBody, frozen=True, kw_only=True):
    """Which result: 0 is the accepted one."""

    generation: Number = 0


async def add(asking: Asking) -> Any:
    """Add tasks to a plan, or change their descriptions."""
    body: AddTasksBody = asking.values
    tasks = tuple(_new_task(task, asking.repository) for task in body.tasks)
    return Answer(201, await asking.ask(AddTasks(asking.path["project"], tasks)))


def _new_task(body: NewTaskBody, repository: str) -> NewTask:
    task = new_task(
        body.task_id,
        description=body.description,
        type=body.type,
        priority=body.priority,
        files=read_resources(body.files, repository),
        depends_on=body.depends_on,
        requirements=body.requirements,
        deadline=body.deadline_ms,
        estimate_s=body.estimate_s,
        role=body.role,
        track=body.track,
        needs=body.needs,
        retries_max=body.retries_max,
    )
    return replace(task, repository=repository) if task.files else task


async def show(asking: Asking) -> Any:
    """Return a task with its description and its state."""
    found: TaskList = await asking.ask(GetTasks(asking.path["project"], (asking.path["task"],)))
    if not found.tasks:
        raise NotFound(f"there is no task {asking.path['task']}", hint="GET its project's tasks lists them")
    return found.tasks[0]


async def submit_task(asking: Asking) -> Any:
    """Submit the result of a claim; accepted once, and only from the current holder."""
    body: SubmitTaskBody = asking.values
    session = require_session(asking.identity.check_session(body.session))
    key = (asking.tenant, asking.path["project"], asking.path["task"])
    return replies.answer(await submit(asking, key, session, body.generation, to_json("result", body.result)))


async def result(asking: Asking) -> Any:
    """Return the accepted result of a task, of any size."""
    key = (asking.tenant, asking.path["project"], asking.path["task"])
    return await read_result(asking, GetResult(*key, asking.values.generation))


def endpoints() -> list[Endpoint]:
    """Return the routes."""
    return [
        Endpoint(
            "POST",
            "/v1/projects/{project}/tasks",
            "addTasks",
            add,
            summary=str(add.__doc__),
            tag="projects",
            role=role_of(AddTasks),
            body=AddTasksBody,
            replies={201: AddTasksReply},
        ),
        Endpoint(
            "GET",
            TASK,
            "showTask",
            show,
            summary=str(show.__doc__),
            tag="projects",
            role=role_of(GetTasks),
            replies={200: TaskInfo},
        ),
        Endpoint(
            "POST",
            f"{TASK}/submit",
            "submitTask",
            submit_task,
            summary=str(submit_task.__doc__),
            tag="projects",
            role=role_of(SubmitResult),
            body=SubmitTaskBody,
            replies=replies.replies_of(SubmissionResult),
        ),
        Endpoint(
            "GET",
            f"{TASK}/result",
            "getResult",
            result,
            summary=str(result.__doc__),
            tag="projects",
            role=role_of(GetResult),
            query=ResultQuery,
            replies={200: TaskResult},
        ),
    ]
