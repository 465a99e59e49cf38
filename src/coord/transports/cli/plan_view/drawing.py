"""Draw a plan as a Mermaid flowchart or as SVG."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coord.core.plans.commands import TaskInfo
from coord.core.plans.plan import track_title
from coord.core.tasks.types import TaskStatus
from coord.transports.cli.output import count
from coord.transports.cli.plan_view.layout import Lane, lanes

COLOURS = {
    TaskStatus.DONE: "#b7e4c7",
    TaskStatus.SKIPPED: "#e9ecef",
    TaskStatus.IN_PROGRESS: "#ffe8a1",
    TaskStatus.READY: "#cfe2ff",
    TaskStatus.BLOCKED: "#f8d7da",
    TaskStatus.FAILED: "#f1aeb5",
    TaskStatus.ERRORED: "#f1aeb5",
}
PLAIN = "#ffffff"
BOX_WIDE, BOX_HIGH, GAP, STEP_GAP, MARGIN = 190, 30, 10, 60, 16
LABEL_WIDE, HEAD = 110, 14
SHOWN_CHARS = 26
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = (
    "text{font:12px sans-serif;fill:#212529}.track{font-weight:bold;font-size:13px}"
    ".box{stroke:#6c757d}.lane{fill:#f8f9fa;stroke:#dee2e6}.edge{fill:none;stroke:#868e96}"
)
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="#868e96"/></marker></defs>'
)


def mermaid(tasks: Sequence[TaskInfo]) -> str:
    """Return the tasks as a Mermaid flowchart: one box per track, arrows along dependencies."""
    numbers = {task.task_id: f"t{number}" for number, task in enumerate(tasks)}
    lines = ["flowchart LR"]
    for number, track in enumerate(sorted({task.track for task in tasks})):
        own = [
            f'{numbers[task.task_id]}["{task.task_id.replace("#", "#35;")}"]'
            for task in tasks
            if task.track == track
        ]
        if track:
            lines += [f'  subgraph track{number}["{track}"]', *(f"    {box}" for box in own), "  end"]
        else:
            lines += [f"  {box}" for box in own]
    for task in tasks:
        after = [numbers[name] for name in task.depends_on if name in numbers]
        lines += [f"  {number} --> {numbers[task.task_id]}" for number in after]
    for state, colour in COLOURS.items():
        shown = [numbers[task.task_id] for task in tasks if task.state == state]
        if shown:
            lines += [f"  classDef {state.value} fill:{colour}", f"  class {','.join(shown)} {state.value}"]
    return "\n".join(lines) + "\n"


class Box(NamedTuple):
    """The position of a task."""

    task: TaskInfo
    x: int
    y: int


def svg(tasks: Sequence[TaskInfo]) -> str:
    """Return the tasks as an SVG: a lane per track, a column per step, arrows along dependencies."""
    found = lanes(tasks)
    boxes: dict[str, Box] = {}
    bands: list[str] = []
    columns = 1 + max((max(lane.cells) for lane in found), default=0)
    wide = 2 * MARGIN + LABEL_WIDE + columns * (BOX_WIDE + STEP_GAP) - STEP_GAP
    top = MARGIN
    for lane in found:
        high = 2 * HEAD + max(map(len, lane.cells.values())) * (BOX_HIGH + GAP) - GAP
        bands += _band(lane, top, high, wide)
        boxes |= {box.task.task_id: box for box in _placed(lane, top + HEAD)}
        top += high + GAP
    size = f'width="{wide}" height="{top + MARGIN}" viewBox="0 0 {wide} {top + MARGIN}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{_text(count(len(tasks), 'task'))}</title><style>{_STYLE}</style>{_ARROW}",
        *bands,
        *(line for box in boxes.values() for line in _edges(box, boxes)),
        *(_drawn(box) for box in boxes.values()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _placed(lane: Lane, top: int) -> Iterator[Box]:
    for step, cell in lane.cells.items():
        x = MARGIN + LABEL_WIDE + step * (BOX_WIDE + STEP_GAP)
        for row, task in enumerate(cell):
            yield Box(task, x, top + row * (BOX_HIGH + GAP))


def _band(lane: Lane, top: int, high: int, wide: int) -> list[str]:
    percent = 100 * lane.finished // len(lane.tasks)
    name, title = _text(_cut(lane.track or "-", 12)), _text(track_title(lane.track))
    return [
        f'<rect class="lane" x="{MARGIN // 2}" y="{top}" width="{wide - MARGIN}" height="{high}" rx="6"/>',
        f'<text class="track" x="{MARGIN}" y="{top + high // 2}">{name}<title>{title}</title></text>',
        f'<text x="{MARGIN}" y="{top + high // 2 + 16}">{percent} %</text>',
    ]


def _edges(box: Box, boxes: dict[str, Box]) -> Iterator[str]:
    for name in box.task.depends_on:
        before = boxes.get(name)
        if before is not None:
            x, y = before.x + BOX_WIDE, before.y + BOX_HIGH // 2
            end = box.y + BOX_HIGH // 2
            path = f"M{x} {y}C{x + STEP_GAP // 2} {y} {box.x - STEP_GAP // 2} {end} {box.x} {end}"
            yield f'<path class="edge" d="{path}" marker-end="url(#arrow)"/>'


def _drawn(box: Box) -> str:
    task = box.task
    fill = COLOURS.get(TaskStatus(task.state), PLAIN)
    parts = [task.task_id, task.state, task.agent, task.description]
    name = _text(_cut(task.task_id, SHOWN_CHARS))
    return (
        f"<g><title>{_text(' · '.join(part for part in parts if part))}</title>"
        f'<rect class="box" x="{box.x}" y="{box.y}" width="{BOX_WIDE}" height="{BOX_HIGH}" rx="4" '
        f'fill="{fill}"/><text x="{box.x + 8}" y="{box.y + 19}">{name}</text></g>'
    )


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"


def _text(text: str) -> str:
    """Return a text for XML: markup is escaped, forbidden characters are replaced."""
    safe = _NOT_XML.sub("\ufffd", text)
    return safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
