"""Draw a plan as text: a row per track, a column per step, as wide as the terminal.

A dependency on another track is shown as `⇠ A-001`. A large plan has one line per track with a bar and
counts.
"""

from collections.abc import Sequence

from coord.core.ids import TaskIdentifier
from coord.core.messages.quoting import visible
from coord.core.plans.commands import TaskInfo
from coord.core.tasks.types import TaskStatus
from coord.transports.cli.plan_view.layout import Lane, lanes
from coord.transports.cli.table import cells_wide, fitted

TASKS_MAX = 200
TRACKS_MAX = 100
CELL_MIN, CELL_MAX = 18, 44
LABEL_MAX = 12
BAR = 20
RESET = "\x1b[0m"
SIGNS = {
    TaskStatus.DONE: ("✔", "\x1b[32m"),
    TaskStatus.SKIPPED: ("↷", "\x1b[2m"),
    TaskStatus.IN_PROGRESS: ("▶", "\x1b[33m"),
    TaskStatus.READY: ("●", "\x1b[36m"),
    TaskStatus.PENDING: ("○", ""),
    TaskStatus.BLOCKED: ("■", "\x1b[31m"),
    TaskStatus.FAILED: ("✗", "\x1b[31m"),
    TaskStatus.ERRORED: ("✗", "\x1b[31m"),
}
"""The sign and the colour of each state."""


def picture(tasks: Sequence[TaskInfo], width: int, *, colours: bool = False) -> str:
    """Return the plan as text in lines of at most `width` cells."""
    if not tasks:
        return ""
    found = lanes(tasks)
    lines = _grid(found, width, colours) if len(tasks) <= TASKS_MAX else _summary(found, width, colours)
    return "\n".join(line.rstrip() for line in [*lines, "", _legend(tasks, width, colours)]) + "\n"


def _grid(found: Sequence[Lane], width: int, colours: bool) -> list[str]:
    """Return columns of steps, in several bands if the terminal is narrow."""
    label = min(LABEL_MAX, max(len(visible(_label(lane))) for lane in found))
    tracks = {task.task_id: lane.track for lane in found for task in lane.tasks}
    texts = {task.task_id: _cell_text(task, tracks) for lane in found for task in lane.tasks}
    widest = min(CELL_MAX, max(map(cells_wide, texts.values())))
    last = max(max(lane.cells) for lane in found)
    room = max(CELL_MIN, width - label - 2)
    per_band = max(1, min(last + 1, (room + 2) // (min(widest, CELL_MIN) + 2)))
    wide = max(1, min(widest, (room + 2) // per_band - 2))
    lines: list[str] = []
    for first in range(0, last + 1, per_band):
        band = range(first, min(first + per_band, last + 1))
        head = "  ".join(fitted(f"step {step + 1}", wide) for step in band)
        lines += ["", " " * label + "  " + head] if lines else [" " * label + "  " + head]
        for lane in found:
            cells = [lane.cells.get(step, []) for step in band]
            for row in range(max(map(len, cells))):
                shown = [_cell(cell, row, texts, wide, colours) for cell in cells]
                name = _label(lane) if row == 0 else ""
                lines.append(fitted(visible(name), label) + "  " + "  ".join(shown))
    return lines


def _label(lane: Lane) -> str:
    return f"{lane.track or '-'} {100 * lane.finished // len(lane.tasks)} %"


def _cell(cell: Sequence[TaskInfo], row: int, texts: dict[str, str], wide: int, colours: bool) -> str:
    if row >= len(cell):
        return " " * wide
    task = cell[row]
    return _painted(fitted(texts[task.task_id], wide), task.state, colours)


def _cell_text(task: TaskInfo, tracks: dict[str, str]) -> str:
    text = f"{SIGNS[TaskStatus(task.state)][0]} {task.task_id}"
    others = [_short(need) for need in task.depends_on if not task.track or tracks.get(need) != task.track]
    if task.agent:
        text += f" {task.agent}"
    return visible(text + (f" ⇠ {', '.join(others)}" if others else ""))


def _short(task_id: str) -> str:
    parsed = TaskIdentifier.find(task_id)
    return f"{parsed.track}-{parsed.sequence:03d}" if parsed is not None else task_id


def _summary(found: Sequence[Lane], width: int, colours: bool) -> list[str]:
    """Return a line per track with a bar and the number of tasks in each state."""
    label = min(LABEL_MAX, max(len(visible(lane.track or "-")) for lane in found))
    lines = []
    for lane in found[:TRACKS_MAX]:
        total = len(lane.tasks)
        full = BAR * lane.finished // total
        counts = f"{lane.finished} of {total}  {_counts(lane.tasks)}"
        bar = _painted("█" * full, TaskStatus.DONE, colours) + "░" * (BAR - full)
        room = max(1, width - label - BAR - 4)
        lines.append(f"{fitted(visible(lane.track or '-'), label)}  {bar}  {fitted(counts, room)}")
    if len(found) > TRACKS_MAX:
        lines.append(f"… and {len(found) - TRACKS_MAX} more tracks")
    return lines


def _counts(tasks: Sequence[TaskInfo]) -> str:
    states = [task.state for task in tasks]
    return "  ".join(f"{sign} {states.count(s)}" for s, (sign, _) in SIGNS.items() if s in states)


def _legend(tasks: Sequence[TaskInfo], width: int, colours: bool) -> str:
    """Return the meaning of the signs, with the number of tasks."""
    states = [task.state for task in tasks]
    parts, used = [], 0
    for state, (sign, _) in SIGNS.items():
        text = f"{sign} {states.count(state)} {state.value}"
        if state in states and used + len(text) <= width:
            parts.append(_painted(text, state, colours))
            used += len(text) + 2
    return "  ".join(parts)


def _painted(text: str, state: str, colours: bool) -> str:
    colour = SIGNS[TaskStatus(state)][1] if colours else ""
    return f"{colour}{text}{RESET}" if colour and text else text
