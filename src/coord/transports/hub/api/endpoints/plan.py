"""`GET /v1/page/plan`: where the page draws the tasks of a project, now or at an earlier offset."""

from functools import lru_cache
from typing import Any

import msgspec

from coord.core.page.layout import Lane, PlanLayout, plan_layout
from coord.core.page.state import Fields
from coord.transports.hub.api.endpoint import Asking, Endpoint, reading
from coord.transports.hub.api.endpoints.page import Offset, PageQuery, pages_of
from coord.transports.hub.api.fields import Id, PublicBody

PATH = "/v1/page/plan"
_FIELDS = ("track", "depends_on", "added_ms")


class PlanQuery(PublicBody, frozen=True, kw_only=True):
    """Which project, and at which offset; the present one without it."""

    project: Id
    at: Offset | None = None


class PlanReply(msgspec.Struct, frozen=True):
    """The places of the tasks as of the entry at `offset`: lists of equal length, in topological order."""

    offset: int
    project: str
    columns: int
    lanes: list[Lane]
    task: list[str]
    lane: list[int]
    column: list[int]
    row: list[int]
    edges: list[tuple[int, int]]


async def show_plan(asking: Asking) -> Any:
    """Return where the page draws the tasks of a project: a lane per track, dependencies to the right."""
    query: PlanQuery = asking.values
    project = asking.identity.check_project(query.project)
    pages = pages_of(asking)
    state, *_ = await (pages.newest(asking) if query.at is None else pages.at(asking, PageQuery(at=query.at)))
    found = structure_of(state.tables["tasks"], project)
    layout: PlanLayout = await asking.hub.stores.run(_laid_out, found)
    return PlanReply(state.offset, project, **msgspec.structs.asdict(layout))


def structure_of(tasks: dict[str, Fields], project: str) -> bytes:
    """Return what the layout depends on, as bytes that are the same while it is."""
    found = {
        str(task["task"]): {name: task[name] for name in _FIELDS if name in task}
        for task in tasks.values()
        if task.get("project") == project and "task" in task
    }
    return msgspec.json.encode(found)


@lru_cache(maxsize=8)
def _laid_out(structure: bytes) -> PlanLayout:
    """Return the layout; readers of one plan, and repeated looks at it, cost one computation."""
    return plan_layout(msgspec.json.decode(structure))


def endpoints() -> list[Endpoint]:
    """Return the route."""
    return [reading(PATH, "showPlan", show_plan, PlanReply, tag="events", query=PlanQuery)]
